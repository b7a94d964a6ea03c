"""Which path of the probe model speaks which API, and its answers that are the same for all of them."""

import re
from typing import Final

from aiohttp import web

from continuity_conformance.probe.reply import MODEL
from continuity_conformance.probe.upstream.chat import ChatCompletions
from continuity_conformance.probe.upstream.messages import AnthropicMessages
from continuity_conformance.probe.upstream.responses import Compact, KeptResponses, Responses
from continuity_conformance.probe.upstream.wire import WireFormat, openai_error

COUNT: Final = "/v1/messages/count_tokens"
_BASE: Final = re.compile(r"^/+(?:v1/+)*")
"""A client adds `/v1` to its base URL or does not, and the base URL may end in it already."""
_MODEL: Final = {
    "id": MODEL,
    "object": "model",
    "created": 0,
    "owned_by": "session-continuity",
    "type": "model",
    "display_name": MODEL,
    "created_at": "1970-01-01T00:00:00Z",
    "lifecycle": "active",
}
"""A model as OpenAI and Anthropic describe it: the fields of one are unknown to the other."""


def formats() -> dict[str, WireFormat]:
    """The APIs by path."""
    kept, messages = KeptResponses(), AnthropicMessages()
    return {
        "/v1/chat/completions": ChatCompletions(),
        "/v1/responses": Responses(kept),
        "/v1/responses/compact": Compact(kept),
        "/v1/messages": messages,
        COUNT: messages,
    }


def usual_path(path: str) -> str:
    """The path with exactly one `/v1`."""
    return _BASE.sub("/v1/", path)


def models() -> web.Response:
    listed = {"object": "list", "data": [_MODEL], "first_id": MODEL, "last_id": MODEL, "has_more": False}
    return web.json_response(listed)


def nowhere(request: web.Request) -> web.Response:
    """The answer to a path that the model does not have, in the form that the client reads."""
    if "anthropic-version" in request.headers:
        return web.json_response(AnthropicMessages().error("Not found", 404), status=404)
    return web.json_response(openai_error(f"Invalid URL ({request.method} {request.path})", 404), status=404)
