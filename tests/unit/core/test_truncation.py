"""A summary keeps its limits, whatever the model wrote (SPEC §6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.core.truncation import (
    SUMMARY_SUFFIX,
    bound_summary,
    clip_at_sentence,
    summary_char_limit,
    utf16_length,
)
from turnfold.tokens import make_counter

TEXTS = st.lists(
    st.sampled_from(
        [
            "The key was lent. ",
            "莉娅借出了钥匙。",
            "port 5433, ",
            "3.14 ",
            "👩‍💻",
            "word ",
            "\n",
            "x" * 30,
            "？！",
            "e.g. ",
        ]
    ),
    max_size=60,
).map("".join)


@pytest.mark.parametrize("counter", ["chars4", "bpe", "script_aware"])
@given(TEXTS, st.integers(0, 300), st.integers(0, 120))
def test_both_limits_hold_under_every_counter(counter: str, text: str, max_chars: int, max_tokens: int) -> None:
    """Characters and tokens, the suffix included; what fits is untouched; a cut says so where there is room to."""
    count = make_counter(counter).count_text
    bounded, cut = bound_summary(text, max_chars, max_tokens, count)
    assert utf16_length(bounded) <= max_chars
    assert count(bounded) <= max_tokens
    fits = utf16_length(text) <= max_chars and count(text) <= max_tokens
    assert cut == (not fits)
    if not cut:
        assert bounded == text
    else:
        kept = bounded.removesuffix(SUMMARY_SUFFIX)
        assert text.startswith(kept)
        assert (
            bounded.endswith(SUMMARY_SUFFIX)
            or not kept
            or utf16_length(SUMMARY_SUFFIX) + 1 > max_chars
            or (
                count(text[:1] + SUMMARY_SUFFIX) > max_tokens
                or count(kept + SUMMARY_SUFFIX) > max_tokens
                or utf16_length(kept + SUMMARY_SUFFIX) > max_chars
            )
        )


@pytest.mark.parametrize(
    ("text", "length", "kept"),
    [
        ("One is done. Two is done. Three is", 30, "One is done. Two is done."),
        ("钥匙借出了。天黑前归还。城门", 13, "钥匙借出了。天黑前归还。"),
        ("version 3.14 is out and about", 14, "version 3.14"),
        ("nospaceatall", 5, "nospa"),
        ("short", 50, "short"),
        ("He said “no.” Then he went away", 20, "He said “no.”"),
    ],
)
def test_it_is_cut_where_a_sentence_ends(text: str, length: int, kept: str) -> None:
    """Else between words, else anywhere; a decimal point ends nothing."""
    assert clip_at_sentence(text, length) == kept


@pytest.mark.parametrize(
    ("window", "clip", "limit"),
    [(1_200, 50_000, 480), (100, 50_000, 200), (10**6, 50_000, 50_000), (10**6, 9_000, 9_000), (8_192, 100, 200)],
)
def test_the_limit_in_characters(window: int, clip: int, limit: int) -> None:
    """A tenth of the window at four characters a token, at most `clip_chars`, at least 200."""
    assert summary_char_limit(window, clip) == limit
