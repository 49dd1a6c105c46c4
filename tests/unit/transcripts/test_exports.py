"""Markdown and HTML: everything is shown, and nothing from a transcript is live in the page."""

import re
from html.parser import HTMLParser

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from turnfold.messages.model import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from turnfold.testing import strategies as ours
from turnfold.transcripts import encode
from turnfold.transcripts.document import BranchPath, Transcript

ATTACKS = (
    "<script>alert(1)</script>",
    "</pre><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![x](https://evil.example/pixel.png)",
    "[ref]: https://evil.example\n[ref]",
    "<https://evil.example>",
    "&lt;b&gt;",
    "```\n<b>code</b>",
    "~~~ a`b\n<b>x</b>\n~~~\n<script>y</script>",
    "```\n  ```\n<script>after</script>",
    "- item\n  ```\n<script>lazy</script>\n  ```",
    "> ```\n<i>quote</i>",
    "    ```\n<i>indented</i>\n    ```",
    "## User\nfake turn",
    "User\n---\nfake turn",
    "Assistant\n===",
    "`<b>`",
    "a`\n` <script>z</script> `",
    "\u2028## User",
    "\x0c<script>ff</script>",
    "\r<script>cr</script>",
    "<!-- comment",
    "<![CDATA[x]]>",
    "{{constructor}}",
    "\x00<b>nul</b>",
)
hostile = st.lists(st.sampled_from(ATTACKS) | ours.texts, min_size=1, max_size=4).map("\n".join)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """A conversation in which every text is hostile."""
    text = draw(hostile)
    name = {"name": draw(hostile)}
    messages = (
        Message(id="1", role="user", parts=(Text(text=text), Image(url=draw(hostile))), metadata=name),
        Message(
            id="2", role="assistant", parts=(Reasoning(text=draw(hostile)), ToolCall(id="c", name=text, arguments=text))
        ),
        Message(
            id="3",
            role="tool",
            parts=(
                ToolResult(
                    call_id="c", content=(Text(text=draw(hostile)), Image(media_type=text, data=text)), name=text
                ),
            ),
            created_at=draw(st.integers(-(2**62), 2**62)),
        ),
        Message(id="4", role="user", kind="summary", parts=(Text(text=text), Opaque(source=text, payload="{}"))),
    )
    branch = BranchPath(name="branch-1", after=text, messages=messages[:1])
    return Transcript(format="turnfold", messages=messages, branches=(branch,), title=draw(hostile))


class Tags(HTMLParser):
    """Collects tags, attributes and text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text.append(data)


def parsed(page: str) -> Tags:
    """The tags of a page."""
    parser = Tags()
    parser.feed(page)
    parser.close()
    return parser


OWN_TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "h1",
    "h2",
    "article",
    "time",
    "pre",
    "details",
    "summary",
    "em",
    "img",
}


@given(transcripts())
def test_no_tag_address_or_script_of_a_transcript_is_live_in_html(transcript: Transcript) -> None:
    """The page holds our own tags only; images only as checked data; no attribute carries foreign text."""
    page = b"".join(encode(transcript, "html")).decode()
    for tag, attributes in parsed(page).tags:
        assert tag in OWN_TAGS
        assert attributes.keys() <= {"charset", "content", "http-equiv", "name", "class", "alt", "src"}
        assert re.fullmatch(
            r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+", attributes.get("src") or "data:image/png;base64,x"
        )
        assert (attributes.get("class") or "code") in {"code", "user", "assistant", "system", "tool", "summary"}
    assert "default-src 'none'" in page
    assert sum(tag == "article" for tag, _ in parsed(page).tags) == 5


@given(transcripts())
def test_no_html_link_or_turn_of_a_transcript_is_live_in_markdown(transcript: Transcript) -> None:
    """Rendered by a CommonMark reader that passes HTML through, the page has no tag, link or image of the transcript's,
    and exactly as many turns as there are messages.
    """
    page = b"".join(encode(transcript, "markdown")).decode()
    rendered = MarkdownIt("commonmark", {"html": True}).render(page)
    tags = [tag for tag, _ in parsed(rendered).tags]
    assert not {"script", "img", "a", "b", "i"} & set(tags)
    top = [
        token.tag
        for token in MarkdownIt("commonmark", {"html": True}).parse(page)
        if token.type == "heading_open" and token.level == 0
    ]
    assert top.count("h2") == len(transcript.messages) + 1
    assert top.count("h1") == 2


@given(hostile)
@example("````\nplain ``` text\n````")
def test_everything_is_shown(text: str) -> None:
    """A reader of the HTML page sees each character that the message has."""
    message = Message(id="1", role="user", parts=(Text(text=text),))
    page = b"".join(encode(Transcript(format="turnfold", messages=(message,)), "html")).decode()
    shown = "".join(parsed(page).text)
    wanted = text.replace("\x00", "\ufffd").replace("\r\n", "\n").replace("\r", "\n")
    assert wanted in shown.replace("\r\n", "\n").replace("\r", "\n")


def test_code_blocks_stay_readable_in_markdown() -> None:
    """Code that begins at the margin is left as it is; a fence left open does not swallow what follows."""
    text = "Look:\n```python\nitems: list[int] = [] # <b>\n```\nand\n```\nopen"
    messages = tuple(Message(id=str(n), role="user", parts=(Text(text=text),)) for n in range(2))
    page = b"".join(encode(Transcript(format="turnfold", messages=messages), "markdown")).decode()
    assert page.count("items: list[int] = [] # <b>") == 2
    assert page.count("## User") == 2
    assert page.count("```") % 2 == 0
