"""The state of a survey: the findings so far, the profile that fits the server best, and the requests that were sent."""

from dataclasses import dataclass

from continuity_conformance.doctor.findings import Findings, Topic
from continuity_conformance.doctor.recorder import Recorder
from continuity_conformance.run.calibrate import assumed
from continuity_conformance.scenario.context import Context, Observer
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.target.controls import Controls
from continuity_conformance.target.process import StartedProcess
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.server import Server


@dataclass(slots=True)
class SurveyState:
    """The state of one survey. `dry_run`: nothing is sent; `transport.exchanges` has what a survey would send."""

    findings: Findings
    profile: Profile
    transport: Recorder
    dry_run: bool = False
    process: StartedProcess | None = None
    """The process of the server, if the kit started it."""

    def add(self, topic: Topic, sentence: str) -> None:
        """Add a sentence to the findings."""
        self.findings.add(topic, sentence)

    def context(self, observer: Observer | None = None) -> Context:
        server, target = Server(self.findings.url, self.profile, self.process), assumed(self.profile)
        controls = Controls(server, self.transport, has_api=target.has_api)
        return Context(target, server, self.transport, controls, observer, {}, {})


def new_dialogue(context: Context) -> Dialogue:
    """A new dialogue with its own variables."""
    return Dialogue(context, {})
