"""Ranking: what says most of what was asked comes first, with what stands around it; equal ones by age."""

from collections.abc import Sequence

from turnfold.core.ranking import READ_CHARS, Candidate, preselect, rank, rarity
from turnfold.core.recall_query import parse_query
from turnfold.core.term_index import TermIndex


def ranked(query: str, texts: Sequence[str]) -> list[str]:
    """Return the texts that are hits in a conversation of `texts`, the best first."""
    parsed, index = parse_query(query), TermIndex()
    for number, text in enumerate(texts):
        index.add(number, text)
    numbers, worth = index.promising(parsed, 40)
    candidates = [
        Candidate(text=texts[n], before=texts[max(0, n - 2) : n][::-1], after=texts[n + 1 : n + 2], newness=(n,))
        for n in numbers
    ]
    return [candidates[at].text for at, _ in rank(parsed, candidates, worth)]


def test_rare_words_count_more() -> None:
    """A message with the rare word of the query comes before those with its common one."""
    texts = ["the server is up", "the server is down", "nothing here", "the pelican server", "a server again"]
    assert ranked("pelican server", texts)[0] == "the pelican server"


def test_only_what_matches_is_a_hit() -> None:
    """A message without any word of the query is no hit, whatever its neighbours say."""
    assert ranked("pelican", ["a pelican came", "then it left", "nothing"]) == ["a pelican came"]
    assert ranked("walrus", ["a pelican came"]) == []


def test_the_turn_before_counts() -> None:
    """Of two messages that say the same, the one that answers a question with the query's words comes first."""
    texts = ["Blue, I think.", "Nice.", "Which color was the boat of Anna?", "Blue, I think.", "So it goes."]
    parsed = parse_query("color of Anna's boat blue")
    index = TermIndex()
    for number, text in enumerate(texts):
        index.add(number, text)
    numbers, worth = index.promising(parsed, 40)
    candidates = [Candidate(text=texts[n], before=texts[max(0, n - 2) : n][::-1], newness=(n,)) for n in numbers]
    order = [numbers[at] for at, _ in rank(parsed, candidates, worth)]
    assert order.index(3) < order.index(0)


def test_a_speaker_answers_for_themselves() -> None:
    """A name weighs more where its bearer speaks than where others mention it."""
    texts = ["Ann: my garden grew", "Bob: Ann has a garden too", "Cid: hello", "Dan: well"]
    assert ranked("Ann garden", texts)[0] == "Ann: my garden grew"


def test_words_side_by_side() -> None:
    """Of two messages with the same words the one that has them together, in order, comes first."""
    texts = ["端水 水口 开端与口岸", "端口被占用了", "空行", "空行二"]
    assert ranked("端口", texts) == ["端口被占用了"]
    texts = ["port of the old database server", "server of the database port old", "x", "y"]
    assert ranked("database port", texts)[0] == "server of the database port old"


def test_phrases_are_insisted_on() -> None:
    """With a quoted phrase only messages that hold it word for word are hits, in Chinese too."""
    texts = ["failed a migration", "the migration failed", "migration failed again", "它的端口", "它端着口罩"]
    assert set(ranked('"migration failed"', texts)) == {"the migration failed", "migration failed again"}
    assert ranked("“端口”", texts) == ["它的端口"]
    assert ranked("“端着口罩”", texts) == ["它端着口罩"]


def test_beginnings() -> None:
    """A star finds every word that begins so."""
    assert set(ranked("migr*", ["migrations run", "we migrated", "immigrant"])) == {"migrations run", "we migrated"}


def test_equals_by_age() -> None:
    """Of equal messages the newer comes first."""
    parsed = parse_query("port")
    candidates = [Candidate(text="the port", newness=(n,)) for n in (1, 3, 2)]
    assert [at for at, _ in rank(parsed, candidates, {"port": 1.0})] == [1, 2, 0]


def test_long_texts_are_read_in_part() -> None:
    """A word deep inside a long text is found, and a phrase there too, without reading all of it."""
    text = "filler words of a log\n" * 20_000 + "the zebra crossing failed" + "\nmore filler" * 20_000
    assert len(text) > 10 * READ_CHARS
    assert ranked("zebra", [text, "other"]) == [text]
    assert ranked('"zebra crossing"', [text, "other"]) == [text]


def test_preselection_prefers_what_matches_more() -> None:
    """Of many rows those with the rarest and most terms are looked at, and all of them where they are few."""
    places = {"a": list(range(1000)), "b": [5, 700]}
    worth = rarity(parse_query("alpha"), {"alpha": 1}, 10)
    assert worth["alpha"] > 0
    assert set(preselect(places, {"a": 0.1, "b": 2.0}, 3)) >= {5, 700}
    assert sorted(preselect({"a": [1, 2, 3]}, {"a": 1.0}, 10)) == [1, 2, 3]


def test_an_index_forgets() -> None:
    """Texts that were removed are not found any more."""
    index = TermIndex()
    index.add(1, "alpha beta")
    index.add(2, "alpha")
    index.remove([1])
    assert index.promising(parse_query("alpha beta"), 5).numbers == [2]
