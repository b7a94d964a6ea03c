"""The oracle: a small model of the contract in memory. All sequences are checked against it.

For each operation it returns a step of the scenario vocabulary: what the server must answer, and what its model must
see. Ids are `$names`, so the oracle needs no server to know the answers, and its steps in a row are a scenario. It is
pure: it knows neither HTTP nor random numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from continuity_conformance.fuzz.sequence.history import SessionHistory

ALICE: Final = "alice"
WORDS: Final = ("red", "blue", "green", "white", "black", "grey", "pink", "brown", "gold", "teal", "lime", "plum")
_REPEATED: Final = frozenset({"session", "response", "answer"})
"""The expectations that a repeated answer must meet too."""
NOT_FOUND: Final[Mapping[str, object]] = {"status": [400, 404, 422]}
"""What is unknown is refused. These statuses mean the same here; OpenAI answers 400 to an unknown previous response."""
StepDict = dict[str, Any]
"""A step as it is written in YAML."""


@dataclass(eq=False, slots=True)
class SessionChain:
    """One session with all its rotations. `ids` has its ids in the order of age; the last one is the tip.

    `by_chat`: its first turn was a chat turn. `branched`: a turn continued from one of its older responses.
    """

    principal: str
    ids: list[str]
    slugs: list[str] = field(default_factory=list)
    history: SessionHistory = field(default_factory=SessionHistory)
    by_chat: bool = False
    branched: bool = False


@dataclass(eq=False, slots=True)
class OracleResponse:
    """A response, and the history that ends with it. `gone`: deleted, evicted, or never stored."""

    name: str
    chain: SessionChain
    history: SessionHistory
    gone: bool = False

    @property
    def newest(self) -> bool:
        """SLUG-13: whether no turn of its session came after it."""
        return self.history is self.chain.history


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """How a turn is sent: by which principal, streamed, compressing, stored, with which Idempotency-Key."""

    principal: str = ALICE
    stream: bool = False
    compress: bool = False
    store: bool = True
    key: str = ""

    def params(self) -> StepDict:
        principal: StepDict = {} if self.principal == ALICE else {"as": self.principal}
        flags = {word: True for word, on in (("stream", self.stream), ("compress", self.compress)) if on}
        store = {} if self.store else {"store": False}
        return {**principal, **flags, **store, **({"idempotency_key": self.key} if self.key else {})}


@dataclass(frozen=True, slots=True)
class KeyedTurn:
    """A turn with an Idempotency-Key: a repetition gets the answer of this step."""

    chain: SessionChain
    step: StepDict


class Oracle:
    """The contract for a target with these options. Every operation changes the model and returns the step.

    `own_branches`: a branch has a session id of its own (SLUG-13 recommends it). Otherwise only response ids name a branch.
    """

    def __init__(self, options: Mapping[str, str], *, own_branches: bool = True) -> None:
        self._own_branches = own_branches
        self._rotates = options["compaction"] == "rotate"
        self._alias = options["echo"] == "alias"
        self._derives = options["derivation"] != "none"
        self._reveals_ids = options["tells"] != "nothing"
        self._counts: dict[str, int] = {}
        self._compressed = False
        self.used_labels: list[str] = []
        self.ids: list[str] = []
        """Every id that a client ever knew, also of deleted sessions."""
        self.slugs: list[str] = []
        self.openings: dict[str, str] = {}
        self.chains: list[SessionChain] = []
        """The sessions with something stored."""
        self.responses: list[OracleResponse] = []
        self.keyed_turns: list[KeyedTurn] = []

    # Turns

    def turn_by_id(self, session: str | None, options: TurnOptions) -> StepDict:
        """HISTORY-04: a chat turn with the session header; an unknown id starts an empty session with that id.

        /v1/responses is left out: the header is a SHOULD there.
        """
        name = session or self._new_id()
        chain = self.session(options.principal, name) or SessionChain(options.principal, [name], by_chat=True)
        return self._turn("chat", {"session": name}, chain, options)

    def turn_without_id(self, history: tuple[str, ...], opening: str | None, options: TurnOptions) -> StepDict:
        """A turn without the header. `history`: earlier turns in the request. `opening`: an opening to use again."""
        say = self._new_label() if history or opening is None else opening
        chain = self._derived_session(options.principal, history[0] if history else say)
        params: StepDict = {"history": list(history)} if history else {}
        return self._accepted_turn("chat", {**params, "say": say}, chain, options, chain.history.replaced_by(history))

    def turn_in_new_session(self, options: TurnOptions) -> StepDict:
        """A turn on /v1/responses that names no session."""
        return self._turn("respond", {}, self._new_session(options.principal), options)

    def turn_by_slug(self, slug: str | None, options: TurnOptions) -> StepDict:
        """SLUG-01, -02: a new slug gets a new session, and keeps it."""
        name = slug or self._new_slug()
        owned = (chain for chain in self.chains if chain.principal == options.principal and name in chain.slugs)
        chain = next(owned, None) or self._new_session(options.principal)
        if options.store and name not in chain.slugs:
            chain.slugs.append(name)
        return self._turn("respond", {"conversation": name}, chain, options)

    def turn_after_response(self, response: OracleResponse, options: TurnOptions) -> StepDict:
        """SLUG-07, -13: the newest response continues its session and an older one starts a branch.

        A response that is gone, or belongs to another principal, is refused.
        """
        params = {"previous_response_id": response.name}
        if not self.owns(options.principal, response):
            return {"respond": {**params, "say": self._new_label(), **options.params()}, "expect": dict(NOT_FOUND)}
        if response.newest:
            return self._turn("respond", params, response.chain, options)
        response.chain.branched = True
        branch = self._new_session(options.principal) if self._own_branches else SessionChain(options.principal, [])
        branch.history = response.history
        return self._turn("respond", params, branch, options)

    def repeat_turn(self, turn: KeyedTurn) -> StepDict:
        """ISOLATE-10: the same key, session and body get the same answer, and no second turn is stored."""
        expect = {word: value for word, value in turn.step["expect"].items() if word in _REPEATED}
        return {**turn.step, "expect": expect}

    # Reading and deleting responses and sessions

    def get_response(self, response: OracleResponse, principal: str) -> StepDict:
        expect = {"body": {"id": response.name}} if self.owns(principal, response) else NOT_FOUND
        return _step("get", {"response": response.name}, principal, expect)

    def delete_response(self, response: OracleResponse, principal: str) -> StepDict:
        """SLUG-15, -18: deletes this response and no other."""
        owned = self.owns(principal, response)
        response.gone = response.gone or owned
        return _step("delete", {"response": response.name}, principal, {"status": "2xx"} if owned else NOT_FOUND)

    def evict(self, response: OracleResponse) -> StepDict:
        """SLUG-03: the cache drops a response; its slug and its session do not change."""
        response.gone = True
        return {"evict": {"response": response.name}}

    def get_session(self, session: str, principal: str) -> StepDict:
        expect = {"body": {"id": session}} if self.session(principal, session) else NOT_FOUND
        return _step("get", {"session": session}, principal, expect)

    def delete_session(self, session: str, principal: str) -> StepDict:
        """DELETE-01: deletes the whole chain, with its slugs, responses and idempotent answers.

        Branches are chains of their own and stay.
        """
        chain = self.session(principal, session)
        self.chains = [other for other in self.chains if other is not chain]
        self.keyed_turns = [turn for turn in self.keyed_turns if turn.chain is not chain]
        for response in self.responses:
            response.gone = response.gone or response.chain is chain
        return _step("delete", {"session": session}, principal, {"status": "2xx"} if chain else NOT_FOUND)

    # Queries

    def session(self, principal: str, name: str) -> SessionChain | None:
        """ISOLATE-06: the principal's own session with this id. The session of another principal is unknown."""
        return next((chain for chain in self.chains if chain.principal == principal and name in chain.ids), None)

    def owns(self, principal: str, response: OracleResponse) -> bool:
        """Whether this principal can use the response."""
        return response.chain.principal == principal and not response.gone

    def repeatable_turns(self) -> list[KeyedTurn]:
        """Turns whose repetition has a known answer. The contract does not say what happens once the response is gone."""
        gone = {response.name for response in self.responses if response.gone}
        return [turn for turn in self.keyed_turns if turn.step["expect"].get("response") not in gone]

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
        number = len(self.used_labels)
        word = WORDS[number % len(WORDS)]
        self.used_labels.append(word if number < len(WORDS) else f"{word} {number // len(WORDS) + 1}")
        return self.used_labels[-1]

    # Sessions

    def _new_session(self, principal: str) -> SessionChain:
        """SLUG-01: the server makes the id. The client knows it only if the server reveals it."""
        return SessionChain(principal, [self._new_id()] if self._reveals_ids else [])

    def _derived_session(self, principal: str, opening: str) -> SessionChain:
        """DERIVE-01, -13: the opening alone decides the id, but each principal has its own session."""
        if not self._derives:
            return replace(self._new_session(principal), by_chat=True)
        if opening not in self.openings:
            self.openings[opening] = self._new_id() if self._reveals_ids else self.new_name("s")
        name = self.openings[opening]
        return self.session(principal, name) or SessionChain(principal, [name], by_chat=True)

    # Steps

    def _turn(self, verb: str, params: StepDict, chain: SessionChain, options: TurnOptions) -> StepDict:
        return self._accepted_turn(verb, {**params, "say": self._new_label()}, chain, options, chain.history)

    def _accepted_turn(
        self, verb: str, params: StepDict, chain: SessionChain, options: TurnOptions, history: SessionHistory
    ) -> StepDict:
        """A turn that succeeds: its expected answer, what the model sees, and what is stored afterwards."""
        say, answer = params["say"], self._expected_session(chain, options)
        self._compressed = self._compressed or options.compress
        view = {} if options.compress else self._expected_view(history, say)
        if options.store:
            chain.history = history.compressed(say) if options.compress else history.plus(say)
            self.chains += [] if chain in self.chains else [chain]
        if verb == "respond":
            self.responses.append(OracleResponse(self.new_name("r"), chain, chain.history, gone=not options.store))
            answer["response"] = self.responses[-1].name
        if options.key:
            answer["answer"] = self.new_name("a")
        step = {verb: {**params, **options.params()}, "expect": {**answer, **view} or {"status": "2xx"}}
        self.keyed_turns += [KeyedTurn(chain, step)] if options.key else []
        return step

    def _expected_session(self, chain: SessionChain, options: TurnOptions) -> StepDict:
        """ECHO-02, COMPRESS-01, -07: the answer names the tip, or with `echo: alias` the id that the client knows.

        A stream that rotates the session announces the new id at its end.
        """
        if not self._reveals_ids or not chain.ids or not (options.store or chain in self.chains):
            return {}
        if not (options.compress and self._rotates and not self._alias):
            return {"session": chain.ids[0] if self._alias else chain.ids[-1]}
        chain.ids.append(self._new_id())
        return {"announces" if options.stream else "session": chain.ids[-1]}

    def _expected_view(self, history: SessionHistory, say: str) -> StepDict:
        """No exact `sees` after a compression in this sequence: the server chooses which turns stay verbatim."""
        return history.recalls(say, self.used_labels) if self._compressed else history.sees(say)


def _step(verb: str, what: StepDict, principal: str, expect: Mapping[str, object]) -> StepDict:
    actor = {} if principal == ALICE else {"as": principal}
    return {verb: {**what, **actor}, "expect": dict(expect)}
