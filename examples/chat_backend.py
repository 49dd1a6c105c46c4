"""A chat backend in one file: twenty turns with a character, a restart, an edit, a regenerated reply, a sliding window.

The product keeps its own messages, in a list here, and sends the recent ones with each request; turnfold keeps checkpoints
in a SQLite file. Runs in a new folder, without network or key: a script plays the model that replies, and the extractive
summarizer writes the summaries. Ends with exit code 1 when anything it says does not hold.
"""

import asyncio
import tempfile
from pathlib import Path

from turnfold import CompactRequest, CompactRuntime, Message, Prepared, text_message
from turnfold.config.models import models_of
from turnfold.config.scenario import scenario_of
from turnfold.config.settings import Settings
from turnfold.wiring import open_compact_runtime, open_store

SCENARIO = scenario_of(
    {
        "kind": "v2",
        "contextGovernance": {"mode": "enforce"},
        "compact": {
            "enabled": True,
            "compactorModelConfigId": "summaries",
            "triggerRatio": 0.8,
            "keepLastCanonicalGroups": 2,
            "checkpointMutationTimeoutMs": 5000,
            "safetyMarginTokens": 64,
            "maxSummaryTokens": 160,
            "profile": "configurable-v2",
            "reliability": {
                "version": "v1.1",
                "minGenerationTokens": 256,
                "maxCandidateAttempts": 24,
                "maxModelCalls": 2,
                "maxCompactionMs": 120_000,
            },
            "inputProtocol": "dream_text_v0",
            "outputFormat": "plain_text",
            "lengthPolicy": "accept_bounded",
            "executionPolicy": "bounded_recent",
        },
    }
)
MODELS = models_of(
    {
        "models": {
            "summaries": {"provider": "extractive"},
            "liya": {"provider": "scripted", "replies": ["……"], "contextWindow": 760, "maxOutputTokens": 150},
        }
    }
)
PROMPT = text_message("prompt", "system", "你是莉娅，临水城图书馆的管理员。说话简短，记得别人答应过的事。")
PERSONA = "莉娅，图书馆管理员，细心，守信。"
CARRIED = 24
"""Messages that a request carries at most, once the window slides: older ones stay in the product's own database."""

LINES = [
    ("莉娅，地下书库还开着吗？", "开着。这把铜钥匙借你，天黑前一定要还给我。"),
    ("好，我答应你，天黑前把铜钥匙还回来。", "记在登记簿上了，编号 K-114。楼梯第三级松了，小心。"),
    ("我找到一本《临水志》，里面夹着水道图。", "那是沈砚画的，三处闸门标了红点。别折它。"),
    ("红点是北闸、磨坊闸和钟楼下面那处。", "钟楼那处写着“勿开”，墨色不同，是后来添的。"),
    ("我听见隔壁有人走动，门缝下有光。", "地下只有你登记。从西侧楼梯上来，去城门找何远。"),
    ("何远说昨夜二更有人穿灰袍出城，左脚有点跛。", "灰袍只有四件，第四件是沈砚的。"),
    ("那人提着绿罩子的灯。", "绿罩灯一共六盏，我刚数过，少了一盏。"),
    ("我和何远到钟楼了，锁没有锈。", "先看门槛上的灰，有没有脚印。"),
    ("有脚印，一深一浅。桌上有信，写着“给莉娅”。", "先出来，到城门再念给我听。"),
    ("信上说旧闸撑不过这个雨季，他一个人在修。", "所以“勿开”是他写的。我错怪他了。"),
]


class Backend:
    """The product's side: its messages, and one request to turnfold for each reply."""

    def __init__(self, runtime: CompactRuntime, messages: list[Message]) -> None:
        self.runtime, self.messages = runtime, messages
        self.number = len(messages) // 2

    async def turn(self, said: str, replied: str) -> Prepared:
        """Serve one turn: prepare, send what was prepared to the model (here a script), keep both messages."""
        self.number += 1
        incoming = text_message(f"u{self.number}", "user", said)
        prepared = await self.prepare(incoming)
        self.messages += [incoming, text_message(f"a{self.number}", "assistant", replied)]
        return prepared

    async def prepare(self, incoming: Message, *, request_type: str = "chat") -> Prepared:
        """Ask turnfold what to send for the user's new line."""
        request = CompactRequest(
            conversation_id="copper-key",
            user="mei",
            request_type=request_type,
            role_id="liya",
            persona=PERSONA,
            fixed_prompt=(PROMPT,),
            history=tuple(self.messages[-CARRIED:]),
            incoming=(incoming,),
        )
        prepared = await self.runtime.prepare(request)
        claim(prepared.tokens <= prepared.budget.input_budget, "the request fits its budget")
        tell(incoming.id, prepared)
        return prepared


def tell(name: str, prepared: Prepared) -> None:
    """Print one turn: what this request sees, whether later ones will, the checkpoint, and the tokens."""
    version = "-" if prepared.version is None else str(prepared.version)
    budget = prepared.budget.input_budget
    print(f"{name:>9}  {prepared.outcome:<9} {prepared.persistence:<11} {version:>7}  {prepared.tokens:>5} of {budget}")


def claim(holds: bool, text: str) -> None:
    """Stop the example where something that it says is not so."""
    if not holds:
        raise SystemExit(f"NO: {text}")


async def serve(file: Path, messages: list[Message], first: int, last: int) -> Prepared | None:
    """Open everything anew, as a process that has just started, and serve some of the twenty turns."""
    prepared = None
    async with (
        open_store(Settings(store=str(file))) as store,
        open_compact_runtime(store, SCENARIO, MODELS, actor="liya", name="copper-key") as runtime,
    ):
        backend = Backend(runtime, messages)
        for number in range(first, last + 1):
            said, replied = LINES[(number - 1) % len(LINES)]
            day = "" if number <= len(LINES) else f"（第{number}天）"
            prepared = await backend.turn(day + said, replied)
    return prepared


async def edits(file: Path, messages: list[Message]) -> None:
    """Edit a covered message, then ask for another version of the latest reply."""
    async with (
        open_store(Settings(store=str(file))) as store,
        open_compact_runtime(store, SCENARIO, MODELS, actor="liya", name="copper-key") as runtime,
    ):
        backend = Backend(runtime, messages)
        print("\nThe user edits a message that the summary covers: the summary of the old text is not used again.")
        index = len(messages) - CARRIED + 4
        messages[index] = text_message(messages[index].id, "user", "我改主意了：铜钥匙我明天再还。")
        edited = await backend.turn("刚才那句我改过了，你看到了吗？", "看到了，明天还也行。")
        why = [reason.detail for reason in edited.reasons if reason.code == "edited"]
        claim(bool(why), "the edit is noticed")
        print(f"           {why[0]}")

        print("\nThe latest reply is generated again: the discarded one is in no summary, for it was not covered yet.")
        discarded = messages.pop()
        asked = messages.pop()
        again = await backend.prepare(asked)
        claim(all(discarded.id != message.id for message in again.messages), "the discarded reply is gone")
        messages += [asked, text_message(f"{discarded.id}-b", "assistant", "看到了。那明天日落之前。")]

        print("\nA preview may read checkpoints, but changes none.")
        preview = await backend.prepare(
            text_message("preview", "user", "你还记得钥匙的编号吗？"), request_type="preview"
        )
        claim(preview.persistence in ("not_needed", "not_allowed"), "a preview stores nothing")


async def run(folder: Path) -> None:
    """Serve the conversation."""
    file, messages = folder / "checkpoints.db", list[Message]()
    print(f"{'turn':>9}  {'outcome':<9} {'persistence':<11} version  tokens")
    await serve(file, messages, 1, 12)
    print("\nThe process ends, and another one goes on: it finds the checkpoint, and history and summary fit together.")
    resumed = await serve(file, messages, 13, 13)
    claim(resumed is not None and resumed.version is not None, "the checkpoint survives the restart")
    print(f"\nThe conversation is longer than the {CARRIED} messages that a request carries: its start slides away.")
    slid = await serve(file, messages, 14, 20)
    claim(slid is not None and slid.summary is not None, "the summary stands for what slid away")
    await edits(file, messages)
    print("\nThe product still has every message: turnfold never changed one.")
    claim(len(messages) == 42, "twenty-one turns are kept")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="turnfold-chat-") as name:
        asyncio.run(run(Path(name)))
