"""Controls: what the kit can make happen to a target, and from where.

In this order: the process that the kit started (restart, kill), a command of the profile (`http: "POST /test/evict/{response}"`), the optional
control API of the spec. A control that nobody has makes a scenario *not tested*; it is never believed without proof.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from continuity_conformance.credentials import standing_fields
from continuity_conformance.errors import KitError
from continuity_conformance.failure import Untested
from continuity_conformance.legacy import OldRow, old_database
from continuity_conformance.restarts import SharedRestarts
from continuity_conformance.servers import Server
from continuity_conformance.transport import Answer, Request, Transport

_API: Final = "/conformance/v1"
_API_CONTROLS: Final = frozenset(
    {"evict", "compress", "break_store", "control:compress", "control:fork", "control:link", "control:lineage"}
)
_FAULTS: Final[Mapping[str, tuple[str, ...]]] = {
    "reads": ("read",),
    "writes": ("write",),
    "all": ("read", "write", "lineage"),
}


class Controls:
    """The controls of one server."""

    def __init__(
        self, server: Server, transport: Transport, *, has_api: bool, shared: SharedRestarts | None = None
    ) -> None:
        self._server = server
        self._transport = transport
        self._has_api = has_api
        self._shared = shared

    @property
    def available(self) -> frozenset[str]:
        profile = self._server.profile
        process = {"restart", "kill"} if self._server.started else set()
        old = {"legacy"} if self._server.started and profile.legacy else set()
        pressure = {"evict-by-pressure"} if profile.limits.responses else set()
        api = _API_CONTROLS if self._has_api else frozenset()
        return frozenset(process | old | pressure | set(profile.http_controls) | api)

    def sharing(self, shared: SharedRestarts) -> "Controls":
        """The same controls, with restarts that are shared."""
        return Controls(self._server, self._transport, has_api=self._has_api, shared=shared)

    async def legacy(self, rows: Sequence[OldRow], servers: int = 1) -> None:
        """Start on an old database with these rows."""
        await self._server.begin_anew(old_database(rows), servers)

    async def restart(self) -> None:
        await (self._shared.restart() if self._shared else self.restart_now())

    async def restart_now(self) -> None:
        await self._new_process("restart")

    async def kill(self) -> None:
        await self._new_process("kill")

    async def evict(self, response: str, key: str) -> None:
        await self._do("evict", key, {"response_id": response})

    async def compress(self, session: str, key: str) -> None:
        await self._do("compress", key, {"session_id": session})

    async def break_store(self, what: str, key: str) -> None:
        for fault in _FAULTS[what]:
            self._server.broken.add(fault)
            await self._do("fault", key, {"what": fault, "on": True})

    async def mend_store(self, key: str) -> None:
        for fault in sorted(self._server.broken):
            await self._do("fault", key, {"what": fault, "on": False})
        self._server.broken.clear()

    async def named(self, name: str, params: Mapping[str, object], key: str) -> Answer:
        return await self._do(name, key, params)

    async def _new_process(self, how: str) -> None:
        started = self._server.started
        assert started is not None, "a scenario that restarts runs only where the kit started the target"
        before = started.pid
        await (started.restart() if how == "restart" else started.kill())
        if started.pid == before:
            raise KitError(f"{how}: the process is still the same one.", where=self._server.url)

    async def _do(self, name: str, key: str, params: Mapping[str, object]) -> Answer:
        answer = await self._transport.send(self._request(name, key, params))
        if not answer.accepted:
            said = answer.error or f"{answer.status} {answer.text[:200]}"
            raise Untested(f"the control {name} did not work: {said}")
        return answer

    def _request(self, name: str, key: str, params: Mapping[str, object]) -> Request:
        profile = self._server.profile
        headers = standing_fields(profile, key)
        command = profile.http_controls.get(name)
        if command is None:
            headers.append(("X-Conformance-Token", profile.token))
            return Request("POST", f"{self._server.url}{_API}/{name}", tuple(headers), dict(params))
        method, path = command.split(" ", 1)
        short = {field.removesuffix("_id"): value for field, value in params.items()}
        return Request(method, self._server.url + path.format(**short), tuple(headers))
