"""Needs that are no offers: how a target takes the session."""

from dataclasses import replace

import pytest

from continuity_conformance.run.calibrate import assumed, other_headers_in
from continuity_conformance.target.profile import Profile, ToolCall
from continuity_conformance.target.profile_file import load_profile

PROFILE = Profile("a target", header="X-Session")


@pytest.mark.parametrize(
    ("profile", "missing"),
    [
        (PROFILE, {"several-headers"}),
        (replace(PROFILE, other_headers=("X-Other",)), set()),
        (replace(PROFILE, header="", body="session_id"), {"header", "several-headers"}),
        (replace(PROFILE, header="", body="user"), {"header", "several-headers", "user-ignored"}),
        (replace(PROFILE, sessions_by_user=True), {"several-headers", "user-ignored"}),
    ],
)
def test_the_profile_decides_which_traits_a_target_has(profile, missing):
    assert set(assumed(profile).missing_traits) == missing


@pytest.mark.parametrize(
    ("profile", "environment"),
    [
        (PROFILE, "none"),
        (replace(PROFILE, writes=ToolCall("write", "{}")), "shared"),
        (replace(PROFILE, options={"environment": "per-session"}), "per-session"),
    ],
)
def test_a_target_of_which_no_tools_are_named_has_no_environment_unless_it_says_so(profile, environment):
    assert assumed(profile).options["environment"] == environment


def test_a_target_may_refuse_the_header_on_responses():
    refusing = replace(assumed(PROFILE), refuses_header_on_responses=True)

    assert set(refusing.missing_traits) == {"several-headers", "header-on-responses"}


def test_a_profile_may_name_several_headers_the_first_of_which_wins(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("header: [X-Session-Id, session_id]\n", encoding="utf-8")

    profile = load_profile(file)

    assert (profile.header, profile.other_headers) == ("X-Session-Id", ("session_id",))


@pytest.mark.parametrize(
    ("stated", "others"),
    [
        ({"continuity": {"header": "A", "headers": ["A", "B"]}}, ("B",)),
        ({"continuity": {"header": "A"}}, ()),
        ({"continuity": {"header": "A", "headers": "B"}}, ()),
        (None, ()),
    ],
)
def test_capabilities_may_name_several_headers(stated, others):
    assert other_headers_in(stated) == others
