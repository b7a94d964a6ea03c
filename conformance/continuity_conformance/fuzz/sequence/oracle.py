"""The oracle: a small model of the contract in memory, the one that all random testing is held against.

Given an operation it says, as a step of the scenario vocabulary, what a server must tell and what its model must see. Ids are `$names`, so it needs
no server to know the answers, and a sequence of its steps is a scenario. Pure: it knows neither HTTP nor chance.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from continuity_conformance.fuzz.sequence.memory import Recollection

ALICE: Final = "alice"
WORDS: Final = ("red", "blue", "green", "white", "black", "grey", "pink", "brown", "gold", "teal", "lime", "plum")
_TOLD: Final = frozenset({"session", "response", "answer"})
_GONE: Final = {"status": 404}
Step = dict[str, Any]
"""A step as it is written in YAML."""


@dataclass(eq=False, slots=True)
class Line:
    """One session through all its rotations. `ids` are the names that it goes by, the oldest first, the tip last."""

    principal: str
    ids: list[str]
    slugs: list[str] = field(default_factory=list)
    history: Recollection = field(default_factory=Recollection)


@dataclass(eq=False, slots=True)
class Response:
    """A response, and the history that it was the end of. `gone`: deleted, evicted, or never stored."""

    name: str
    line: Line
    history: Recollection
    gone: bool = False

    @property
    def newest(self) -> bool:
        """SLUG-13: nothing was said after it; else it is an older one of its chain."""
        return self.history is self.line.history


@dataclass(frozen=True, slots=True)
class Manner:
    """How a turn is asked for: by whom, streamed, compressing, stored, under which Idempotency-Key."""

    principal: str = ALICE
    stream: bool = False
    compress: bool = False
    store: bool = True
    key: str = ""

    def params(self) -> Step:
        who: Step = {} if self.principal == ALICE else {"as": self.principal}
        flags = {word: True for word, on in (("stream", self.stream), ("compress", self.compress)) if on}
        kept = {} if self.store else {"store": False}
        return {**who, **flags, **kept, **({"idempotency_key": self.key} if self.key else {})}


@dataclass(frozen=True, slots=True)
class Replay:
    """A turn that was taken under an Idempotency-Key: the answer to its step is the answer to any repetition."""

    line: Line
    step: Step


class Oracle:
    """The contract for a target with these options. Every operation changes the model, and gives the step."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._rotates = options["compaction"] == "rotate"
        self._alias = options["echo"] == "alias"
        self._derives = options["derivation"] != "none"
        self._tells = options["tells"] != "nothing"
        self._counts: dict[str, int] = {}
        self._compressed = False
        self.said: list[str] = []
        self.ids: list[str] = []
        """Every id that a client ever knew, whatever became of its session."""
        self.slugs: list[str] = []
        self.openings: dict[str, str] = {}
        self.lines: list[Line] = []
        """The sessions of which something is stored."""
        self.responses: list[Response] = []
        self.replays: list[Replay] = []

    # Turns

    def by_id(self, session: str | None, manner: Manner) -> Step:
        """A turn by header, of chat alone: on /v1/responses it is a SHOULD. HISTORY-04: an unknown id starts an empty session under that id."""
        named = session or self._new_id()
        line = self.session(manner.principal, named) or Line(manner.principal, [named])
        return self._turn("chat", {"session": named}, line, manner)

    def derived(self, history: tuple[str, ...], opening: str | None, manner: Manner) -> Step:
        """A turn without a header: `history` is what the client sends along, `opening` one that was said before."""
        say = self._new_label() if history or opening is None else opening
        line = self._derived(manner.principal, history[0] if history else say)
        place: Step = {"history": list(history)} if history else {}
        return self._spoken("chat", {**place, "say": say}, line, manner, line.history.told_again(history))

    def fresh(self, manner: Manner) -> Step:
        """A turn of /v1/responses that names no session."""
        return self._turn("respond", {}, self._fresh(manner.principal), manner)

    def by_slug(self, slug: str | None, manner: Manner) -> Step:
        """SLUG-01, -02: a new slug gets a fresh session, and keeps it."""
        named = slug or self._new_slug()
        owned = (line for line in self.lines if line.principal == manner.principal and named in line.slugs)
        line = next(owned, None) or self._fresh(manner.principal)
        if manner.store and named not in line.slugs:
            line.slugs.append(named)
        return self._turn("respond", {"conversation": named}, line, manner)

    def follow(self, response: Response, manner: Manner) -> Step:
        """SLUG-07, -13: the newest response continues its session, an older one branches there, one that is gone or foreign is 404."""
        place = {"previous_response_id": response.name}
        if not self.has(manner.principal, response):
            return {"respond": {**place, "say": self._new_label(), **manner.params()}, "expect": dict(_GONE)}
        if response.newest:
            return self._turn("respond", place, response.line, manner)
        branch = self._fresh(manner.principal)
        branch.history = response.history
        return self._turn("respond", place, branch, manner)

    def repeat(self, replay: Replay) -> Step:
        """ISOLATE-10: the same key, session and body give the same answer, and no second turn."""
        told = {word: value for word, value in replay.step["expect"].items() if word in _TOLD}
        return {**replay.step, "expect": told}

    # What becomes of responses and sessions

    def get_response(self, response: Response, principal: str) -> Step:
        shown = {"body": {"id": response.name}} if self.has(principal, response) else _GONE
        return _asked("get", {"response": response.name}, principal, shown)

    def delete_response(self, response: Response, principal: str) -> Step:
        """SLUG-15, -18: that response, and that response only."""
        had = self.has(principal, response)
        response.gone = response.gone or had
        return _asked("delete", {"response": response.name}, principal, {"status": "2xx"} if had else _GONE)

    def evict(self, response: Response) -> Step:
        """SLUG-03: as the cache would; neither its slug nor its session notices."""
        response.gone = True
        return {"evict": {"response": response.name}}

    def get_session(self, session: str, principal: str) -> Step:
        shown = {"body": {"id": session}} if self.session(principal, session) else _GONE
        return _asked("get", {"session": session}, principal, shown)

    def delete_session(self, session: str, principal: str) -> Step:
        """DELETE-01: the whole chain, its slugs, its responses and its replays. Branches have lines of their own, and stay."""
        line = self.session(principal, session)
        self.lines = [kept for kept in self.lines if kept is not line]
        self.replays = [kept for kept in self.replays if kept.line is not line]
        for response in self.responses:
            response.gone = response.gone or response.line is line
        return _asked("delete", {"session": session}, principal, {"status": "2xx"} if line else _GONE)

    # What is known

    def session(self, principal: str, name: str) -> Line | None:
        """ISOLATE-06: the principal's own session of this id; a foreign one is as unknown."""
        return next((line for line in self.lines if line.principal == principal and name in line.ids), None)

    def has(self, principal: str, response: Response) -> bool:
        return response.line.principal == principal and not response.gone

    def repeatable(self) -> list[Replay]:
        """Where the response is gone meanwhile, whether its answer is still replayed is nobody's promise."""
        gone = {response.name for response in self.responses if response.gone}
        return [replay for replay in self.replays if replay.step["expect"].get("response") not in gone]

    def new_name(self, kind: str) -> str:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"${kind}{self._counts[kind]}"

    def _new_id(self) -> str:
        self.ids.append(self.new_name("s"))
        return self.ids[-1]

    def _new_slug(self) -> str:
        self.slugs.append(self.new_name("slug"))
        return self.slugs[-1]

    def _new_label(self) -> str:
        number = len(self.said)
        word = WORDS[number % len(WORDS)]
        self.said.append(word if number < len(WORDS) else f"{word} {number // len(WORDS) + 1}")
        return self.said[-1]

    # Sessions

    def _fresh(self, principal: str) -> Line:
        """SLUG-01: under an id that the server makes, and the client learns where the server tells it."""
        return Line(principal, [self._new_id()] if self._tells else [])

    def _derived(self, principal: str, opening: str) -> Line:
        """DERIVE-01, -13: the opening makes the id, whoever says it; the session is the principal's own."""
        if not self._derives:
            return self._fresh(principal)
        if opening not in self.openings:
            self.openings[opening] = self._new_id() if self._tells else self.new_name("s")
        named = self.openings[opening]
        return self.session(principal, named) or Line(principal, [named])

    # Steps

    def _turn(self, verb: str, place: Step, line: Line, manner: Manner) -> Step:
        return self._spoken(verb, {**place, "say": self._new_label()}, line, manner, line.history)

    def _spoken(self, verb: str, params: Step, line: Line, manner: Manner, before: Recollection) -> Step:
        """A turn that is answered: what its answer tells, what the model sees, and what is then stored."""
        say, told = params["say"], self._told(line, manner)
        self._compressed = self._compressed or manner.compress
        seen = {} if manner.compress else self._seen(before, say)
        if manner.store:
            line.history = before.compressed(say) if manner.compress else before.plus(say)
            self.lines += [] if line in self.lines else [line]
        if verb == "respond":
            self.responses.append(Response(self.new_name("r"), line, line.history, gone=not manner.store))
            told["response"] = self.responses[-1].name
        if manner.key:
            told["answer"] = self.new_name("a")
        step = {verb: {**params, **manner.params()}, "expect": {**told, **seen} or {"status": "2xx"}}
        self.replays += [Replay(line, step)] if manner.key else []
        return step

    def _told(self, line: Line, manner: Manner) -> Step:
        """ECHO-02, COMPRESS-01, -07: the tip, or the id by which the client knows the chain; in a stream a new id comes at its end."""
        if not self._tells or not (manner.store or line in self.lines):
            return {}
        if not (manner.compress and self._rotates and not self._alias):
            return {"session": line.ids[0] if self._alias else line.ids[-1]}
        line.ids.append(self._new_id())
        return {"announces" if manner.stream else "session": line.ids[-1]}

    def _seen(self, history: Recollection, say: str) -> Step:
        """No exact `sees` once anything was compressed: what is left verbatim is the server's affair."""
        return history.recalls(say, self.said) if self._compressed else history.sees(say)


def _asked(verb: str, what: Step, principal: str, expect: Step) -> Step:
    who = {} if principal == ALICE else {"as": principal}
    return {verb: {**what, **who}, "expect": dict(expect)}
