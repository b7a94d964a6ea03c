"""The controls of one server: what the kit can make happen to it, and who provides each control.

The first of these that provides a control is used: the profile or the plugin (`Profile.controls`), the process that the kit started (restart, kill),
filling the context (`Profile.filling`), the optional control API of the spec. Without any of them the scenario is *not tested*.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from continuity_conformance.core.errors import ContinuityError, KitError
from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.http.client import AnyTransport
from continuity_conformance.target.control_context import (
    PACK_CONTROLS,
    RELEASE_CONTROLS,
    ApiControl,
    Control,
    ControlContext,
    how,
)
from continuity_conformance.target.old_database import OldRow
from continuity_conformance.target.process import StartedProcess
from continuity_conformance.target.profile import Filling
from continuity_conformance.target.server import Server
from continuity_conformance.target.shared_restart import AnyRestarts

_NEEDS: Final[Mapping[str, frozenset[str]]] = {
    "evict": frozenset({"evict"}),
    "compress": frozenset({"compress", "control:compress"}),
    "fault": frozenset({"break_store"}),
}
"""What scenarios call these controls in their needs; every other control is called `control:NAME`."""
_FAULTS: Final[Mapping[str, tuple[str, ...]]] = {
    "reads": ("read",),
    "writes": ("write",),
    "lineage": ("lineage",),
    "all": ("read", "write", "lineage"),
}


class Controls:
    """The controls of one server. Methods that return a text say how they did it."""

    def __init__(
        self, server: Server, transport: AnyTransport, *, has_api: bool, shared: AnyRestarts | None = None
    ) -> None:
        self._server = server
        self._transport = transport
        self._has_api = has_api
        self._shared = shared
        self.absent = frozenset[str]()
        """Controls of the release that the target's control API does not have."""

    @property
    def available(self) -> frozenset[str]:
        """What the needs of a scenario may name on this server."""
        profile = self._server.profile
        process = {"restart", "kill", "replicas"} if self._server.started else set()
        legacy = {"legacy"} if self._server.started and profile.legacy else set()
        legacy |= {"previous"} if self._server.started and profile.previous else set()
        pressure = {"evict-by-pressure"} if profile.limits.responses else set()
        filling = {"compress"} if profile.filling else set()
        by_api = set(RELEASE_CONTROLS) - self.absent if self._has_api else set()
        names = {*profile.controls, *PACK_CONTROLS, *by_api}
        named = {need for name in names for need in _NEEDS.get(name, {f"control:{name}"})}
        return frozenset(process | legacy | pressure | filling | named)

    @property
    def own(self) -> frozenset[str]:
        """The controls that the profile or the plugin itself provides."""
        return frozenset(self._server.profile.controls)

    @property
    def filling(self) -> Filling | None:
        """How to fill the context so that the target compresses. None if a control of the profile makes it compress."""
        return None if "compress" in self._server.profile.controls else self._server.profile.filling

    def with_shared_restarts(self, shared: AnyRestarts) -> "Controls":
        """The same controls, but restarts are shared with other scenarios."""
        return Controls(self._server, self._transport, has_api=self._has_api, shared=shared)

    async def legacy(self, rows: Sequence[OldRow], servers: int = 1) -> None:
        """Restart the target on an old database with these rows, with so many processes."""
        await self._server.restart_on_database(rows, servers)

    async def replicas(self, servers: int) -> None:
        """Start more processes on the store of the running target, so that there are this many."""
        await self._server.start_twins(servers - 1)

    async def add_legacy(self, rows: Sequence[OldRow]) -> None:
        """Write rows into the database of the running target, in the statements of the old schema."""
        await self._server.add_old_rows(rows)

    async def start_previous(self) -> None:
        await self._server.start_previous_release()

    async def upgrade(self) -> None:
        await self._server.upgrade()

    async def restart(self) -> None:
        await (self._shared.restart() if self._shared else self.restart_now())

    async def restart_now(self) -> None:
        await self._new_process("restart")

    async def kill(self) -> None:
        await self._new_process("kill")

    def kill_at_once(self) -> None:
        """SIGKILL in this moment; `kill` must follow. A control of the profile is slower: it is used there alone."""
        if self._server.started is not None and "kill" not in self._server.profile.controls:
            self._server.started.kill_at_once()

    async def evict(self, response: str, principal: str) -> str:
        return await self._do("evict", principal, {"response_id": response})

    async def compress(self, session: str, principal: str) -> str:
        return await self._do("compress", principal, {"session_id": session})

    async def break_store(self, what: str, principal: str) -> str:
        """Break what is named. A target that never compresses has no lineage: `all` is then reads and writes."""
        texts = []
        for fault in _FAULTS[what]:
            self._server.broken.add(fault)
            try:
                texts.append(await self._do("fault", principal, {"what": fault, "on": True}))
            except Untested:
                if (what, fault) != ("all", "lineage"):
                    raise
                self._server.broken.discard(fault)
        return "; ".join(texts)

    async def mend_store(self, principal: str) -> str:
        faults = sorted(self._server.broken)
        texts = [await self._do("fault", principal, {"what": fault, "on": False}) for fault in faults]
        self._server.broken.clear()
        return "; ".join(texts)

    async def named(self, name: str, params: Mapping[str, object], principal: str) -> str:
        return await self._do(name, principal, params)

    async def _new_process(self, manner: str) -> None:
        started = self._server.started
        assert started is not None, "a scenario that restarts runs only where the kit started the target"
        before = started.pid
        if manner in self.own:
            await self.end_process(manner)
            await started.start()
        else:
            await (started.restart() if manner == "restart" else started.kill())
        if started.pid == before:
            raise KitError(f"{manner}: the process is still the same one.", where=self._server.url)

    async def end_process(self, manner: str) -> None:
        """End the process with the control `kill` or `restart` of the profile or the plugin."""
        started = self._server.started
        assert started is not None, "only a target that the kit started is ended"
        if manner in self.own:
            await self._do(manner, "alice", {"pid": started.pid})
            await self._require_end(manner, started)

    async def _require_end(self, manner: str, started: StartedProcess) -> None:
        """Raise Untested if the process still runs after a control of the target should have ended it."""
        if not await started.has_ended():
            raise Untested(f"the control {manner} did not work: the process has not ended")

    async def _do(self, name: str, principal: str, params: Mapping[str, object]) -> str:
        started = self._server.started
        folder = started.file("{folder}") if started else None
        profile = self._server.profile
        fields = tuple(profile.headers_of(principal))
        key = profile.principals.get(principal, "")
        context = ControlContext(self._server.url, self._transport, key, folder, fields)
        try:
            control = self._control(name)
            await control(context, params)
        except Untested as reason:
            raise Untested(f"the control {name} did not work: {reason}") from None
        except (ContinuityError, Unmet, Inapplicable):
            raise
        except Exception as error:  # noqa: BLE001 - a bug in a plugin says nothing about the target
            raise Untested(f"the control {name} did not work: {type(error).__name__}: {error}") from None
        return how(control, params)

    def _control(self, name: str) -> Control:
        control = self._server.profile.controls.get(name) or PACK_CONTROLS.get(name)
        if control is None and not self._has_api:
            raise Untested("no such control: neither the profile nor the control API provides it")
        return control or ApiControl(name, self._server.profile.token)
