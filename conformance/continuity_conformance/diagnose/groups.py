"""Which failures go together: those that one known defect explains, and those that fail in the same way."""

from collections.abc import Iterable, Sequence
from typing import Final

from continuity_conformance.core.verdicts import Evidence, Result, Verdict, clearest
from continuity_conformance.diagnose.alike import Look, are_alike, look, most_frequent
from continuity_conformance.diagnose.confidence import MARGIN, RIVALS, confidence
from continuity_conformance.diagnose.cover import Cover
from continuity_conformance.diagnose.match import Knowledge
from continuity_conformance.diagnose.symptoms import shown_at, symptoms
from continuity_conformance.diagnose.unknown import ADVICE, BREAKS, FORMS, TELLING, common_way
from continuity_conformance.suite.defects import defects

_FEW: Final = 2


class Groups:
    """`groups`: the failures that each known defect explains, and those like them. `rest`: the others."""

    def __init__(self, results: Sequence[Result], knowledge: Knowledge) -> None:
        self.results = {result.id: result for result in results}
        self.run = symptoms(results)
        self.knowledge = knowledge
        self.cover = Cover(self.run, knowledge)
        self.groups: dict[str, list[str]] = {}
        self.rest: list[str] = []
        self.telling: dict[str, Evidence | None] = {}
        """The evidence by which a failure went to others of its way, although it may have more."""
        self.named: dict[str, str] = {}
        """What is known of a failure that went to others of its way."""
        for identity in self.run.fails:
            defect = self.cover.explained_by(identity)
            (self.groups.setdefault(defect, []) if defect else self.rest).append(identity)
        self._looks: dict[str, Look | None] = {}
        self._drop_weak_causes()
        self._merge_causes_of_one_way()
        self._adopt()

    def _drop_weak_causes(self) -> None:
        """What only blocked requirements speak for is no cause."""
        for defect, explained in list(self.groups.items()):
            if not self.failed(explained):
                self.rest += self.groups.pop(defect)

    def _merge_causes_of_one_way(self) -> None:
        """Three or more causes that are all about forms, all about recommendations, or all a server that breaks, are one: a maintainer decides about them as a whole.

        Those whose requirement fails that they were made to break are named in its title.
        """
        for way in (FORMS, ADVICE, BREAKS):
            merged = [defect for defect, explained in self.groups.items() if self._are_all(explained, way, defect)]
            others = sum(self._way(identity) == way for identity in self.failed(self.rest))
            for defect in merged if len(merged) + others > _FEW else ():
                self._merge(defect)

    def _merge(self, defect: str) -> None:
        is_sure = len(self.cover.alternatives(defect, MARGIN)) <= RIVALS
        names = self.knowledge.made_for.get(defect, frozenset()) if is_sure else ()
        ids = self.groups.pop(defect)
        self.rest += ids
        self.telling |= {identity: self.clearest(identity, defect) for identity in ids}
        self.named |= {identity: defects()[defect].text for identity in ids if identity in names}

    def _are_all(self, ids: Iterable[str], way: str, defect: str) -> bool:
        return all(self._way(identity, defect) == way for identity in self.failed(ids))

    def _way(self, identity: str, defect: str | None = None) -> str:
        return common_way(self.results[identity], self.clearest(identity, defect))

    def _adopt(self) -> None:
        """A failure that the signature of a cause leaves undecided belongs to the cause if it fails in the same way as others of it.

        So does the only failure of a cause, and all of a doubtful one: the other cause explains them too.
        """
        for defect, explained in sorted(self.groups.items(), key=lambda group: len(group[1])):
            gives_way = len(explained) == 1 or self._is_doubtful(defect, explained)
            rest = self.failed([*self.rest, *explained])
            if gives_way and all(self._adopting(identity, rest, defect) for identity in explained):
                self.rest += self.groups.pop(defect)
        rest = self.failed(self.rest)
        for identity in rest:
            if nearest := self._adopting(identity, rest):
                self.rest.remove(identity)
                self.groups[nearest].append(identity)

    def _adopting(self, identity: str, rest: Sequence[str], besides: str = "") -> str | None:
        """The cause that a failure goes to; None if it goes to none. `rest`: all failures that nothing explains."""
        return None if self._are_many(identity, rest) else self._nearest(identity, besides)

    def _is_doubtful(self, defect: str, explained: Sequence[str]) -> bool:
        """Whether passes speak against a cause that only explains differences which mean the same everywhere."""
        telling = all(self._kinds(identity) <= TELLING for identity in explained)
        return telling and self.confidence(defect, explained) != "high"

    def _are_many(self, identity: str, rest: Sequence[str]) -> bool:
        """Whether so many others that nothing explains fail just like this one that they are a cause of their own."""
        return (
            self._kinds(identity) <= TELLING and sum(self._kinds(each) == self._kinds(identity) for each in rest) > _FEW
        )

    def _nearest(self, identity: str, besides: str = "") -> str | None:
        """The cause whose failures are most of all like this one; None if nothing is like it.

        A signature that decides about this one decides, unless it fails in a way that means the same everywhere: a server has such a fault in more than one place.
        """
        telling = self._kinds(identity) <= TELLING
        alike = {
            defect: sum(self._alike(identity, each) for each in explained) / (len(explained) if telling else 1)
            for defect, explained in self.groups.items()
            if defect != besides and (telling or not self.knowledge.decides(defect, identity))
        }
        nearest = max(alike, key=alike.__getitem__, default=None)
        return nearest if nearest is not None and alike[nearest] else None

    def _alike(self, one: str, other: str) -> bool:
        ours, theirs = self._look(one), self._look(other)
        return ours is not None and theirs is not None and are_alike(ours, theirs)

    def _look(self, identity: str) -> Look | None:
        if identity not in self._looks:
            shown = self.clearest(identity)
            self._looks[identity] = look(self.results[identity], shown) if shown else None
        return self._looks[identity]

    def _kinds(self, identity: str) -> set[str]:
        return {kind for place in self.run.fails[identity] for kind in place.kinds}

    def failed(self, ids: Iterable[str]) -> list[str]:
        return [identity for identity in ids if self.results[identity].verdict is Verdict.FAIL]

    def confidence(self, defect: str, explained: Iterable[str]) -> str:
        return confidence(self.cover, self.run, self.knowledge, defect, self.failed(explained))

    def clearest(self, identity: str, defect: str | None = None) -> Evidence | None:
        """The clearest evidence of a failure: of a known defect, at a place where the defect fails too."""
        if identity in self.telling:
            return self.telling[identity]
        result = self.results[identity]
        places = self.knowledge.signatures[defect].fails.get(identity, ()) if defect else ()
        return clearest(shown_at(result, places)) or clearest(most_frequent(result.shown_by))
