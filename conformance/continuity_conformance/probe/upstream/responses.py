"""The probe model as `POST /v1/responses` of OpenAI, and `POST /v1/responses/compact`.

Like OpenAI it keeps what it answered: `previous_response_id` and items of type `item_reference` name it. An item of type `compaction` is opaque
to the target; for the model it is the summary that it wrote.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from continuity_conformance.probe.marks import content_text, estimated_tokens
from continuity_conformance.probe.reply import MODEL, OUTPUT_TOKENS, CalledTool, ModelReply
from continuity_conformance.probe.upstream.wire import (
    Body,
    MalformedError,
    Message,
    Prompt,
    function_tool,
    named_event,
    object_list,
    openai_error,
    tool_call_message,
)

Item = dict[str, Any]
_THINKING: Final = frozenset({"reasoning"})
"""Items that are no part of what was said."""


@dataclass(frozen=True, slots=True)
class KeptResponses:
    """What the model keeps: its items by id, and the conversation up to each response by the id of the response."""

    items: dict[str, Item] = field(default_factory=dict)
    conversations: dict[str, list[Item]] = field(default_factory=dict)


class Responses:
    """Requests by items, replies as responses."""

    end = b""
    """No event ends a stream without a response."""

    def __init__(self, kept: KeptResponses) -> None:
        self._kept = kept

    def read(self, body: Body) -> Prompt:
        instructions = body.get("instructions")
        first: list[Message] = [{"role": "system", "content": instructions}] if instructions else []
        return Prompt(
            [*first, *_messages(self._conversation(body))], [*map(_tool, object_list(body.get("tools"), "tools"))]
        )

    def plain(self, reply: ModelReply, body: Body) -> dict[str, object]:
        output = _output(reply)
        self._keep(reply, body, output)
        return _response(reply, body, _ending(reply), output)

    def stream(self, reply: ModelReply, body: Body) -> list[bytes]:
        output = _output(reply)
        self._keep(reply, body, output)
        begun, whole = _response(reply, body, "in_progress", []), _response(reply, body, _ending(reply), output)
        events: list[dict[str, object]] = [
            {"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")
        ]
        for index, item in enumerate(output):
            events += _item_events(reply, item, index)
        events.append({"type": f"response.{_ending(reply)}", "response": whole})
        written = [named_event({**event, "sequence_number": number}) for number, event in enumerate(events)]
        first = next((k for k, event in enumerate(events) if str(event["type"]).endswith(".delta")), 0) + 1
        return [b"".join(written[:first]), *written[first:]]

    def error(self, message: str, status: int, code: str | None = None) -> dict[str, object]:
        return openai_error(message, status, code)

    def _keep(self, reply: ModelReply, body: Body, output: list[Item]) -> None:
        self._kept.items.update({item["id"]: item for item in output})
        self._kept.conversations[_response_id(reply)] = [*self._conversation(body), *output]

    def _conversation(self, body: Body) -> list[Item]:
        """The items before the request, if it names a response, and its own. `instructions` do not carry over."""
        given, previous = body.get("input"), body.get("previous_response_id")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else object_list(given, "input")
        if previous is not None and previous not in self._kept.conversations:
            raise MalformedError(
                f"Previous response with id '{previous}' not found.", 400, "previous_response_not_found"
            )
        return [*self._kept.conversations.get(previous or "", []), *map(self._resolved, items)]

    def _resolved(self, item: Item) -> Item:
        # OpenAI's clients may leave out the type of a reference, which then has an id alone.
        if item.get("type") != "item_reference" and set(item) != {"id"}:
            return item
        if item.get("id") not in self._kept.items:
            raise MalformedError(f"Item with id '{item.get('id')}' not found.", 404)
        return self._kept.items[item["id"]]


class Compact(Responses):
    """`POST /v1/responses/compact`: all user messages stay, and one opaque item replaces the rest."""

    def read(self, body: Body) -> Prompt:
        prompt = super().read(body)
        return Prompt(prompt.messages, prompt.tools, compacts=True)

    def plain(self, reply: ModelReply, body: Body) -> dict[str, object]:
        number, kept = reply.call.number, [item for item in self._conversation(body) if item.get("role") == "user"]
        users: list[Item] = [
            {
                "id": f"msg_probe_{number}_{k}",
                "type": "message",
                "status": "completed",
                "role": "user",
                "content": _parts(item),
            }
            for k, item in enumerate(kept)
        ]
        opaque: Item = {"id": f"cmp_probe_{number}", "type": "compaction", "encrypted_content": reply.text}
        output = [*users, opaque]
        self._kept.items.update({item["id"]: item for item in output})
        self._kept.conversations[_response_id(reply)] = output
        whole = {"id": _response_id(reply), "object": "response.compaction", "created_at": int(time.time())}
        return {**whole, "output": output, "usage": _usage(reply)}


def _parts(item: Item) -> list[dict[str, object]]:
    return [{"type": "input_text", "text": content_text(item.get("content"))}]


def _messages(items: Sequence[Item]) -> Iterator[Message]:
    """The items as messages of chat completions. Calls of tools that follow each other are one message."""
    calls: list[tuple[str, str, str]] = []
    for item in items:
        kind = item.get("type") or "message"
        if kind in {"function_call", "custom_tool_call"}:
            arguments = item.get("arguments", item.get("input", ""))
            calls.append((str(item.get("call_id")), str(item.get("name")), str(arguments)))
            continue
        if calls and kind not in _THINKING:
            yield tool_call_message(calls)
            calls = []
        if kind not in _THINKING:
            yield _message(kind, item)
    if calls:
        yield tool_call_message(calls)


def _message(kind: str, item: Item) -> Message:
    match kind:
        case "message":
            return {"role": item.get("role"), "content": item.get("content")}
        case "function_call_output" | "custom_tool_call_output":
            return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
        case "compaction":
            return {"role": "system", "content": item.get("encrypted_content")}
    raise MalformedError(f"Invalid value: '{kind}' is no type of an input item.")


def _tool(tool: Item) -> object:
    if tool.get("type") != "function":
        return tool
    return function_tool(tool.get("name"), tool.get("description"), tool.get("parameters"))


def _response_id(reply: ModelReply) -> str:
    return f"resp_probe_{reply.call.number}"


def _ending(reply: ModelReply) -> str:
    return "incomplete" if reply.cut_short else "completed"


def _response(reply: ModelReply, body: Body, status: str, output: list[Item]) -> dict[str, object]:
    echoed = {
        name: body.get(name) for name in ("instructions", "previous_response_id", "temperature", "top_p", "metadata")
    }
    done = status != "in_progress"
    return {
        **echoed,
        "id": _response_id(reply),
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "store": body.get("store", True),
        "usage": _usage(reply) if done else None,
    }


def _usage(reply: ModelReply) -> dict[str, object]:
    prompt = estimated_tokens(reply.call.messages)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + OUTPUT_TOKENS,
    }


def _output(reply: ModelReply) -> list[Item]:
    texts = [_text_item(reply)] if reply.text or not reply.tool_calls else []
    return [*texts, *map(_call_item, reply.tool_calls)]


def _text_item(reply: ModelReply) -> Item:
    part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
    return {
        "id": f"msg_probe_{reply.call.number}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def _call_item(call: CalledTool) -> Item:
    return {
        "id": call.id.replace("call_", "fc_"),
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _item_events(reply: ModelReply, item: Item, index: int) -> Iterator[dict[str, object]]:
    place: Mapping[str, object] = {"output_index": index, "item_id": item["id"]}
    empty: Item = {"content": []} if item["type"] == "message" else {"arguments": ""}
    yield {
        "type": "response.output_item.added",
        "output_index": index,
        "item": {**item, "status": "in_progress", **empty},
    }
    if item["type"] == "message":
        part, spot = item["content"][0], {**place, "content_index": 0}
        yield {"type": "response.content_part.added", **spot, "part": {**part, "text": ""}}
        for piece in reply.pieces:
            yield {"type": "response.output_text.delta", **spot, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **spot, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **spot, "part": part}
    else:
        called = {"name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **place, **called}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}
