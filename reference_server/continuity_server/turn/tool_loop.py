"""The agent loop: ask the model, run the tools it calls, ask again, until it answers or calls a tool of the client."""

from typing import Any, Final

from continuity_server.model.types import Call, Model, ModelFailedError, Reply, Usage
from continuity_server.model.workspace import TOOL, TOOL_NAME, Workspace
from continuity_server.rules import Rules
from continuity_server.rules.echo import SessionInfo
from continuity_server.rules.messages import Message, Messages
from continuity_server.turn.types import Destination, Sink, TurnOutput, TurnRequest

_MOST_ROUNDS: Final = 16


class ToolLoop:
    """Runs one turn against the model."""

    def __init__(self, model: Model, rules: Rules, workspace: Workspace) -> None:
        self._model = model
        self._rules = rules
        self._workspace = workspace

    async def run(
        self, ask: TurnRequest, place: Destination, messages: Messages, told: SessionInfo, sink: Sink
    ) -> TurnOutput:
        made: list[Message] = []
        texts: list[str] = []
        usage = Usage()
        for _ in range(_MOST_ROUNDS):
            reply = await self._ask(ask, [*messages, *made], told, sink)
            usage += reply.usage
            texts.append(reply.text)
            made.append(reply.message())
            ours = [call for call in reply.tool_calls if self._is_ours(ask, call)]
            made += [self._result(place, call) for call in ours]
            if len(ours) < len(reply.tool_calls) or not reply.tool_calls:
                theirs = tuple(call for call in reply.tool_calls if call not in ours)
                return TurnOutput(tuple(made), "".join(texts), theirs, usage)
        raise ModelFailedError(f"The model called tools {_MOST_ROUNDS} times and gave no answer.")

    async def _ask(self, ask: TurnRequest, messages: Messages, told: SessionInfo, sink: Sink) -> Reply:
        call = Call(ask.model, messages, self._tools(ask), ask.sampling)
        if not ask.stream:
            return await self._model.ask(call)
        return await self._model.ask(call, lambda delta: sink.text(told, delta))

    def _tools(self, ask: TurnRequest) -> list[dict[str, Any]]:
        return [*ask.tools, TOOL] if self._offers(ask) else ask.tools

    def _offers(self, ask: TurnRequest) -> bool:
        """Offer our tool, unless the client has one of the same name."""
        return self._workspace.offered and not any(_name(tool) == TOOL_NAME for tool in ask.tools)

    def _is_ours(self, ask: TurnRequest, call: dict[str, Any]) -> bool:
        """Answer here what the client did not declare, so that no call stays open."""
        return not any(_name(tool) == _name(call) for tool in ask.tools)

    def _result(self, place: Destination, call: dict[str, Any]) -> Message:
        known = _name(call) == TOOL_NAME and self._workspace.offered
        environment = self._rules.environment(place.owner, place.root, place.tip)
        said = (
            self._workspace.run(environment, call["function"]["arguments"]) if known else "error: there is no such tool"
        )
        return {"role": "tool", "tool_call_id": call["id"], "content": said}


def _name(tool: dict[str, Any]) -> str:
    return str((tool.get("function") or {}).get("name"))
