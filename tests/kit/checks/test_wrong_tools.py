"""ENV and a profile that describes the tools of the target wrongly: nothing is decided, and the reason says so."""

from dataclasses import replace

from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import ToolCall
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec


def test_an_unknown_tool_is_not_tested():
    wrong = ToolCall("no_such_tool", '{"name": "{name}", "content": "{content}"}')
    requirement = load_spec().requirement("ENV-01")
    with Run(resolve(None, replace(reference_profile(), writes=wrong, reads=wrong)), [requirement]) as run:
        result = run.result("ENV-01")

    assert result.verdict is Verdict.NOT_TESTED
    assert "`tools` of the profile" in result.reason
