"""`turnfold chat`: talk to a model in a conversation that never outgrows its window."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any

import typer

from turnfold import wiring
from turnfold.cli import options
from turnfold.cli.show import describe
from turnfold.cli.terminal import bar, console, note, print_json, run, visible
from turnfold.config.settings import Settings
from turnfold.errors import TurnfoldError
from turnfold.messages.model import Message
from turnfold.ports import TextDelta
from turnfold.runtime.events import CompactionFailed, CompactionFinished, Event
from turnfold.session import Session
from turnfold.session.agent import Agent

HELP = "/compact [focus], /context, /rewind ID, /pin ID, /help, /quit"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("chat")(chat)


def chat(
    prompt: Annotated[str | None, typer.Option("--prompt", "-p", help="Say this, print the reply and end.")] = None,
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    window: options.Window = None,
    counter: options.Counter = None,
    output_reserve: options.OutputReserve = None,
    safety_margin: options.SafetyMargin = None,
    trigger_ratio: options.TriggerRatio = None,
    max_summary_tokens: options.MaxSummaryTokens = None,
    mode: options.Mode = None,
    floor_aware: options.FloorAware = None,
    system: options.System = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    provider: options.Provider = None,
    memory: options.Memory = None,
    as_json: options.AsJson = False,
) -> None:
    """Chat, compacting as needed. Without a model an echo answers, so that all else can be tried."""
    settings = options.settings_from(
        store=store,
        tenant=tenant,
        user=user,
        conversation=conversation,
        context_window=window,
        counter=counter,
        output_reserve=output_reserve,
        safety_margin=safety_margin,
        trigger_ratio=trigger_ratio,
        max_summary_tokens=max_summary_tokens,
        mode=mode,
        floor_aware=floor_aware,
        system=system,
        model=model,
        base_url=base_url,
        provider=provider,
        memory=memory,
    ).settings
    if settings.model is None:
        note("no model is configured (--model, --base-url): an echo answers")
    run(_chat(settings, prompt, as_json=as_json))


async def _chat(settings: Settings, prompt: str | None, *, as_json: bool) -> None:
    events: list[Event] = []
    model = wiring.chat_model(settings)
    async with wiring.open_store(settings) as store:
        session = wiring.open_session(store, settings, model=model, listener=events.append)
        async with session:
            talk = _Talk(session, Agent(session, model, max_output=settings.max_output), events)
            if prompt is not None:
                await talk.once(prompt, as_json=as_json)
            else:
                await talk.interactively()


class _Talk:
    """A chat on the terminal."""

    def __init__(self, session: Session, agent: Agent, events: list[Event]) -> None:
        self.session, self.agent, self.events = session, agent, events

    async def once(self, text: str, *, as_json: bool) -> None:
        reply = await self._turn(text, streamed=not as_json)
        if as_json:
            print_json({"reply": reply, "compactions": [compaction_line(e) for e in self._finished()]})
            return
        self._print_events()

    async def _turn(self, text: str, *, streamed: bool) -> str:
        reply, shown = "", False
        async for event in self.agent.turn(text):
            if isinstance(event, TextDelta) and streamed:
                console().print(visible(event.text), end="", markup=False)
                shown = True
            elif isinstance(event, Message) and event.role == "assistant":
                reply = event.text
        if streamed:
            console().print("" if shown else visible(reply), markup=False)
        return reply

    def _finished(self) -> list[CompactionFinished]:
        return [event for event in self.events if isinstance(event, CompactionFinished)]

    def _print_events(self) -> None:
        for event in self.events:
            if isinstance(event, CompactionFinished):
                console().print(compaction_line(event), markup=False, soft_wrap=True)
            elif isinstance(event, CompactionFailed):
                note("not compacted: " + "; ".join(str(reason) for reason in event.reasons[-3:]))
        self.events.clear()

    async def interactively(self) -> None:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415 - line editing and history, where the platform has it

        console().print(f"{HELP}\n", style="dim", markup=False)
        while True:
            line = await self._ask()
            if line is None or line in ("/quit", "/exit"):
                return
            try:
                await (self._command(line) if line.startswith("/") else self._say(line))
            except TurnfoldError as error:
                note(str(error))

    async def _ask(self) -> str | None:
        decision = await self.session.view()
        gauge = bar(decision.tokens, self.session.budget.trigger_line, 10)
        try:
            return (await asyncio.to_thread(input, f"{gauge} > ")).strip()
        except EOFError:
            return None

    async def _say(self, line: str) -> None:
        if line:
            await self._turn(line, streamed=True)
            self._print_events()

    async def _command(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        match name:
            case "/compact":
                await self.session.compact(argument.strip() or None)
                self._print_events()
            case "/context":
                document: dict[str, Any] = await describe(self.session)
                for row in document["context"]:
                    console().print(f"{row['id']}  {row['type']}: {row['text']}", markup=False, soft_wrap=True)
            case "/rewind":
                branch = await self.session.rewind(argument.strip())
                note(f"on branch {branch.name}")
            case "/pin":
                await self.session.pin(argument.strip())
            case _:
                note(HELP)


def compaction_line(event: CompactionFinished) -> str:
    """Return the one line that tells of a compaction; `~` marks an estimated count."""
    about = "" if event.exact else "~"
    return (
        f"⇣ compacted ({event.trigger}): {event.messages_before} → {event.messages_after} messages, "
        f"{about}{event.message_tokens_before} → {about}{event.message_tokens_after} tokens"
    )
