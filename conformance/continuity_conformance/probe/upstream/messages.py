"""The probe model as `POST /v1/messages` of Anthropic."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from continuity_conformance.probe.marks import content_text, estimated_tokens
from continuity_conformance.probe.reply import MODEL, OUTPUT_TOKENS, ModelReply
from continuity_conformance.probe.upstream.wire import (
    Body,
    Message,
    Prompt,
    function_tool,
    named_event,
    object_list,
    tool_call_message,
)

Block = dict[str, Any]
_KINDS: Final = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error"}


class AnthropicMessages:
    """Requests and replies by content blocks. Results of tools are in user messages, the system prompt is a field of its own."""

    end = named_event({"type": "message_stop"})

    def read(self, body: Body) -> Prompt:
        system = body.get("system")
        first: list[Message] = [{"role": "system", "content": system}] if system else []
        said = [each for message in object_list(body.get("messages"), "messages") for each in _messages(message)]
        tools = [
            function_tool(tool.get("name"), tool.get("description"), tool.get("input_schema"))
            for tool in object_list(body.get("tools"), "tools")
        ]
        return Prompt([*first, *said], tools)

    def plain(self, reply: ModelReply, _: Body) -> dict[str, object]:
        usage = {"input_tokens": estimated_tokens(reply.call.messages), "output_tokens": OUTPUT_TOKENS}
        return {**_begun(reply), "content": _blocks(reply), "stop_reason": _stop_reason(reply), "usage": usage}

    def stream(self, reply: ModelReply, _: Body) -> list[bytes]:
        events: list[dict[str, object]] = [{"type": "message_start", "message": _begun(reply)}]
        for index, block in enumerate(_blocks(reply)):
            events += _block_events(reply, block, index)
        ended = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": OUTPUT_TOKENS}})
        written = [*map(named_event, events), self.end]
        first = [event["type"] for event in events].index("content_block_delta") + 1
        return [b"".join(written[:first]), *written[first:]]

    def error(self, message: str, status: int, _: str | None = None) -> dict[str, object]:
        error = {"type": _KINDS.get(status, "api_error"), "message": message}
        return {"type": "error", "error": error, "request_id": None}


def _messages(message: Block) -> Iterator[Message]:
    """One message as messages of chat completions: results of tools first, then the rest."""
    role, content = message.get("role"), message.get("content")
    if isinstance(content, str):
        yield {"role": role, "content": content}
        return
    blocks = object_list(content, "content")
    for result in (block for block in blocks if block.get("type") == "tool_result"):
        yield {
            "role": "tool",
            "tool_call_id": result.get("tool_use_id"),
            "content": content_text(result.get("content")),
        }
    used = [block for block in blocks if block.get("type") == "tool_use"]
    rest = [
        block
        for block in blocks
        if block.get("type") not in {"tool_result", "tool_use", "thinking", "redacted_thinking"}
    ]
    if used:
        calls = [(str(block.get("id")), str(block.get("name")), json.dumps(block.get("input"))) for block in used]
        yield tool_call_message(calls, content_text(rest) or None)
    elif rest:
        yield {"role": role, "content": rest}


def _begun(reply: ModelReply) -> dict[str, object]:
    return {
        "id": f"msg_probe_{reply.call.number}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": estimated_tokens(reply.call.messages), "output_tokens": 0},
    }


def _stop_reason(reply: ModelReply) -> str:
    return "tool_use" if reply.tool_calls else "max_tokens" if reply.cut_short else "end_turn"


def _blocks(reply: ModelReply) -> Sequence[Block]:
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments or "{}")}
        for call in reply.tool_calls
    ]
    texts: list[Block] = [{"type": "text", "text": reply.text, "citations": None}] if reply.text or not calls else []
    return [*texts, *calls]


def _block_events(reply: ModelReply, block: Block, index: int) -> Iterator[dict[str, object]]:
    is_text = block["type"] == "text"
    empty = {**block, "text": ""} if is_text else {**block, "input": {}}
    deltas = (
        [{"type": "text_delta", "text": piece} for piece in reply.pieces]
        if is_text
        else [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    )
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}
