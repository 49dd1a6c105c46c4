"""Terms for search: one function for text and query, in every script, and bounded work for any input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.core.recall_query import MAX_PHRASES, MAX_TERMS, Scope, parse_query, scope_of
from turnfold.core.text.terms import index_terms, located_words, sequence, terms
from turnfold.messages.log import ConversationKey

WORDS = [
    ("the database port is 5433", "Databases", "another case and number"),
    ("数据库的端口是5433，不是默认的", "端口", "a Chinese word of two characters"),
    ("数据库的端口是5433，不是默认的", "口", "one Chinese character"),
    ("数据库的端口是5433，不是默认的", "5433", "a number inside Chinese"),
    ("データベースのポートは5433", "ポート", "a Japanese word"),
    ("데이터베이스 포트는 5433입니다", "포트", "a Korean word with a particle"),
    ("ｶﾌｪで待つ", "カフェ", "kana of half width"),
    ("Ｐｏｓｔｇｒｅｓ", "postgres", "Latin letters of full width"),
    ("le résumé", "resume\u0301", "accents composed and not"),
    ("see src/app/main.py:12", "src/app/main.py:12", "a path whole"),
    ("see src/app/main.py:12", "main", "a path's piece"),
    ("call getUserName()", "user", "a piece of a name in mixed case"),
    ("call getUserName()", "getusername", "a name in mixed case, whole"),
    ("set max_retries", "max_retries", "a name with underscores"),
    ("set max_retries", "retries", "its piece"),
    ("Straße nach Köln", "strasse", "case folding beyond lower case"),
    ("हिन्दी में", "हिन्दी", "a word with vowel signs"),
]


@pytest.mark.parametrize(("text", "query", "what"), WORDS, ids=[what for _, _, what in WORDS])
def test_a_word_of_a_text_is_found(text: str, query: str, what: str) -> None:
    """Every term that a query for a word looks up is in the index of the text that holds it."""
    weights = parse_query(query).weights
    assert weights, what
    assert weights.keys() <= set(index_terms(text))


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_text_and_query_agree(before: str, word: str, after: str) -> None:
    """What a query looks up is in the index of every text that holds it between blanks."""
    found = set(index_terms(f"{before} {word} {after}"))
    assert set(terms(word)) <= found


@given(st.text())
def test_words_have_their_places(text: str) -> None:
    """The place of a word holds what the word was made from."""
    for word in located_words(text):
        assert 0 <= word.start < word.end <= len(text)
        assert word.term in sequence(text[word.start : word.end])


HOSTILE = [
    "",
    '"',
    '""',
    '"unclosed phrase',
    "NEAR(a b, 2)",
    "a AND OR NOT b",
    "* ** a* *b",
    "(((",
    "'; DROP TABLE messages; --",
    "x" * 100_000,
    "A-" * 50_000,
    "a" * 50 + "-" * 100_000,
    "aB" * 50_000,
    "端" * 100_000,
    '"' * 100_000,
    "\x00\x01\x1b[31m\x7f",
    "the of and",
    "😀🗝️👩‍👩‍👧",
    "\ud800 half \udfff",
    "\u0301" * 5_000,
    "terms:a {col}: ^start",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.timeout(20)
def test_no_query_is_wrong(text: str) -> None:
    """Any text is a query: it never raises, and looks up a bounded number of terms."""
    query = parse_query(text)
    assert len(query.weights) <= MAX_TERMS
    assert len(query.phrases) <= MAX_PHRASES
    index_terms(text)


@given(st.text())
def test_nothing_raises(text: str) -> None:
    """Any Unicode text, half surrogates included, can be indexed and searched for."""
    parse_query(text + "\ud800")
    index_terms(text + "\ud800")


def test_quotes_and_stars() -> None:
    """Quotation marks, also the Chinese ones, insist on words side by side; a star asks for a beginning."""
    assert parse_query('say "failed migrations" now').phrases == (("fail", "migration"),)
    assert parse_query("查“数据库端口”").phrases == (("数", "据", "库", "端", "口"),)
    query = parse_query("migr* x*")
    assert query.prefixes == ("migr",)
    assert "x" in query.weights


def test_grammar_counts_only_alone() -> None:
    """Words of grammar are looked up where a query has no others."""
    assert set(parse_query("what is the port").weights) == {"port"}
    assert set(parse_query("what is the").weights) == {"what", "is", "the"}
    assert set(parse_query("什么").weights) == {"什么"}


def test_a_scope_is_one_user_s() -> None:
    """A scope admits rows of its own user alone, and of its conversation, roles and times where it names them."""
    key = ConversationKey(tenant="t", user="u", conversation_id="c")
    assert scope_of(key).admits(key, "user", None)
    assert not scope_of(key).admits(ConversationKey(tenant="t", user="v", conversation_id="c"), "user", None)
    assert not scope_of(key).admits(ConversationKey(tenant="s", user="u", conversation_id="c"), "user", None)
    assert not scope_of(key).admits(ConversationKey(tenant="t", user="u", conversation_id="d"), "user", None)
    timed = Scope(tenant="t", user="u", roles=("user",), after=10, before=20)
    assert [timed.admits(key, "user", at) for at in (None, 9, 10, 19, 20)] == [False, False, True, True, False]
    assert not timed.admits(key, "tool", 10)
