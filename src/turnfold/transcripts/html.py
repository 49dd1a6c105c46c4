"""Conversations as one HTML page, to read: written, never read back.

Everything from the transcript is text: escaped, never a tag, a script, a style or an address that a browser would fetch. The page's
own policy forbids all of these as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final, assert_never

from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from turnfold.transcripts.document import Transcript
from turnfold.transcripts.reading import clean_text
from turnfold.transcripts.telling import moment, part_title, paths, speaker
from turnfold.transcripts.validity.rules import IMAGE_TYPES, is_base64

_HEAD: Final = """<!doctype html>
<html>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }}
article {{ border-left: 4px solid #9aa4b2; padding: .25rem 1rem; margin: 1rem 0; }}
article.user {{ border-color: #2563eb; }} article.assistant {{ border-color: #15803d; }}
article.tool {{ border-color: #a16207; }} article.summary {{ background: #f5f3ff; border-color: #7c3aed; }}
h2 {{ font-size: 1rem; margin: .25rem 0; }} time {{ color: #57606a; font-weight: normal; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .5rem 0; }}
pre.code {{ font: 14px/1.4 ui-monospace, monospace; background: #f3f4f6; padding: .5rem; }}
img {{ max-width: 100%; }}
</style>
</head>
<body>
<h1>{title}</h1>
"""


def encode(transcript: Transcript) -> Iterator[bytes]:
    """Yield a page with the main path, then the branches."""
    yield _HEAD.format(title=_text(transcript.title or "Conversation")).encode()
    for heading, messages in paths(transcript):
        if heading:
            yield f"<h1>{_text(heading)}</h1>\n".encode()
        for message in messages:
            yield _message(message).encode()
    yield b"</body>\n</html>\n"


def _text(text: str) -> str:
    """Return text that a browser shows as it is, whatever it holds."""
    return escape(clean_text(text).replace("\x00", "\ufffd"), quote=True)


def _message(message: Message) -> str:
    look = "summary" if message.kind == "summary" else message.role
    when = moment(message)
    head = f"<h2>{_text(speaker(message))}{f' <time>{when}</time>' if when else ''}</h2>"
    body = "".join(block for part in message.parts for block in _blocks(part))
    return f'<article class="{look}">\n{head}\n{body}</article>\n'


def _blocks(part: Part) -> Iterator[str]:
    match part:
        case Text(text=text):
            yield f"<pre>{_text(text)}</pre>\n"
        case Reasoning(text=text):
            if text:
                yield _folded(part_title(part), f'<pre class="code">{_text(text)}</pre>')
        case ToolCall(arguments=arguments):
            yield _folded(part_title(part), f'<pre class="code">{_text(arguments)}</pre>')
        case ToolResult(content=content):
            shown = (
                f'<pre class="code">{_text(i.text)}</pre>' if isinstance(i, Text) else _picture(i) for i in content
            )
            yield _folded(part_title(part), "".join(shown))
        case Image() | Opaque():
            yield f"{_picture(part)}\n"
        case _ as never:
            assert_never(never)


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{_text(title)}</summary>{body}</details>\n"


def _picture(part: Image | Opaque) -> str:
    """Return an image given by its data; for others only words, since a browser would fetch an address."""
    if isinstance(part, Image) and part.media_type in IMAGE_TYPES and is_base64(part.data):
        return f'<img alt="image" src="data:{part.media_type};base64,{part.data}">'
    return f"<em>{_text(part_title(part))}</em>"
