"""What a model is sent is a request that its provider takes, whatever the history holds, and nothing in it is lost."""

import json
from collections.abc import Collection, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.histories import histories
from turnfold.core.groups import pair_tools
from turnfold.core.masking import maskable
from turnfold.core.view import (
    NO_RESULT,
    ORPHAN_RESULT,
    ViewParts,
    apply_masks,
    closed_under_tools,
    render_view,
)
from turnfold.messages.canonical import js_json
from turnfold.messages.model import Message, Text, text_message
from turnfold.transcripts import openai_chat
from turnfold.transcripts.validity import check_openai_chat

DONE = text_message("done", "user", "and now?")


def violations(messages: Sequence[Message]) -> list[str]:
    """What a provider would refuse in a request of these messages."""
    body = openai_chat.encode_request(messages, model="m")
    checked = check_openai_chat(json.loads(js_json(body)), system_first=False)
    return [str(violation) for violation in checked]


def said(messages: Sequence[Message]) -> str:
    """All that stands in the messages, results included."""
    return js_json([openai_chat.encode_request(messages, model="m")["messages"]])


@given(histories())
def test_any_history_renders_to_a_request_that_is_taken(rows: tuple[Message, ...]) -> None:
    """Every call is answered at once and once, no result stands without its call: broken pairs, orphans, repeated ids."""
    assert violations(render_view(ViewParts(history=rows, incoming=(DONE,))).messages) == []


@given(histories())
def test_repairing_loses_no_text(rows: tuple[Message, ...]) -> None:
    """Every row's text is in the view, also an orphan result's."""
    shown = said(render_view(ViewParts(history=rows, incoming=(DONE,))).messages)
    texts = [row.text for row in rows] + [
        part.text for row in rows for r in row.results for part in r.content if isinstance(part, Text)
    ]
    assert [text for text in texts if text.strip() and js_json(text)[1:-1] not in shown] == []


@given(histories())
def test_every_repair_is_reported(rows: tuple[Message, ...]) -> None:
    """A view that differs from the history says why; one that does not says nothing."""
    view = render_view(ViewParts(history=rows))
    assert bool(view.repairs) == (view.messages != rows)


@given(histories())
def test_a_repaired_view_needs_no_repair(rows: tuple[Message, ...]) -> None:
    """Rendering is idempotent, so what the gate sees of a view is what the provider sees."""
    once = render_view(ViewParts(history=rows)).messages
    pairs = pair_tools(once)
    assert (pairs.orphan_results, pairs.unanswered) == ((), ())
    assert render_view(ViewParts(history=once)).messages == once


@given(histories())
def test_a_pending_call_is_left_to_its_results(rows: tuple[Message, ...]) -> None:
    """A call at the end that still waits gets no made-up result."""
    pending = pair_tools(rows).pending_from
    if pending is None:
        return
    shown = render_view(ViewParts(history=rows)).messages
    at = next(index for index, row in enumerate(shown) if row.id == rows[pending].id)
    assert NO_RESULT not in said(shown[at:])


@given(histories(odd=False))
def test_what_needs_no_repair_is_sent_as_it_is(rows: tuple[Message, ...]) -> None:
    """The same objects in the same order."""
    shown = render_view(ViewParts(history=rows)).messages
    if ORPHAN_RESULT not in said(shown) and NO_RESULT not in said(shown):
        assert [row for row in shown if row.role != "tool"] == [row for row in rows if row.role != "tool"]


@given(histories(), st.data())
def test_masking_hides_results_and_nothing_else(rows: tuple[Message, ...], data: st.DataObject) -> None:
    """Calls, texts, ids and the order stay; each masked result is one line; an unmasked one is untouched."""
    masks = tuple(mask for _, mask in maskable(rows, ()) if data.draw(st.booleans()))
    shown = apply_masks(rows, masks)
    hidden = {(mask.message_id, mask.call_id): mask.placeholder for mask in masks}
    assert [row.id for row in shown] == [row.id for row in rows]
    for row, masked in zip(rows, shown, strict=True):
        assert (masked.role, masked.text, masked.calls) == (row.role, row.text, row.calls)
        for before, after in zip(row.results, masked.results, strict=True):
            placeholder = hidden.get((row.id, before.call_id))
            assert after == before if placeholder is None else [p.text for p in after.content] == [placeholder]  # type: ignore[union-attr]
            assert placeholder is None or ("\n" not in placeholder and before.call_id in placeholder)


@given(histories(), st.data())
def test_what_is_masked_is_not_maskable_again(rows: tuple[Message, ...], data: st.DataObject) -> None:
    """Masks add up: what was masked once is not offered twice."""
    first = tuple(mask for _, mask in maskable(rows, ()) if data.draw(st.booleans()))
    offered = {(mask.message_id, mask.call_id) for _, mask in maskable(rows, first)}
    assert offered.isdisjoint((mask.message_id, mask.call_id) for mask in first)


def partners(rows: Sequence[Message], ids: Collection[str]) -> set[str]:
    """The ids of all rows that share a tool pair with one of `ids`."""
    return {
        rows[index].id
        for start, end in pair_tools(rows).spans
        if any(rows[index].id in ids for index in range(start, end + 1))
        for index in (start, end)
    }


@settings(max_examples=40)
@given(histories(odd=False, min_size=1), st.data())
def test_pins_bring_what_they_need(rows: tuple[Message, ...], data: st.DataObject) -> None:
    """The closure of some ids holds them, splits no pair, and does not grow again."""
    ids = data.draw(st.sets(st.sampled_from([row.id for row in rows]), max_size=3))
    closed = closed_under_tools(rows, ids)
    kept = tuple(row for row in rows if row.id in closed)
    assert ids <= closed
    assert violations(render_view(ViewParts(pins=kept, history=(DONE,))).messages) == []
    whole, part = pair_tools(rows), pair_tools(kept)
    assert len(part.orphan_results) <= len(whole.orphan_results)
    assert {kept[at].id for at, _ in part.unanswered} <= {rows[at].id for at, _ in whole.unanswered} | {
        rows[whole.pending_from].id if whole.pending_from is not None else ""
    }
