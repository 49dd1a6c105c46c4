"""A request that is too large for a model is told from every other failure, by the words of each provider."""

from pathlib import Path

import pytest

from tests.parity.lines import lines
from turnfold.core.overflow import is_overflow, says_overflow

OVERFLOWS = {
    "openai": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
    "openai responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "openai tpm": "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 31000.",
    "anthropic": "prompt is too long: 213462 tokens > 200000 maximum",
    "anthropic output": "input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
    "anthropic body": '413 {"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
    "bedrock": "ValidationException: Input is too long for requested model.",
    "bedrock prompt": "The model returned the following errors: prompt is too long: 210000 tokens > 199999 maximum",
    "gemini": "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
    "vertex": "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576. Reduce the input token count and try again.",
    "xai": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "groq": "Please reduce the length of the messages or completion.",
    "openrouter": "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (38000 of text input, 2000 in the output).",
    "github copilot": "prompt token count of 70000 exceeds the limit of 64000",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "llama.cpp typed": "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing the context size",
    "lm studio": "tokens to keep from the initial prompt is greater than the context length",
    "ollama": "the prompt is longer than the context length of the model: input exceeds maximum context length",
    "vllm": "The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller",
    "vllm 2": "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens in the messages",
    "tgi": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
    "sglang": "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "mistral": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "minimax": "invalid params, context window exceeds limit (2013)",
    "kimi": "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
    "deepseek": "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens",
    "qwen": "Range of input length should be [1, 30720]",
    "zhipu": "Prompt 超长",
    "cohere": "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 130000.",
    "together": "Input validation error: `inputs` must have less than 8192 tokens. Given: 9000",
    "azure": '{"code":"context_length_exceeded"}',
    "seed": "max_tokens_exceeded",
    "letta": "Max context length reached",
    "generic": "token limit exceeded",
    "past": "The conversation exceeded the context limit",
    "chinese": "输入内容超过了模型的最大上下文长度",
}
OTHERS = {
    "rate": "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.",
    "throttled": "ThrottlingException: Too many tokens, please wait before trying again.",
    "per day": "Too many tokens per day, please wait before trying again.",
    "429": "429 Too Many Requests",
    "quota": "You exceeded your current quota, please check your plan and billing details.",
    "overloaded": "Overloaded",
    "key": "Incorrect API key provided: sk-***. You can find your API key at https://example.org.",
    "model": "The model `gpt-9` does not exist or you do not have access to it.",
    "max tokens": "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
    "max tokens 2": "`max_tokens` must be at least 1",
    "tool": "messages: tool_use ids were found without tool_result blocks immediately after: c1",
    "policy": "Your request was rejected as a result of our safety system.",
    "network": "Connection error.",
    "timeout": "Request timed out.",
    "schema": "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
    "server": "The server had an error while processing your request. Sorry about that!",
    "image": "image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
    "parameter": "Unsupported parameter: 'context' is not supported with this model.",
    "chinese": "请求过于频繁，请稍后再试",
    "empty": "",
}


def test_every_error_is_told_as_the_seed_does(vectors: Path) -> None:
    """No mismatch."""
    found = [
        (vector["message"], says_overflow(vector["message"]), vector["is_overflow"])
        for vector in lines(vectors / "overflow_errors.jsonl")
    ]
    assert [case for case in found if case[1] != case[2]] == []
    assert len(found) > 10


@pytest.mark.parametrize("name", OVERFLOWS)
def test_providers_words_for_overflow(name: str) -> None:
    """Recognized in any case, alone and inside a client's longer sentence."""
    message = OVERFLOWS[name]
    for words in (
        message,
        message.lower(),
        message.upper(),
        f"Error code: 400 - {{'error': {{'message': '{message}'}}}}",
    ):
        assert says_overflow(words)
        assert is_overflow(words, status=400)


@pytest.mark.parametrize("name", OTHERS)
def test_other_failures_are_no_overflow(name: str) -> None:
    """Waiting, another key or another parameter cures these; a shorter transcript does not."""
    assert not says_overflow(OTHERS[name])
    assert not is_overflow(OTHERS[name], status=400)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (413, None, True),
        (400, "context_length_exceeded", True),
        (400, "rate_limit_exceeded", False),
        (401, "context_length_exceeded", False),
        (404, None, False),
        (None, "prompt_too_long", True),
    ],
)
def test_typed_errors_need_no_words(status: int | None, code: str | None, expected: bool) -> None:
    """The provider's own code or HTTP status says it."""
    assert is_overflow("", status=status, code=code) is expected
