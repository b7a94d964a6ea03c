"""The verdict on each conformance class, and which results decide the verdict of a run.

The classes are those of the spec (`classes.yaml`). Each pack is a class of its own; no other class depends on it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from continuity_conformance.core.verdicts import Result, RunVerdict, Verdict, counts, gating, run_verdict
from continuity_spec import ConformanceClass, Level, Requirement, Selection, load_spec

NOT_APPLICABLE: Final = "not applicable"


class AboutARequirement(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=AboutARequirement)


@dataclass(frozen=True, slots=True)
class ClassVerdict:
    """The verdict on one class. `verdict` is None where the target lacks the feature that the class is about."""

    name: str
    verdict: RunVerdict | None
    counts: Mapping[Verdict, int]
    passed: int = 0
    """How many of the requirements that count passed."""
    applicable: int = 0
    """How many requirements count: binding ones that apply to the target."""
    next: str = ""
    """The first requirement that counts and fails; without a failure, the first that has not passed."""
    needs: tuple[str, ...] = ()
    """The classes that this one requires and that are not conformant."""
    decides: bool = True

    @property
    def summary(self) -> str:
        return summary(self.verdict, self.passed, self.applicable, self.next, self.needs)


def summary(verdict: RunVerdict | None, passed: int, applicable: int, next_id: str, needs: Sequence[str]) -> str:
    """A class in a few words: "conformant", "17 of 19, next: SLUG-13", "needs Core"."""
    if verdict is None:
        return NOT_APPLICABLE
    if verdict is RunVerdict.CONFORMANT or not applicable:
        return verdict.spoken
    ahead = f"next: {next_id}" if next_id else f"needs {', '.join(needs)}"
    return f"{passed} of {applicable}, {ahead}"


def class_of(result: Result | Requirement) -> str:
    """The class of a requirement. A results.json of an earlier kit does not name it; the bundled spec knows it by id."""
    if result.pack:
        return f"pack {result.pack}"
    return result.class_name or next((each.name for each in load_spec().classes if result.id in each.ids), "")


def easiest_first(about: Iterable[T]) -> list[T]:
    """Sort results, or whatever is about single requirements, by their class, and within a class in the order in which it is easiest to build them."""
    places = {identity: place for place, identity in enumerate(id_ for each in load_spec().classes for id_ in each.ids)}
    return sorted(about, key=lambda each: places.get(each.id, len(places)))


def class_verdicts(
    results: Iterable[Result], classes: Sequence[ConformanceClass] | None = None, *, fail_on: Level = Level.MUST
) -> tuple[ClassVerdict, ...]:
    """The verdict on each class that has results: in the order of the spec, then the packs."""
    known = load_spec().classes if classes is None else classes
    members: dict[str, list[Result]] = {}
    for result in results:
        members.setdefault(class_of(result), []).append(result)
    verdicts: dict[str, ClassVerdict] = {}
    for each in known:
        if each.name in members:
            own = sorted(members[each.name], key=lambda result: each.ids.index(result.id))
            lacks = any(one.id == each.essential and one.verdict is Verdict.NOT_APPLICABLE for one in own)
            judged = _judge(each.name, own, fail_on)
            verdicts[each.name] = _with_requirements(judged, each, verdicts, lacks_the_feature=lacks)
    packs = (name for name in members if name.startswith("pack "))
    return (*verdicts.values(), *(_judge(name, members[name], fail_on) for name in packs))


def selection_verdict(selection: Selection, results: Iterable[Result], *, fail_on: Level = Level.MUST) -> ClassVerdict:
    """The verdict on a selection of scenarios, which cuts across the classes."""
    return _judge(selection.name, [each for each in results if each.id in selection.scenarios], fail_on)


def _judge(name: str, results: Sequence[Result], fail_on: Level) -> ClassVerdict:
    counting = [each for each in gating(results, fail_on) if each.verdict is not Verdict.NOT_APPLICABLE]
    open_ = [each for each in counting if each.verdict is not Verdict.PASS]
    missing = next((each.id for each in open_ if each.verdict is Verdict.FAIL), open_[0].id if open_ else "")
    applies = any(result.verdict is not Verdict.NOT_APPLICABLE for result in results if not result.manual)
    return ClassVerdict(
        name,
        run_verdict(results, fail_on=fail_on) if applies else None,
        counts(results),
        sum(each.verdict is Verdict.PASS for each in counting),
        len(counting),
        missing,
    )


def _with_requirements(
    verdict: ClassVerdict, its: ConformanceClass, known: Mapping[str, ClassVerdict], *, lacks_the_feature: bool
) -> ClassVerdict:
    """A class whose own requirements hold is incomplete while a class that it requires is not conformant.

    It is not claimed for a server that lacks the feature: that one has nothing that the claim is about.
    """
    verdict = replace(verdict, decides=its.decides)
    if verdict.verdict is RunVerdict.CONFORMANT and lacks_the_feature:
        return replace(verdict, verdict=None)
    unmet = tuple(name for name in its.requires if name in known and known[name].verdict is not RunVerdict.CONFORMANT)
    if verdict.verdict is RunVerdict.CONFORMANT and unmet:
        return replace(verdict, verdict=RunVerdict.INCOMPLETE, needs=unmet)
    return verdict
