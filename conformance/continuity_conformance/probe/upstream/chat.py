"""The probe model as `POST /v1/chat/completions` of OpenAI."""

import json
import time
from typing import Any

from continuity_conformance.probe.marks import estimated_tokens
from continuity_conformance.probe.reply import MODEL, OUTPUT_TOKENS, ModelReply
from continuity_conformance.probe.upstream.wire import Body, Prompt, openai_error, tool_call_message


class ChatCompletions:
    """The form in which the log has messages: nothing is translated."""

    end = b"data: [DONE]\n\n"

    def read(self, body: Body) -> Prompt:
        return Prompt(body.get("messages") or [], body.get("tools") or [])

    def plain(self, reply: ModelReply, _: Body) -> dict[str, object]:
        choice = {"index": 0, "message": _message(reply), "logprobs": None, "finish_reason": _finish_reason(reply)}
        return {**_envelope(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}

    def stream(self, reply: ModelReply, _: Body) -> list[bytes]:
        deltas: list[dict[str, object]] = [{"role": "assistant", "content": piece} for piece in reply.pieces]
        if reply.tool_calls:
            message = tool_call_message([(call.id, call.name, call.arguments) for call in reply.tool_calls])
            calls = message["tool_calls"]
            assert isinstance(calls, list)
            deltas += _side_by_side(calls) if len(calls) > 1 else [_calls_delta([{"index": 0, **calls[0]}])]
        parts = [*((delta, None) for delta in deltas), ({}, _finish_reason(reply))]
        chunks = [
            {
                **_envelope(reply, "chat.completion.chunk"),
                "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}],
            }
            for delta, reason in parts
        ]
        chunks[-1]["usage"] = _usage(reply)
        return [
            *(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode() for chunk in chunks),
            self.end,
        ]

    def error(self, message: str, status: int, code: str | None = None) -> dict[str, object]:
        return openai_error(message, status, code)


def _calls_delta(calls: list[dict[str, object]]) -> dict[str, object]:
    return {"role": "assistant", "tool_calls": calls}


def _side_by_side(calls: list[dict[str, Any]]) -> list[dict[str, object]]:
    """Several calls of tools that grow at the same time: each piece of the arguments says by its index which call it belongs to."""
    begun = [{"index": k, **call, "function": {**call["function"], "arguments": ""}} for k, call in enumerate(calls)]
    arguments = [call["function"]["arguments"] for call in calls]
    halves = [[text[: len(text) // 2] for text in arguments], [text[len(text) // 2 :] for text in arguments]]
    pieces = [{"index": k, "function": {"arguments": text}} for half in halves for k, text in enumerate(half)]
    return [_calls_delta(begun), *(_calls_delta([piece]) for piece in pieces)]


def _finish_reason(reply: ModelReply) -> str:
    return "tool_calls" if reply.tool_calls else "length" if reply.cut_short else "stop"


def _envelope(reply: ModelReply, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-probe-{reply.call.number}", "object": kind, "created": int(time.time()), "model": MODEL}


def _message(reply: ModelReply) -> dict[str, object]:
    if reply.tool_calls:
        return tool_call_message(
            [(call.id, call.name, call.arguments) for call in reply.tool_calls], reply.text or None
        )
    return {"role": "assistant", "content": reply.text, "refusal": None}


def _usage(reply: ModelReply) -> dict[str, int]:
    prompt = estimated_tokens(reply.call.messages)
    return {"prompt_tokens": prompt, "completion_tokens": OUTPUT_TOKENS, "total_tokens": prompt + OUTPUT_TOKENS}
