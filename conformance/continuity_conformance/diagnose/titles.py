"""The title of a cause: one sentence that a maintainer understands, without the body of an answer."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from continuity_conformance.core.text import cut, one_line
from continuity_conformance.core.verdicts import Evidence, Result
from continuity_conformance.diagnose.unknown import ADVICE, FORMS, common_way
from continuity_conformance.suite.defects import defects

_SENTENCE: Final = re.compile(r"(?<=[^.]\.)\s+(?=[A-Z`])")
_BODY: Final = re.compile(r"(?<=\b\d{3}) (?!or\b)[^;]*|(?<=tells a failure):[^;]*")
_TOLD: Final = ", but the answer tells a failure"
_REASON: Final = re.compile(
    r"""4\d\d .*?(?P<mark>["'])(?:message|msg|detail)(?P=mark):\s*(?P<quote>["'])(?![{\[])(?P<reason>.{3,}?)(?P=quote)\s*[,}\]]""",
    re.DOTALL,
)
"""The message in an error."""
_TURNS: Final = frozenset({"sees", "recalls", "forgets", "serial"})
_SEEN: Final = 80
_RULE: Final = 170
_NAMES: Final = 4
_ALSO: Final = 2
_SAID: Final = {
    "sees": "the model saw {actual} instead of {expected}",
    "recalls": "the model was given {actual}; expected: {expected}",
    "status": "the answer is {actual}, expected {expected}",
    "session": "the answer names another session",
    "serial": "no order explains what the turns saw: {actual}",
    "body": "the answer is {actual}, expected {expected}",
}
"""What is said of the expectations that are met most often; of another one its own words are."""


def title(group: Sequence[Result], leading: Result, shown: Evidence | None, names: Sequence[str] = ()) -> str:
    """The title of failures that no known defect explains. `leading`: the one to fix first; `shown`: its clearest evidence; `names`: what is known of single ones."""
    way = common_way(leading, shown)
    if way and (len(group) > 1 or way != ADVICE):
        return _with_names(way, names) if way != FORMS else way
    rule = cut(_first_sentence(leading.text), _RULE).rstrip(".")
    more = f", and {len(group) - 1} more" if len(group) > 1 else ""
    return f"Not met: {rule}{more}{f' ({observed(shown)})' if shown else ''}"


def title_of_known(defect: str, ties: Sequence[str], elsewhere: Sequence[str]) -> str:
    """What a defect does. `ties`: others that fit as well; `elsewhere`: those that are seen where this one does not fail, and it fails at the fewer places."""
    either = ". Or: ".join(_text(name) for name in [defect, *ties[:1]])
    return ". Also: ".join([either, *(_text(name) for name in elsewhere[:_ALSO])])


def _text(defect: str) -> str:
    return defects()[defect].text.rstrip(".")


def _with_names(way: str, names: Sequence[str]) -> str:
    told = [name.rstrip(".") for name in names[:_NAMES]]
    left = len(names) - len(told)
    return way + (f". {'. '.join(told)}" if told else "") + (f", and {left} more" if left > 0 else "")


def _first_sentence(text: str) -> str:
    return _SENTENCE.split(one_line(text), maxsplit=1)[0]


def _told(text: str, expectation: str) -> str:
    """The text without bodies of answers. An expected "400 or 404" has none."""
    return text if expectation in _TURNS else _BODY.sub("", text)


def _first_of(either: Evidence) -> Evidence:
    """The first of several expectations of which one had to hold."""
    expectation, _, actual = either.actual.partition("; ")[0].partition(" ")
    expected = either.expected.partition(", or ")[0].removeprefix(f"{expectation} ")
    return replace(either, expectation=expectation, expected=expected, actual=actual)


def observed(shown: Evidence) -> str:
    """What was there instead of what was expected, in words."""
    where = f'in "{shown.scenario}" ' if shown.scenario else ""
    shown = _first_of(shown) if shown.expectation == "either" else shown
    words = _SAID.get(shown.expectation, "{expectation}: expected {expected}, actual {actual}")
    expected, actual = (cut(one_line(_told(text, shown.expectation)), _SEEN) for text in (shown.expected, shown.actual))
    actual = actual.replace(_TOLD, ", and the refusal is inside the stream") + _reason(shown)
    return where + words.format(expectation=shown.expectation, expected=expected, actual=actual)


def _reason(shown: Evidence) -> str:
    """In which words the server refuses, if it does."""
    found = _REASON.match(shown.actual) if shown.expectation == "status" else None
    return f' "{cut(one_line(found["reason"]), _SEEN)}"' if found else ""
