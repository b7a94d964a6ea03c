"""The tool loop: ask the model, run the tools it calls, ask again, until it answers or calls a tool of the client."""

from typing import Any, Final

from continuity_server.model.types import Call, Model, ModelFailedError, Reply, Usage
from continuity_server.model.workspace import TOOL, TOOL_NAME, Workspace
from continuity_server.rules import Rules
from continuity_server.rules.messages import Message, Messages
from continuity_server.turn.types import Destination, Turn, TurnOutput, TurnRequest

_MOST_ROUNDS: Final = 16


class ToolLoop:
    """Runs one turn against the model."""

    def __init__(self, model: Model, rules: Rules, workspace: Workspace) -> None:
        self._model = model
        self._rules = rules
        self._workspace = workspace

    async def run(self, turn: Turn, messages: Messages) -> TurnOutput:
        output: list[Message] = []
        texts: list[str] = []
        usage = Usage()
        for _ in range(_MOST_ROUNDS):
            reply = await self._ask(turn, [*messages, *output])
            usage += reply.usage
            texts.append(reply.text)
            output.append(reply.message())
            ours = [call for call in reply.tool_calls if self._is_ours(turn.request, call)]
            output += [self._result(turn.destination, call) for call in ours]
            if len(ours) < len(reply.tool_calls) or not reply.tool_calls:
                theirs = tuple(call for call in reply.tool_calls if call not in ours)
                return TurnOutput(tuple(output), "".join(texts), theirs, usage, reply.cut)
        raise ModelFailedError(f"The model called tools {_MOST_ROUNDS} times and gave no answer.")

    async def _ask(self, turn: Turn, messages: Messages) -> Reply:
        request = turn.request
        call = Call(request.model, messages, self._tools(request), request.sampling)
        if not request.stream:
            return await self._model.ask(call)
        return await self._model.ask(call, lambda delta: turn.sink.text(turn.session_info, delta))

    def _tools(self, request: TurnRequest) -> list[dict[str, Any]]:
        """Offer our tool, unless the client has one of the same name."""
        taken = any(_name(tool) == TOOL_NAME for tool in request.tools)
        return [*request.tools, TOOL] if self._workspace.offered and not taken else request.tools

    def _is_ours(self, request: TurnRequest, call: dict[str, Any]) -> bool:
        """Answer every call of a tool that the client did not declare, so that no call stays open."""
        return not any(_name(tool) == _name(call) for tool in request.tools)

    def _result(self, destination: Destination, call: dict[str, Any]) -> Message:
        result = "error: there is no such tool"
        if _name(call) == TOOL_NAME and self._workspace.offered:
            result = self._run_workspace(destination, call["function"]["arguments"])
        return {"role": "tool", "tool_call_id": call["id"], "content": result}

    def _run_workspace(self, destination: Destination, arguments: str) -> str:
        """ENV-01, -02, -03: run the tool in the environment of the conversation."""
        return self._workspace.run(self._rules.environment(destination.owner, destination.root), arguments)


def _name(tool: dict[str, Any]) -> str:
    return str((tool.get("function") or {}).get("name"))
