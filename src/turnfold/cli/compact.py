"""`turnfold compact`: compact the conversation in a file, once, whatever the pressure."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from turnfold import wiring
from turnfold.cli import options
from turnfold.cli.files import check_writable, read_transcript, write_file
from turnfold.cli.terminal import bar, console, error_console, print_json, reason_list, run, table, visible
from turnfold.config.settings import Settings
from turnfold.core.plan import Plan
from turnfold.core.reasons import Reason
from turnfold.errors import ContextOverflowError, PlanningError
from turnfold.messages.model import Message, leading_system
from turnfold.runtime.decision import Decision, Prepared
from turnfold.session import Session
from turnfold.transcripts import CODECS, encode
from turnfold.transcripts.document import Transcript


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compact")(compact)


def compact(
    file: Annotated[str, typer.Argument(help="OpenAI chat JSON, JSON Lines, letta-code, ...; - for standard input.")],
    window: options.Window = None,
    percentage: options.Percentage = None,
    counter: options.Counter = None,
    mode: options.Mode = None,
    floor_aware: options.FloorAware = None,
    output_reserve: options.OutputReserve = None,
    safety_margin: options.SafetyMargin = None,
    trigger_ratio: options.TriggerRatio = None,
    max_summary_tokens: options.MaxSummaryTokens = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    focus: Annotated[str | None, typer.Option("--focus", help="What the summary should dwell on.")] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write the compacted conversation here.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output file.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan only: no summary is written.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Compact the conversation in FILE and show what a model would see."""
    resolved = options.settings_from(
        context_window=window,
        percentage=percentage,
        counter=counter,
        mode=mode,
        floor_aware=floor_aware,
        output_reserve=output_reserve,
        safety_margin=safety_margin,
        trigger_ratio=trigger_ratio,
        max_summary_tokens=max_summary_tokens,
        model=model,
        base_url=base_url,
        summarizer="model" if model else None,
    )
    if output is not None:
        check_writable(output, force=force)
    transcript = read_transcript(file)
    with error_console.status("compacting"):
        report = run(_compact(transcript, _as_seed(resolved.settings), focus, dry_run=dry_run))
    if output is not None and report.view is not None:
        shown = msgspec.structs.replace(transcript, messages=report.view, branches=(), boundaries=(), opaque=())
        writer = transcript.format if CODECS[transcript.format].encode else "openai_chat"
        write_file(output, encode(shown, writer))
    _print(report, as_json=as_json)
    if report.error is not None:
        raise report.error


def _as_seed(settings: Settings) -> Settings:
    """The agent seed knows a window and nothing else: in its mode nothing is reserved unless asked for."""
    if settings.floor_aware:
        return settings
    reserve, margin = settings.output_reserve or 0, settings.safety_margin or 0
    return msgspec.structs.replace(settings, output_reserve=reserve, safety_margin=margin)


class Report(msgspec.Struct, kw_only=True):
    """What is printed. Messages and tokens are of the whole request, `message_*` without the fixed prompt and tools."""

    document: dict[str, Any]
    view: tuple[Message, ...] | None = None
    error: ContextOverflowError | None = None


async def _compact(transcript: Transcript, settings: Settings, focus: str | None, *, dry_run: bool) -> Report:
    fixed = leading_system(transcript.messages)
    history = transcript.messages[len(fixed) :]
    async with wiring.memory_store() as store:
        session = wiring.open_session(store, settings, system="\n\n".join(message.text for message in fixed))
        session.tools = transcript.tools
        async with session:
            await session.append(*history)
            return await _tried(session, settings, focus, dry_run=dry_run)


async def _tried(session: Session, settings: Settings, focus: str | None, *, dry_run: bool) -> Report:
    before = await session.view()
    problem: Reason | None = None
    try:
        plan: Plan | None = (await session.plan())[0]
    except PlanningError as error:
        plan, problem = None, Reason(code="no_plan", detail=error.reason)
    if dry_run:
        return Report(document=_planned(before, plan, settings, problem))
    try:
        prepared = await session.compact(focus)
    except ContextOverflowError as error:
        document = _planned(before, plan, settings, Reason(code="overflow", detail=str(error)))
        return Report(document=document | {"outcome": "overflow", "summary": None}, error=error)
    return Report(document=_done(before, prepared, prepared.plan or plan, settings), view=prepared.messages)


def _facts(before: Decision, plan: Plan | None, settings: Settings) -> dict[str, Any]:
    return {
        "mode": plan.mode if plan else "all",
        "cutoff_index": plan.cutoff_index if plan else 0,
        "messages_before": len(before.messages),
        "tokens_before": before.tokens,
        "message_tokens_before": before.message_tokens_before,
        "context_window": settings.context_window,
        "counter": settings.counter,
    }


def _planned(before: Decision, plan: Plan | None, settings: Settings, problem: Reason | None) -> dict[str, Any]:
    """What a plan promises: the summary at its allowance."""
    facts = _facts(before, plan, settings)
    reasons = reason_list((problem,)) if problem else []
    if plan is None:
        after = {"messages_after": len(before.messages), "tokens_after": before.tokens}
        tokens = before.message_tokens_before
    else:
        floor = before.tokens - before.message_tokens_before
        tokens = plan.kept_tokens + plan.allowance
        fixed = len(before.messages) - before.messages_before
        kept = before.messages_before - plan.cutoff_index
        after = {"messages_after": fixed + kept + 1, "tokens_after": floor + tokens}
        reasons += [{"code": "plan", "detail": reason} for reason in plan.reasons]
    return facts | after | {"message_tokens_after": tokens, "outcome": "planned", "reasons": reasons}


def _done(before: Decision, prepared: Prepared, plan: Plan | None, settings: Settings) -> dict[str, Any]:
    notes = [{"code": "plan", "detail": reason} for reason in plan.reasons] if plan else []
    return _facts(before, plan, settings) | {
        "messages_after": len(prepared.messages),
        "tokens_after": prepared.tokens,
        "message_tokens_after": prepared.message_tokens_after,
        "summary": prepared.summary,
        "outcome": prepared.outcome,
        "reasons": notes + reason_list(prepared.reasons),
        "calls": prepared.calls,
        "milliseconds": prepared.milliseconds,
    }


def _print(report: Report, *, as_json: bool) -> None:
    document = report.document
    if as_json:
        return print_json(document)
    out, window = console(), document["context_window"]
    rows = [
        ("messages", document["messages_before"], document["messages_after"]),
        ("tokens", document["tokens_before"], document["tokens_after"]),
        ("message tokens", document["message_tokens_before"], document["message_tokens_after"]),
    ]
    title = f"{document['outcome']} ({document['mode']}, cut before message {document['cutoff_index']})"
    out.print(table(title, ("", "before", "after"), rows))
    for name in ("before", "after"):
        out.print(f"{name:>6} {bar(document[f'tokens_{name}'], window)} of {window}")
    for reason in document["reasons"]:
        out.print(f"- {visible(reason['code'])}: {visible(reason['detail'])}", markup=False)
    if document.get("summary"):
        out.print("\nSummary:\n" + visible(document["summary"]), markup=False)
    return None
