"""Items: the input and output of /v1/responses, translated to and from messages (HISTORY-13). Pure."""

from typing import Any, Final

from continuity_server.http.body import check_tools, expect
from continuity_server.rules.error import invalid
from continuity_server.rules.messages import TEXT_PARTS, Message, check_content, is_one_of
from continuity_server.turn.types import TurnOutput

_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})


def messages_of(body: dict[str, Any]) -> list[Message]:
    """`instructions` and `input` as messages."""
    instructions = expect(body, "instructions", str)
    value = body.get("input")
    if isinstance(value, str) and value:
        items: list[Message] = [{"role": "user", "content": value}]
    elif isinstance(value, list) and value:
        items = [_message(item, f"input[{index}]") for index, item in enumerate(value)]
    else:
        raise invalid("input is missing or empty. Send a text or a list of items.", "input")
    return [{"role": "system", "content": instructions}, *items] if instructions else items


def _message(item: object, where: str) -> Message:
    if not isinstance(item, dict):
        raise invalid(f"{where} is no object.", where)
    kind = item.get("type", "message")
    if kind == "function_call_output":
        return _result(item, where)
    if kind == "function_call":
        return _call(item, where)
    if kind != "message" or not is_one_of(item.get("role"), _ROLES):
        raise invalid(f"{where} is no message, function_call or function_call_output.", where)
    check_content(item.get("content"), where)
    if item.get("content") is None:
        raise invalid(f"{where} has no content.", where)
    return {"role": item["role"], "content": _content(item["content"])}


def _content(content: Any) -> Any:
    """Text parts have another type name in chat messages; a single one becomes its text."""
    if isinstance(content, str):
        return content
    parts = [{"type": "text", "text": part["text"]} if part["type"] in TEXT_PARTS else part for part in content]
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _result(item: dict[str, Any], where: str) -> Message:
    output = item.get("output")
    if not isinstance(item.get("call_id"), str) or output is None:
        raise invalid(f"{where} has no call_id or no output.", where)
    check_content(output, where)
    return {"role": "tool", "tool_call_id": item["call_id"], "content": _content(output)}


def _call(item: dict[str, Any], where: str) -> Message:
    if not all(isinstance(item.get(name), str) for name in ("call_id", "name", "arguments")):
        raise invalid(f"{where} has no call_id, name or arguments.", where)
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": item["call_id"], "type": "function", "function": function}],
    }


def tools_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return function tools in the form that chat models take. Tools that a provider would host are left out."""
    return [
        {
            "type": "function",
            "function": {name: value for name, value in tool.items() if name not in {"type", "strict"}},
        }
        for tool in check_tools(body)
        if tool.get("type") == "function"
    ]


def output_of(output: TurnOutput, answer_id: str) -> list[dict[str, Any]]:
    """Return the output of a turn as items: the message, unless it is empty and there are calls, and the calls of the client's tools."""
    suffix = answer_id.removeprefix("resp_")
    part = {"type": "output_text", "text": output.text, "annotations": [], "logprobs": []}
    message = {"id": f"msg_{suffix}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    calls = [
        {
            "id": f"fc_{suffix}_{index}",
            "type": "function_call",
            "status": "completed",
            "call_id": call["id"],
            **call["function"],
        }
        for index, call in enumerate(output.client_calls)
    ]
    return [message, *calls] if output.text or not calls else calls
