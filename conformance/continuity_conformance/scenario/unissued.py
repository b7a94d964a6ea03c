"""Ids that nobody was given: made from a real id of the target, so that they have its form and only the store can tell them apart.

The longest run of letters and digits of an id is where it varies. In the third quarter of that run every character is replaced by another one of its
class. Prefix, length, separators, the version digits of a UUID, and a time or a marker at the front stay as they are.
"""

import re
from typing import Final

from continuity_conformance.core.failure import Untested

_RUN: Final = re.compile(r"[0-9A-Za-z]+")
_SHORTEST: Final = 8
"""A shorter run may be a counter, and then another id of the same form may exist."""
_CLASSES: Final = ("0123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ")
_AMBIGUOUS: Final = frozenset("0189ilouILOU")
"""Characters that some alphabets for ids leave out (base 32, base 58). They are replaced, and never put in."""


def unissued(ident: str) -> str:
    """An id of the form of this one that the target gave to nobody."""
    runs = [match.span() for match in _RUN.finditer(ident)]
    start, end = max(runs, key=lambda span: (span[1] - span[0], span[0]), default=(0, 0))
    length = end - start
    if length < _SHORTEST:
        raise Untested(f"no unknown id can be made from {ident}: it is so short that any other may exist too")
    first, last = start + length // 2, start + length * 3 // 4
    return ident[:first] + "".join(map(_other, ident[first:last])) + ident[last:]


def _other(character: str) -> str:
    """The next character of the same class, of those that every alphabet has."""
    letters = next(group for group in _CLASSES if character in group)
    place = letters.index(character) + 1
    return next(other for other in letters[place:] + letters[:place] if other not in _AMBIGUOUS)
