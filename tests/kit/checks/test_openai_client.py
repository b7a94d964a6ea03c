"""The real OpenAI client: what it is asked about, and what is the matter of other requirements."""

from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec


def test_a_server_that_stores_nothing_by_default_can_be_read_all_the_same():
    requirements = [each for each in load_spec().requirements if each.id in {"ECHO-13", "SLUG-23"}]
    with Run(resolve(None, reference_profile(("--defect=store-off-by-default",))), requirements) as run:
        verdicts = {each.id: run.result(each.id).verdict for each in requirements}

    assert verdicts == {"ECHO-13": Verdict.PASS, "SLUG-23": Verdict.FAIL}
