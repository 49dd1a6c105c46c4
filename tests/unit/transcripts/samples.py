"""Small samples of every format, written for these tests, and what reads them."""

from pathlib import Path

from turnfold.messages.model import Message
from turnfold.transcripts import decode_one
from turnfold.transcripts.document import Transcript

FOLDER = Path(__file__).resolve().parents[2] / "data" / "transcripts"

FORMATS = {
    "anthropic_request.json": "anthropic",
    "chatgpt_conversations.json": "chatgpt",
    "claude_code_session.jsonl": "claude_code",
    "codex_rollout.jsonl": "codex",
    "letta_session.jsonl": "letta",
    "openai_chat.json": "openai_chat",
    "openai_finetune.jsonl": "openai_chat",
    "openai_messages.jsonl": "openai_chat",
    "openai_responses.json": "openai_responses",
    "pi_session.jsonl": "letta",
    "sillytavern_chat.jsonl": "sillytavern",
}
"""Sample files and the format that each is in."""


def sample(name: str) -> bytes:
    """The bytes of a sample."""
    return (FOLDER / name).read_bytes()


def read(name: str) -> Transcript:
    """The only conversation of a sample, read strictly."""
    return decode_one(sample(name), strict=True)


def told(messages: tuple[Message, ...]) -> list[str]:
    """Each message as `role: text`, calls and results as names in brackets."""
    return [f"{message.role}: {message.text or said(message)}" for message in messages]


def said(message: Message) -> str:
    """What a message without text says."""
    calls = [f"[{call.name}]" for call in message.calls]
    results = [part.text for result in message.results for part in result.content if hasattr(part, "text")]
    return " ".join([*calls, *results])
