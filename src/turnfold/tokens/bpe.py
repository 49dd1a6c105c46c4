"""Exact byte-pair counts of OpenAI's encodings, offline: the library ships its vocabularies (docs/tokens.md compares)."""

from __future__ import annotations

from functools import lru_cache

import splintr

from turnfold.tokens.request_counter import RequestCounter

ENCODINGS = ("o200k_base", "cl100k_base")


def bpe_counter(encoding: str) -> RequestCounter:
    """Return the counter of an encoding. The vocabulary is loaded once a process, in about 0.1 s."""
    tokenizer = _tokenizer(encoding)

    def count(text: str) -> int:
        try:
            return len(tokenizer.encode_ordinary(text))
        except UnicodeEncodeError:  # half a surrogate pair: sent, if at all, as the replacement character
            return len(tokenizer.encode_ordinary(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")))

    return RequestCounter(encoding, count, exact=True)


@lru_cache(maxsize=len(ENCODINGS))
def _tokenizer(encoding: str) -> splintr.AnyTokenizer:
    return splintr.Tokenizer.from_pretrained(encoding)
