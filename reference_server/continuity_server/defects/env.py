"""Defects of ENV: execution environments that are lost, or shared with the wrong turns."""

import hashlib
import secrets

from continuity_server.defects.registry import defect
from continuity_server.model.workspace import Workspace
from continuity_server.rules import Rules
from continuity_server.rules.env import SHARED
from continuity_server.settings import Options
from continuity_server.turn.tool_loop import ToolLoop
from continuity_server.turn.types import Destination


@defect("environment-per-turn", "Every turn runs in an environment of its own.", "hermes-agent#3438")
class EnvironmentPerTurn(Rules):
    def environment(self, owner: str, root: str) -> str:  # noqa: ARG002 - that is the defect
        return self.minted("env_")


@defect(
    "environment-apart-though-shared",
    "Every conversation has an environment of its own, although one is shared.",
    "hermes-agent#3438",
)
class EnvironmentApartThoughShared(Rules):
    def environment(self, owner: str, root: str) -> str:
        return hashlib.sha256(f"{owner}\n{root}".encode()).hexdigest()


@defect(
    "environment-shared-though-per-session",
    "All conversations share one environment, although each was promised its own.",
    under={"environment": "per-session"},
)
class EnvironmentSharedThoughPerSession(Rules):
    def environment(self, owner: str, root: str) -> str:  # noqa: ARG002 - that is the defect
        return SHARED


@defect("environment-lost-on-restart", "Environments are those of the process: a restart finds empty ones.")
class EnvironmentLostOnRestart(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._process = secrets.token_hex(8)

    def environment(self, owner: str, root: str) -> str:
        return f"{super().environment(owner, root)}-{self._process}"


@defect("environment-lost-on-compression", "A session that rotated finds an empty environment.")
class EnvironmentLostOnCompression(ToolLoop):
    def _run_workspace(self, destination: Destination, arguments: str) -> str:
        if destination.tip == destination.root:
            return super()._run_workspace(destination, arguments)
        other = hashlib.sha256(f"{destination.owner}\n{destination.tip}".encode()).hexdigest()
        return self._workspace.run(other, arguments)


@defect(
    "delete-leaves-environment",
    "A new session under the id of a deleted one finds the files of the deleted one.",
    under={"environment": "per-session"},
)
class DeleteLeavesEnvironment(Workspace):
    def delete(self, environment: str) -> None:
        pass


@defect("delete-takes-shared-environment", "DELETE of a session deletes the environment that all sessions share.")
class DeleteTakesSharedEnvironment(Rules):
    def deleted_environment(self, owner: str, root: str) -> str | None:
        return self.environment(owner, root)
