"""Sessions with a small window over any store, for tests about stores: they compact often, and no model is called."""

from turnfold.config.settings import Settings
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import Message, text_message
from turnfold.ports import Clock, Store
from turnfold.runtime.compactor import Compactor
from turnfold.session import Session
from turnfold.wiring import make_compactor, new_id

KEY = ConversationKey(tenant="acme", user="ann", conversation_id="small")
SETTINGS = Settings(context_window=800, counter="chars4", output_reserve=0, safety_margin=0)
"""Triggers at 640 tokens: a compaction every three or four turns."""


def small_session(
    store: Store,
    *,
    key: ConversationKey = KEY,
    settings: Settings = SETTINGS,
    clock: Clock | None = None,
    branch: str | None = None,
) -> Session:
    """Return a session that is to be entered; `clock` replaces the machine's."""
    made = make_compactor(settings)
    compactor = made if clock is None else _with_clock(made, clock)
    return Session(
        store, key, compactor, budget=settings.budget(exact=compactor.counter.exact), new_id=new_id, branch=branch
    )


def _with_clock(made: Compactor, clock: Clock) -> Compactor:
    return Compactor(
        counter=made.counter,
        summarizer=made.summarizer,
        fallback=made.fallback,
        policy=made.policy,
        clock=clock,
        new_frame=made.new_frame,
    )


def exchange(number: int, *, characters: int = 200) -> tuple[Message, Message]:
    """Return a user's message and its answer, about `characters` characters each, with ids `u<number>` and `a<number>`."""
    filler = " and so on and on, with this and that." * (characters // 38 + 1)
    return (
        text_message(f"u{number}", "user", f"Question {number} about ticket OPS-{number}.{filler}"[:characters]),
        text_message(f"a{number}", "assistant", f"Answer {number}: it is done in build {number}.{filler}"[:characters]),
    )
