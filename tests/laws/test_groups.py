"""What belongs together is found in any history, however broken, and is never cut apart."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.histories import histories
from turnfold.core.groups import (
    closed_groups,
    explicit_groups,
    is_final,
    legal_cuts,
    open_request,
    pair_tools,
    turn_starts,
)
from turnfold.errors import GroupsError
from turnfold.messages.model import Message


def slow_pairs(rows: Sequence[Message]) -> list[tuple[int, int, str]]:
    """Pair by the definition: a result belongs to the nearest earlier call of its id that has none yet."""
    taken: set[tuple[int, int]] = set()
    pairs = []
    for index, row in enumerate(rows):
        for result in row.results:
            for start in range(index - 1, -1, -1):
                waiting = [at for at, call in enumerate(rows[start].calls) if call.id == result.call_id]
                free = [at for at in waiting if (start, at) not in taken]
                if waiting:
                    if free:
                        taken.add((start, free[-1]))
                        pairs.append((start, index, result.call_id))
                    break
    return pairs


@given(histories(odd=True))
def test_no_result_and_no_call_is_overlooked(rows: tuple[Message, ...]) -> None:
    """Each result is paired or told to be an orphan; each row with calls is answered, told to lack a result, or pending."""
    pairs = pair_tools(rows)
    starts = {start for start, _ in pairs.spans}
    orphans = {index for index, _ in pairs.orphan_results}
    spanned = {index for start, end in pairs.spans for index in range(start, end + 1)}
    lacking = {index for index, _ in pairs.unanswered}
    for index, row in enumerate(rows):
        assert not row.results or index in orphans | spanned
        assert not row.calls or index in starts | lacking | {pairs.pending_from}
    assert all(any(r.call_id == call_id for r in rows[index].results) for index, call_id in pairs.orphan_results)
    assert all(any(c.id == call_id for c in rows[index].calls) for index, call_id in pairs.unanswered)


@given(histories(odd=False))
def test_pairs_are_those_of_the_definition(rows: tuple[Message, ...]) -> None:
    """The one-pass pairing equals pairing by search."""
    ends = {start: index for start, index, _ in slow_pairs(rows)}
    assert dict(pair_tools(rows).spans) == ends


@given(histories())
def test_a_cut_separates_nothing(rows: tuple[Message, ...]) -> None:
    """Before a user or assistant message, never the first, never inside a pair, never behind a pending call."""
    pairs = pair_tools(rows)
    last = len(rows) if pairs.pending_from is None else pairs.pending_from
    expected = [
        cut
        for cut in range(1, len(rows))
        if rows[cut].role in ("user", "assistant")
        and cut <= last
        and not any(start < cut <= end for start, end in pairs.spans)
    ]
    assert legal_cuts(rows) == expected


@given(histories())
def test_a_pending_call_waits_at_the_end(rows: tuple[Message, ...]) -> None:
    """Only results follow it, and at least one of its calls has none."""
    pending = pair_tools(rows).pending_from
    if pending is not None:
        answered = [result.call_id for row in rows[pending + 1 :] for result in row.results]
        assert all(row.role == "tool" for row in rows[pending + 1 :])
        assert any(call.id not in answered for call in rows[pending].calls) or len(answered) < len(rows[pending].calls)


@given(histories())
def test_closed_groups_are_whole(rows: tuple[Message, ...]) -> None:
    """They follow one another from the first row, each ends with a final answer and cuts no pair apart."""
    groups = closed_groups(rows)
    spans = pair_tools(rows).spans
    assert [start for start, _ in groups] == [0, *(end for _, end in groups)][: len(groups)]
    for start, end in groups:
        assert start < end
        assert is_final(rows[end - 1])
        assert end == len(rows) or rows[end].role == "user"
        assert not any(one < end <= other for one, other in spans)


@given(histories(odd=False, min_size=1))
def test_what_is_not_closed_has_no_answer(rows: tuple[Message, ...]) -> None:
    """After the last closed group no turn is answered."""
    groups = closed_groups(rows)
    rest = rows[groups[-1][1] if groups else 0 :]
    spans = pair_tools(rest).spans
    starts = [start for start in turn_starts(rest) if start > 0]
    for end in [*starts, len(rest)]:
        if end:
            assert not is_final(rest[end - 1]) or any(one < end <= other for one, other in spans)


@given(histories())
def test_the_open_request_is_the_latest_user_message_without_a_final_answer(rows: tuple[Message, ...]) -> None:
    """Where a final answer came after it there is none."""
    users = [index for index, row in enumerate(rows) if row.role == "user"]
    expected = users[-1] if users and not any(is_final(row) for row in rows[users[-1] :]) else None
    assert open_request(rows) == expected


@given(histories())
def test_turns_start_at_the_first_of_several_user_messages(rows: tuple[Message, ...]) -> None:
    """Two messages in a row are one turn."""
    for start in turn_starts(rows):
        assert rows[start].role == "user"
        assert start == 0 or rows[start - 1].role != "user"


@given(histories(odd=False, min_size=2), st.data())
def test_the_callers_groups_are_taken_as_they_are(rows: tuple[Message, ...], data: st.DataObject) -> None:
    """Contiguous, ordered, disjoint groups that cut no pair come back as ranges; the rest belongs to none."""
    allowed = [0, *(end for _, end in closed_groups(rows))]
    ends = sorted(data.draw(st.sets(st.sampled_from(allowed))) - {0})
    ranges = list(zip([0, *ends], ends, strict=False))
    ids = [[row.id for row in rows[start:end]] for start, end in ranges]
    assert explicit_groups(rows, ids) == tuple(ranges)


@given(histories(odd=False, min_size=4), st.data())
def test_the_first_bad_id_is_named(rows: tuple[Message, ...], data: st.DataObject) -> None:
    """A gap, a repetition, a wrong order or an unknown id is an error that names where it begins."""
    ids = [row.id for row in rows]
    at = data.draw(st.integers(0, len(ids) - 2))
    broken = {
        "gap": (ids[:at] + ids[at + 1 :], ids[at + 1]),
        "unknown": ([*ids[:at], "nobody", *ids[at:]], "nobody"),
        "twice": ([*ids[: at + 1], ids[at], *ids[at + 1 :]], ids[at]),
        "order": ([*ids[:at], ids[at + 1], ids[at], *ids[at + 2 :]], ids[at + 1]),
    }
    given_ids, bad = broken[data.draw(st.sampled_from(sorted(broken)))]
    cut = data.draw(st.integers(0, len(given_ids)))
    with pytest.raises(GroupsError) as caught:
        explicit_groups(rows, [given_ids[:cut], given_ids[cut:]])
    assert caught.value.message_id == bad
    assert repr(bad) in str(caught.value)
