"""How a fake upstream puts its answers on the wire: OpenAI Chat Completions and Anthropic Messages, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, Protocol

import msgspec

from turnfold.testing.fake_answers import Body, Called, Fails, Says

PIECE: Final = 7
"""Characters of text in one streamed event."""

CREATED: Final = 1_700_000_000


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One call being answered: its number, the request's body, and the tokens that the server counted."""

    number: int
    body: Body
    prompt_tokens: int
    output_tokens: int

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.body.get("model", "fake-model"))


class Dialect(Protocol):
    """One wire format."""

    def whole(self, answer: Says, exchange: Exchange) -> Body:
        """Return the body of a good answer."""

    def events(self, answer: Says, exchange: Exchange) -> Iterator[bytes]:
        """Yield the events of a streamed good answer, its end included."""

    def error(self, failure: Fails) -> Body:
        """Return the body of an error."""

    def error_event(self, failure: Fails) -> bytes:
        """Return an error in the middle of a stream."""


def _pieces(text: str | None) -> Iterator[str]:
    for at in range(0, len(text or ""), PIECE):
        yield (text or "")[at : at + PIECE]


def _event(value: Body, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


class OpenAIDialect:
    """Chat Completions."""

    def whole(self, answer: Says, exchange: Exchange) -> Body:
        """Return a `chat.completion`."""
        message: Body = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
        if answer.reasoning is not None:
            message["reasoning_content"] = answer.reasoning
        if answer.calls:
            message["tool_calls"] = [self._call(call) for call in answer.calls]
        choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
        return {**self._head("chat.completion", exchange), "choices": [choice], "usage": self._usage(answer, exchange)}

    def events(self, answer: Says, exchange: Exchange) -> Iterator[bytes]:
        """Yield `chat.completion.chunk`s, usage last where it was asked for."""
        for delta in self._deltas(answer):
            yield self._chunk(exchange, delta, None)
        yield self._chunk(exchange, {}, answer.finish_reason)
        if (exchange.body.get("stream_options") or {}).get("include_usage"):
            head = self._head("chat.completion.chunk", exchange)
            yield _event({**head, "choices": [], "usage": self._usage(answer, exchange)})
        yield b"data: [DONE]\n\n"

    def error(self, failure: Fails) -> Body:
        """Return `{"error": ...}`."""
        error = {"message": failure.message, "type": failure.type, "param": None, "code": failure.code}
        return {"error": error}

    def error_event(self, failure: Fails) -> bytes:
        """Return the error as one event."""
        return _event(self.error(failure))

    def _deltas(self, answer: Says) -> Iterator[Body]:
        yield {"role": "assistant", "content": ""}
        yield from ({"reasoning_content": piece} for piece in _pieces(answer.reasoning))
        yield from ({"content": piece} for piece in _pieces(answer.text))
        yield from ({"refusal": piece} for piece in _pieces(answer.refusal))
        for index, call in enumerate(answer.calls):
            yield {
                "tool_calls": [{"index": index, **self._call(call), "function": {"name": call.name, "arguments": ""}}]
            }
            for piece in _pieces(call.arguments):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def _chunk(self, exchange: Exchange, delta: Body, finish_reason: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _event({**self._head("chat.completion.chunk", exchange), "choices": [choice]})

    def _head(self, kind: str, exchange: Exchange) -> Body:
        return {"id": f"chatcmpl-fake-{exchange.number}", "object": kind, "created": CREATED, "model": exchange.model}

    def _usage(self, answer: Says, exchange: Exchange) -> Body:
        if answer.usage is not None:
            return answer.usage
        prompt, output = exchange.prompt_tokens, exchange.output_tokens
        return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}

    def _call(self, call: Called) -> Body:
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


class AnthropicDialect:
    """Messages."""

    STOPS: Final = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
    TYPES: Final = {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        429: "rate_limit_error",
    }

    def whole(self, answer: Says, exchange: Exchange) -> Body:
        """Return a `message`."""
        return {**self._head(answer, exchange), "content": self._blocks(answer), "stop_reason": self._stop(answer)}

    def events(self, answer: Says, exchange: Exchange) -> Iterator[bytes]:
        """Yield the events from `message_start` to `message_stop`."""
        head = {**self._head(answer, exchange), "content": [], "stop_reason": None}
        yield self._typed("message_start", message=head)
        for index, block in enumerate(self._blocks(answer)):
            yield from self._block_events(index, block)
        delta = {"stop_reason": self._stop(answer), "stop_sequence": None}
        yield self._typed("message_delta", delta=delta, usage={"output_tokens": exchange.output_tokens})
        yield self._typed("message_stop")

    def error(self, failure: Fails) -> Body:
        """Return `{"type": "error", ...}`."""
        kind = self.TYPES.get(failure.status, "api_error" if failure.status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": failure.message}}

    def error_event(self, failure: Fails) -> bytes:
        """Return the error as one event."""
        return _event(self.error(failure), "error")

    def _block_events(self, index: int, block: Body) -> Iterator[bytes]:
        deltas = {
            "text": ("text", "text_delta", "text"),
            "thinking": ("thinking", "thinking_delta", "thinking"),
            "tool_use": ("input", "input_json_delta", "partial_json"),
        }
        field, kind, key = deltas[block["type"]]
        text = json.dumps(block[field]) if field == "input" else block[field]
        empty = {**block, field: {} if field == "input" else ""}
        yield self._typed("content_block_start", index=index, content_block=empty)
        for piece in _pieces(text):
            yield self._typed("content_block_delta", index=index, delta={"type": kind, key: piece})
        if block["type"] == "thinking":
            signature = {"type": "signature_delta", "signature": block["signature"]}
            yield self._typed("content_block_delta", index=index, delta=signature)
        yield self._typed("content_block_stop", index=index)

    def _typed(self, kind: str, **fields: Any) -> bytes:
        return _event({"type": kind, **fields}, kind)

    def _head(self, answer: Says, exchange: Exchange) -> Body:
        counted = {"input_tokens": exchange.prompt_tokens, "output_tokens": exchange.output_tokens}
        return {
            "id": f"msg_fake_{exchange.number}",
            "type": "message",
            "role": "assistant",
            "model": exchange.model,
            "stop_sequence": None,
            "usage": answer.usage if answer.usage is not None else counted,
        }

    def _blocks(self, answer: Says) -> list[Body]:
        blocks: list[Body] = []
        if answer.reasoning is not None:
            blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": "c2lnbmVk"})
        if answer.text or answer.refusal:
            blocks.append({"type": "text", "text": answer.text or answer.refusal})
        blocks += (
            {"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)} for c in answer.calls
        )
        return blocks

    def _stop(self, answer: Says) -> str:
        return "refusal" if answer.refusal else self.STOPS.get(answer.finish_reason, answer.finish_reason)


DIALECTS: Final[dict[str, Dialect]] = {"/v1/chat/completions": OpenAIDialect(), "/v1/messages": AnthropicDialect()}
"""By the path that a request is posted to."""
