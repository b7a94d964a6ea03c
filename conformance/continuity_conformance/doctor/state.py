"""The server that is looked at, as far as it is known: what was found, the profile that fits it best, and what was sent to it."""

from dataclasses import dataclass

from continuity_conformance.doctor.findings import Findings, Topic
from continuity_conformance.doctor.recorder import Recorder
from continuity_conformance.run.calibrate import assumed
from continuity_conformance.scenario.context import Context, Observer
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.target.controls import Controls
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.server import Server


@dataclass(slots=True)
class Patient:
    """`rehearses`: nothing is sent, and what would be is in `transport.exchanges`."""

    findings: Findings
    profile: Profile
    transport: Recorder
    rehearses: bool = False

    def say(self, topic: Topic, text: str) -> None:
        self.findings.say(topic, text)

    def context(self, observer: Observer | None = None) -> Context:
        server, target = Server(self.findings.url, self.profile), assumed(self.profile)
        controls = Controls(server, self.transport, has_api=target.has_api)
        return Context(target, server, self.transport, controls, observer, {}, {})


def dialogue_on(context: Context) -> Dialogue:
    """A dialogue of its own, with names of its own."""
    return Dialogue(context, {})
