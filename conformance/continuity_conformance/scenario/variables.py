"""Variables: the same `$name` is the same value; two names of one kind and one principal are two values.

The first use in a request makes a fresh value, the first use in an expectation captures one. `${name}` stands inside strings; `$HEADER` and
`$ORIGIN` come from the profile. The scope is one scenario, or one example of it.
"""

import re
import secrets
from collections import ChainMap
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass

from continuity_conformance.core.failure import Untested
from continuity_conformance.target.id_form import IdForm

_IDS = frozenset({"session", "slug"})
_WHOLE = re.compile(r"\$([a-z][a-z0-9-]*)")
_NUMBER = "number"
"""A name that begins like this stands for a fresh number, in digits."""
_INSIDE = re.compile(r"\$\{([a-z][a-z0-9-]*)\}")


@dataclass(frozen=True, slots=True)
class Bound:
    """The value of a variable, its kind (session, response, slug …) and its principal."""

    kind: str
    principal: str
    value: object


class Variables:
    """The variables of one scenario."""

    def __init__(self, example: Mapping[str, object], constants: Mapping[str, str], ids: IdForm | None = None) -> None:
        self._bound: ChainMap[str, Bound] = ChainMap()
        self._example = dict(example)
        self._unobserved: set[str] = set()
        self._constants = {f"${name}": value for name, value in constants.items()}
        self._ids = ids

    def fork(self) -> "Variables":
        """Variables that read these, and keep what they capture to themselves until it is merged."""
        forked = copy(self)
        forked._bound = self._bound.new_child()  # noqa: SLF001 - of its own kind
        forked._unobserved = set(self._unobserved)  # noqa: SLF001
        return forked

    def merge(self, forked: "Variables") -> None:
        """Take over what a fork captured."""
        self._bound.update(forked._bound.maps[0])  # noqa: SLF001 - of its own kind
        self._unobserved |= forked._unobserved  # noqa: SLF001

    def fill(self, value: object, kind: str = "note", principal: str = "alice") -> object:
        """Replace the variables in a value; unknown ones get a fresh value of this kind."""
        if isinstance(value, str):
            return self._fill_text(value, kind, principal)
        if isinstance(value, Mapping):
            return {self._constant(key): self.fill(item, kind, principal) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.fill(item, kind, principal) for item in value]
        return value

    def text(self, value: object, kind: str = "note", principal: str = "alice") -> str:
        return str(self.fill(value, kind, principal))

    def known(self, value: str) -> object | None:
        """The value of `$name`; None if it has none yet. A literal is its own value."""
        match = _WHOLE.fullmatch(value)
        if match is None:
            return self._fill_text(value, "note", "alice")
        name = match[1]
        if name in self._example:
            return self.fill(self._example[name])
        return self._bound[name].value if name in self._bound else None

    def is_new(self, value: object) -> bool:
        """Whether a value is a `$name` that has no value yet, and could be captured."""
        match = _WHOLE.fullmatch(value) if isinstance(value, str) else None
        return match is not None and not {match[1]} & {*self._example, *self._bound, *self._unobserved}

    def capture(self, name: str, kind: str, principal: str, value: object) -> str:
        """Bind a name on its first use in an expectation. Returns the other name that already has this value, or an empty string."""
        twin = next((other for other, bound in self._bound.items() if bound == Bound(kind, principal, value)), "")
        if not twin:
            self._bound[name.removeprefix("$")] = Bound(kind, principal, value)
        return f"${twin}" if twin else ""

    def rename(self, name: str, kind: str, principal: str, value: object) -> None:
        """Bind a name to a value that may already have another name. Nothing else allows two names for one value."""
        self._bound[name.removeprefix("$")] = Bound(kind, principal, value)

    def could_not_capture(self, name: str, kind: str) -> bool:
        """Record that the server did not reveal this value; True if a comparison is lost."""
        others = bool(self._unobserved) or any(bound.kind == kind for bound in self._bound.values())
        self._unobserved.add(name.removeprefix("$"))
        return others

    def values(self) -> list[str]:
        """Every text that a variable stands for."""
        return [bound.value for bound in self._bound.values() if isinstance(bound.value, str)]

    def describe(self, value: object) -> str:
        """A value with its variable name, for messages."""
        name = next((name for name, bound in self._bound.items() if bound.value == value), "")
        return f"{value} (${name})" if name else str(value)

    def _fill_text(self, text: str, kind: str, principal: str) -> object:
        if text in self._constants:
            return self._constants[text]
        match = _WHOLE.fullmatch(text)
        if match is not None:
            return self._value(match[1], kind, principal)
        return _INSIDE.sub(lambda inside: str(self._value(inside[1], kind, principal)), text)

    def _value(self, name: str, kind: str, principal: str) -> object:
        if name in self._example:
            return self.fill(self._example[name], kind, principal)
        if name in self._unobserved:
            raise Untested(f"${name} is not known: the target did not reveal it")
        if name not in self._bound:
            self._bound[name] = Bound(kind, principal, self._fresh(name, kind))
        return self._bound[name].value

    def _fresh(self, name: str, kind: str) -> str:
        """A new value. Ids of sessions and slugs have the form that the target demands."""
        if self._ids is not None and kind in _IDS:
            return self._ids.id_of(secrets.token_hex(16))
        if name.startswith(_NUMBER):
            return str(secrets.randbelow(9 * 10**11) + 10**11)
        return f"continuity-{secrets.token_hex(6)}-{name}"

    def _constant(self, key: object) -> str:
        return self._constants.get(str(key), str(key))
