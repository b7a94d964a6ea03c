"""The form of the ids that a target accepts (`ids:` in a profile).

A form is text with placeholders for random characters: `{hex:N}`, `{digits:N}`, `{letters:N}` (lower case) and `{uuid}`. The word `uuid` alone means `{uuid}`.
"""

import functools
import random
import re
import string
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

ALPHABETS: Final = {"hex": "0123456789abcdef", "digits": string.digits, "letters": string.ascii_lowercase}
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_PART: Final = re.compile(rf"({'|'.join(ALPHABETS)}):([1-9][0-9]{{0,2}})")
_LITERAL: Final = re.compile(r"[!-z|~]*")
_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_LEAST_COMBINATIONS: Final = 2**40
_UUID_COMBINATIONS: Final = 2**122
LONGEST: Final = 256


@dataclass(frozen=True, slots=True)
class IdForm:
    """A form, checked. `read` makes one."""

    text: str

    @classmethod
    def read(cls, text: str) -> "IdForm":
        """Check a form. Raises ValueError with the problem."""
        form = cls("{uuid}" if text == "uuid" else text)
        for part in form._parts():
            if part.startswith("{") and part != "{uuid}" and not _PART.fullmatch(part[1:-1]):
                raise ValueError(f"{part} is no placeholder of an id")
            if not part.startswith("{") and not _LITERAL.fullmatch(part):
                raise ValueError(f"{part!r} has characters that ids may not contain")
        if form._combinations() < _LEAST_COMBINATIONS:
            raise ValueError("two ids of this form could be equal by chance")
        if len(form.id_of("")) > LONGEST:
            raise ValueError(f"ids of this form are longer than {LONGEST} characters")
        return form

    def id_of(self, seed: str) -> str:
        """An id of this form. The same seed gives the same id."""
        numbers = random.Random(seed)  # noqa: S311 - the caller decides whether the seed can be guessed
        return "".join(_filled(part, numbers) for part in self._parts())

    def fits(self, value: str) -> bool:
        return _pattern(self).fullmatch(value) is not None

    def _parts(self) -> Iterator[str]:
        """The literal texts and the placeholders, in order."""
        at = 0
        for match in _PLACEHOLDER.finditer(self.text):
            yield from (self.text[at : match.start()], match[0])
            at = match.end()
        yield self.text[at:]

    def _combinations(self) -> int:
        product = 1
        for part in self._parts():
            product *= _UUID_COMBINATIONS if part == "{uuid}" else _alphabet_power(part)
        return product


@functools.cache
def _pattern(form: IdForm) -> re.Pattern[str]:
    return re.compile("".join(map(_expression, form._parts())))  # noqa: SLF001 - of this module


def _expression(part: str) -> str:
    if part == "{uuid}":
        return _UUID
    match = _PART.fullmatch(part[1:-1])
    return f"[{ALPHABETS[match[1]]}]{{{match[2]}}}" if match and part.startswith("{") else re.escape(part)


def _filled(part: str, numbers: random.Random) -> str:
    if part == "{uuid}":
        return str(uuid.UUID(int=numbers.getrandbits(128), version=4))
    match = _PART.fullmatch(part[1:-1]) if part.startswith("{") else None
    return "".join(numbers.choices(ALPHABETS[match[1]], k=int(match[2]))) if match else part


def _alphabet_power(part: str) -> int:
    match = _PART.fullmatch(part[1:-1]) if part.startswith("{") else None
    return len(ALPHABETS[match[1]]) ** int(match[2]) if match else 1
