"""Where a control works: one server of the target, its address, its folder, and whoever asks.

A control is an async function of a `Site` and of what the scenario says. A line of a profile (`http: "POST /test/evict/{response}"`), the control API of the
spec and a function of a plugin are all of this kind. One that does not work raises `Untested`; what it did is never believed without proof.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from continuity_conformance.core.failure import Untested
from continuity_conformance.http.messages import Request
from continuity_spec.flow import flow

if TYPE_CHECKING:  # a profile knows its controls, and is read by commands that send nothing
    from continuity_conformance.http.client import AnyTransport

_API: Final = "/conformance/v1"
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Site:
    """One server of the target, as a control sees it. `key` is that of the principal who asks."""

    url: str
    transport: "AnyTransport"
    key: str = field(default="", repr=False)
    folder: Path | None = None
    """The scratch folder of a target that the kit started; None where it did not."""
    fields: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The header fields of every request: the profile's own, and the key."""

    def file(self, name: str) -> Path:
        """A file of the target's folder that must be there."""
        if self.folder is None:
            raise Untested("the control works on the target's files, and the kit did not start it")
        path = self.folder / name
        if not path.exists():
            raise Untested(f"the target has no file {name}")
        return path

    async def send(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> None:
        """One request to the target with the key of whoever asks. Raises Untested where it is not accepted."""
        request = Request(method, self.url + path, (*self.fields, *(headers or {}).items()), body)
        answer = await self.transport.send(request)
        if not answer.accepted:
            raise Untested(answer.error or f"{answer.status} {answer.text[:_SHOWN]}")


Control = Callable[[Site, Mapping[str, object]], Awaitable[None]]
CONTROL_FIELD: Final = "X-Conformance-Token"
"""The header field in which the control API wants its token."""
RELEASED: Final = ("evict", "compress", "fault", "fork", "link", "lineage")
"""The controls that scenarios of the release use. Only the target's own side has them."""
PACKED: Final[dict[str, Control]] = {}
"""Controls that packs bring along, for scenarios of theirs on any target."""


@dataclass(frozen=True, slots=True)
class HttpControl:
    """A request of the target's own: method and path, with `{response}` or `{session}` in it."""

    command: str

    async def __call__(self, site: Site, params: Mapping[str, object]) -> None:
        method, path = self._filled(params)
        await site.send(method, path)

    def how(self, params: Mapping[str, object]) -> str:
        return f"as the profile says: {' '.join(self._filled(params))}"

    def _filled(self, params: Mapping[str, object]) -> tuple[str, str]:
        method, path = self.command.split(" ", 1)
        short = {name.removesuffix("_id"): value for name, value in params.items()}
        return method, path.format(**short)


@dataclass(frozen=True, slots=True)
class ApiControl:
    """An operation of the control API of the spec."""

    name: str
    token: str = field(repr=False)

    async def __call__(self, site: Site, params: Mapping[str, object]) -> None:
        await site.send("POST", self._path, dict(params), {CONTROL_FIELD: self.token})

    def how(self, params: Mapping[str, object]) -> str:
        return f"by the control API: POST {self._path} {flow(params)}"

    @property
    def _path(self) -> str:
        return f"{_API}/{self.name}"


def how(control: Control, params: Mapping[str, object]) -> str:
    """In a few words what a control does with these; a function of a plugin says so in the first line of its docstring."""
    if isinstance(control, HttpControl | ApiControl):
        return control.how(params)
    told = inspect.getdoc(control) if inspect.isroutine(control) else None
    name = getattr(control, "__name__", type(control).__name__)
    first = told.splitlines()[0].removesuffix(".") if told else f"by the plugin's {name}"
    return f"{first}: {flow(params)}"
