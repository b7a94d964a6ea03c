"""Controls: functions that make something happen to a target, such as an eviction, and the context that they work in.

A control is an async function that takes a `ControlContext` and the parameters of the scenario's step. There are three kinds: a request that the profile
names (`http: "POST /test/evict/{response}"`), an operation of the spec's control API, and a Python function of a plugin. A control that does not work raises
`Untested`. The kit checks the effect of a control before it relies on it.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from continuity_conformance.core.failure import Untested
from continuity_conformance.http.messages import Request
from continuity_spec.flow_yaml import flow_yaml

if (
    TYPE_CHECKING
):  # the HTTP client takes a third of the start-up time of commands that send nothing, such as `spec list`
    from continuity_conformance.http.client import AnyTransport

API: Final = "/conformance/v1"
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class ControlContext:
    """What a control may use: one server of the target. `key`: the key of the principal that uses the control."""

    url: str
    transport: "AnyTransport"
    key: str = field(default="", repr=False)
    folder: Path | None = None
    """The temporary folder of a target that the kit started, else None."""
    fields: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The header fields of every request: those of the profile, and the key."""

    def file(self, name: str) -> Path:
        """The path of a file in the target's folder. Raises Untested if it does not exist."""
        if self.folder is None:
            raise Untested("the control needs the target's files, and the kit did not start the target")
        path = self.folder / name
        if not path.exists():
            raise Untested(f"the target has no file {name}")
        return path

    async def send(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> None:
        """Send one request with the principal's key. Raises Untested if the answer is not a success."""
        request = Request(method, self.url + path, (*self.fields, *(headers or {}).items()), body)
        answer = await self.transport.send_repeatable(request)
        if not answer.accepted:
            raise Untested(answer.error or f"{answer.status} {answer.text[:_SHOWN]}")


Control = Callable[[ControlContext, Mapping[str, object]], Awaitable[None]]
CONTROL_FIELD: Final = "X-Conformance-Token"
"""The header field for the token of the control API."""
RELEASE_CONTROLS: Final = ("evict", "compress", "fault", "fork", "link", "lineage")
"""The controls that scenarios of the release use. A profile, a target plugin or the control API provides them, never a pack."""
PACK_CONTROLS: Final[dict[str, Control]] = {}
"""The controls that packs provide for their own scenarios, on any target."""


@dataclass(frozen=True, slots=True)
class HttpControl:
    """A control that sends one request to the target: method and path, which may contain `{response}` or `{session}`."""

    command: str

    async def __call__(self, context: ControlContext, params: Mapping[str, object]) -> None:
        method, path = self._filled(params)
        await context.send(method, path)

    def how(self, params: Mapping[str, object]) -> str:
        return f"by the profile's control: {' '.join(self._filled(params))}"

    def _filled(self, params: Mapping[str, object]) -> tuple[str, str]:
        method, path = self.command.split(" ", 1)
        short = {name.removesuffix("_id"): _as_text(value) for name, value in params.items()}
        return method, path.format(**short)


def _as_text(value: object) -> object:
    """A value in a path, as JSON writes it: `true`, not Python's `True`."""
    return str(value).lower() if isinstance(value, bool) else value


@dataclass(frozen=True, slots=True)
class ApiControl:
    """A control that calls an operation of the spec's control API."""

    name: str
    token: str = field(repr=False)

    async def __call__(self, context: ControlContext, params: Mapping[str, object]) -> None:
        await context.send("POST", self._path, dict(params), {CONTROL_FIELD: self.token})

    def how(self, params: Mapping[str, object]) -> str:
        return f"by the control API: POST {self._path} {flow_yaml(params)}"

    @property
    def _path(self) -> str:
        return f"{API}/{self.name}"


def how(control: Control, params: Mapping[str, object]) -> str:
    """A short text for the transcript: what the control does with these parameters.

    For a function of a plugin, this is the first line of its docstring.
    """
    if isinstance(control, HttpControl | ApiControl):
        return control.how(params)
    docstring = inspect.getdoc(control) if inspect.isroutine(control) else None
    name = getattr(control, "__name__", type(control).__name__)
    what = docstring.splitlines()[0].removesuffix(".") if docstring else f"by the plugin's {name}"
    return f"{what}: {flow_yaml(params)}"
