"""Targets of plugins: versions, controls in Python, sessions elsewhere, and mistakes of whoever wrote or named one."""

import os
import signal
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from processes import called as continuity

from continuity_conformance import plugin
from continuity_conformance.core import entry_points as discovery
from continuity_conformance.core.errors import KitError, UsageError
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.plugin import (
    Build,
    ControlContext,
    HttpControl,
    Inapplicable,
    Process,
    Profile,
    Say,
    Untested,
)
from continuity_conformance.run.session import Run
from continuity_conformance.target import resolve as targets
from continuity_conformance.target.control_context import ApiControl, how
from continuity_conformance.target.profile import Filling
from continuity_conformance.target.profile_file import load_profile
from continuity_plugins.reference import reference_profile
from continuity_spec import SpecError, load_spec
from continuity_spec.openapi.answers import AnswerValidator

GROUP = discovery.GROUPS["target"]


class Versioned:
    versions: Sequence[str] = ("1.0", "1.1")

    def profile(self, version: str, say: Say) -> Profile:
        say(f"got {version}")
        return Profile(f"versioned {version}", process=Process(("true",)))


class Grown(Versioned):
    """Its releases go on."""

    any_version = any_wheel = any_checkout = True


class Counted:
    """The bundled server; each call of profile() leaves a line in the folder that the test is in."""

    versions: Sequence[str] = ()

    def profile(self, version: str, say: Say) -> Profile:
        with Path("calls").open("a", encoding="utf-8") as calls:
            calls.write(f"{version}{say.__name__}\n")
        return reference_profile()


class Broken:
    versions: Sequence[str] = ()

    def profile(self, version: str, say: Say) -> Profile:
        raise ZeroDivisionError(version + say.__name__)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "tiny"\nversion = "2.1rc1"\n')
    return folder


@pytest.fixture(autouse=True)
def points(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        EntryPoint(each.__name__.lower(), f"{__name__}:{each.__name__}", GROUP)
        for each in (Versioned, Grown, Counted, Broken)
    ]
    missing = EntryPoint("missing", "nowhere_at_all:Target", GROUP)
    monkeypatch.setattr(discovery, "entry_points", lambda **_: [*made, missing])


@pytest.mark.parametrize(
    ("target", "version"), [("versioned==1.0", "1.0"), ("versioned", "1.1"), ("versioned == 1.1", "1.1")]
)
def test_a_version_is_asked_for_by_name(target: str, version: str, capsys: pytest.CaptureFixture[str]):
    resolved = targets.resolve(target, None)

    assert (resolved.profile.name, resolved.url) == (f"versioned {version}", "")
    assert capsys.readouterr().err == f"continuity: got {version}\n"


@pytest.mark.parametrize("target", ["versioned==2.0", "versioned==", "versioned==1.0==", "versioned===1.0"])
def test_an_unknown_version_is_answered_with_the_known_ones(target: str):
    with pytest.raises(UsageError, match=r"has no version .* Known versions: 1\.0, 1\.1\."):
        targets.resolve(target, None)


@pytest.mark.parametrize("version", ["1.0", "2.0", "2.10", "2.0rc1", "2.0.dev3", "2.0-beta.1"])
def test_a_version_that_nobody_listed_can_be_asked_for_where_the_plugin_says_so(version: str):
    assert targets.resolve(f"grown=={version}", None).profile.name == f"versioned {version}"


@pytest.mark.parametrize("version", ["", "2", "2.0.0", "latest", "v2.0", "2.0/../x", "2.0 x", "=2.0", "1.0=="])
def test_what_is_no_version_is_told_there_too(version: str):
    with pytest.raises(UsageError, match=r"Known versions: 1\.0, 1\.1\. Other versions must have the same form\."):
        targets.resolve(f"grown=={version}", None)


def test_a_wheel_that_nobody_released_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    wheel = tmp_path / "a_b-2.0rc1-py3-none-any.whl"
    wheel.touch()

    assert targets.resolve(f"grown=={wheel.name}", None).profile.name == f"versioned {wheel}"
    with pytest.raises(UsageError, match="There is no such wheel"):
        targets.resolve("grown==c.whl", None)
    with pytest.raises(UsageError, match="has no version"):
        targets.resolve(f"versioned=={wheel.name}", None)


@pytest.mark.parametrize("asked", ["{folder}", ".", "./", "../tiny", "~/tiny"])
def test_a_checkout_can_be_asked_for(asked: str, checkout: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(checkout)
    monkeypatch.setenv("HOME", str(checkout.parent))
    asked = asked.format(folder=checkout)

    assert targets.resolve(f"grown=={asked}", None).profile.name == f"versioned {checkout}"
    with pytest.raises(UsageError, match="has no version"):
        targets.resolve(f"versioned=={asked}", None)


@pytest.mark.parametrize("asked", ["/nowhere", "..", "~/nowhere"])
def test_a_folder_without_a_project_is_told(asked: str, checkout: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(checkout)

    with pytest.raises(UsageError, match=r"The folder has no pyproject\.toml"):
        targets.resolve(f"grown=={asked}", None)


@pytest.mark.parametrize("command", [("check", "counted", "-k", "ECHO-02"), ("run", "ECHO-02", "--target", "counted")])
def test_the_profile_is_made_once_in_a_run(command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A second call would throw its random keys away, or install a target twice."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = continuity(*command)

    assert "ECHO" in done.stdout
    assert Path("calls").read_text(encoding="utf-8") == "say\n"


def test_a_build_says_what_it_is():
    release, wheel = Build("2.0rc1"), Build("/a folder/a_b-2.0rc1-py3-none-any.whl")

    assert (release.title, release.number) == ("2.0rc1", (2, 0))
    assert (wheel.title, wheel.number) == ("2.0rc1 (a_b-2.0rc1-py3-none-any.whl)", (2, 0))
    assert release.requirement("a-b[c]") == "a-b[c]==2.0rc1"
    assert wheel.requirement("a-b[c]") == "a-b[c] @ file:///a%20folder/a_b-2.0rc1-py3-none-any.whl"


def test_a_build_of_a_checkout_has_the_version_of_its_project(checkout: Path):
    build = Build(str(checkout))

    assert (build.title, build.number) == ("2.1rc1 (tiny)", (2, 1))
    assert build.requirement("a-b[c]") == f"a-b[c] @ {checkout.as_uri()}"


@pytest.mark.parametrize(
    ("project", "problem"),
    [
        ('[project]\nname = "tiny"\ndynamic = ["version"]\n', "does not state its version.*Build a wheel"),
        ("[project\n", "cannot be read"),
    ],
)
def test_a_checkout_that_does_not_state_its_version_is_told(project: str, problem: str, checkout: Path):
    (checkout / "pyproject.toml").write_text(project)

    with pytest.raises(UsageError, match=problem):
        Build(str(checkout)).title  # noqa: B018 - reads the project


def test_a_target_without_versions_says_so():
    with pytest.raises(UsageError, match="The target broken has no version"):
        targets.resolve("broken==1", None)


def test_a_plugin_that_fails_is_told_in_one_line():
    with pytest.raises(
        KitError, match=r"target broken \(a package without a name\): it failed: ZeroDivisionError: say"
    ):
        targets.resolve("broken", None)


def test_a_plugin_that_cannot_be_imported_is_told_in_one_line():
    with pytest.raises(KitError, match=r"target missing .*: it cannot be loaded: ModuleNotFoundError"):
        targets.resolve("missing", None)


def test_the_public_module_has_what_it_names():
    assert sorted(plugin.__all__) == plugin.__all__
    assert all(hasattr(plugin, name) for name in plugin.__all__)


# Controls


async def evict(context: ControlContext, params: Mapping[str, object]) -> None:
    with closing(sqlite3.connect(context.file("continuity.db"), timeout=10)) as database, database:
        database.execute("DELETE FROM responses WHERE response_id = ?", [params["response_id"]])


async def does_not_work(context: ControlContext, params: Mapping[str, object]) -> None:
    raise Untested(f"{context.file('none.db')}{params}")


async def has_a_bug(_: ControlContext, params: Mapping[str, object]) -> None:
    raise KeyError(params["response_id"])


async def believes_itself(_: ControlContext, __: Mapping[str, object]) -> None:
    """Do nothing, and say that all is well."""


async def never_happens(_: ControlContext, __: Mapping[str, object]) -> None:
    raise Inapplicable("the target never evicts anything")


def slug_03(control: plugin.Control) -> Result:
    return with_evictions("SLUG-03", control)


def with_evictions(id_: str, control: plugin.Control) -> Result:
    profile = reference_profile()
    assert profile.process is not None
    start = tuple(word for word in profile.process.start if not word.startswith("--controls"))
    given = replace(
        profile, process=replace(profile.process, start=start), token="", controls={"evict": control}, offers=None
    )
    requirement = next(each for each in load_spec().requirements if each.id == id_)
    with Run(targets.resolve(None, given), [requirement]) as run:
        return run.result(id_)


def test_a_control_of_a_plugin_works_on_the_targets_files():
    assert slug_03(evict).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("control", "reason"),
    [
        (does_not_work, "the control evict did not work: the target has no file none.db"),
        (has_a_bug, "the control evict did not work: KeyError"),
        (believes_itself, "the target still has the response that was evicted"),
        (HttpControl("POST /test/evict/{response}"), "the control evict did not work: 404"),
    ],
)
def test_a_control_that_does_not_work_is_not_tested(control: plugin.Control, reason: str):
    result = slug_03(control)

    assert result.verdict is Verdict.NOT_TESTED
    assert reason in result.reason


@pytest.mark.parametrize(("id_", "verdict"), [("SLUG-03", Verdict.NOT_APPLICABLE), ("CONTRACT-21", Verdict.PASS)])
def test_where_a_control_says_that_it_does_not_apply_the_rest_is_played(id_: str, verdict: Verdict):
    result = with_evictions(id_, never_happens)

    assert result.verdict is verdict, result.reason


async def without_a_word(_: ControlContext, __: Mapping[str, object]) -> None: ...


@pytest.mark.parametrize(
    ("control", "told"),
    [
        (ApiControl("evict", "token"), "by the control API: POST /conformance/v1/evict {response_id: resp_1}"),
        (HttpControl("POST /test/evict/{response}"), "by the profile's control: POST /test/evict/resp_1"),
        (believes_itself, "Do nothing, and say that all is well: {response_id: resp_1}"),
        (without_a_word, "by the plugin's without_a_word: {response_id: resp_1}"),
        (partial(without_a_word), "by the plugin's partial: {response_id: resp_1}"),
    ],
)
def test_a_control_tells_how_it_does_it(control: plugin.Control, told: str):
    assert how(control, {"response_id": "resp_1"}) == told


def test_a_switch_in_a_path_is_written_as_in_json():
    assert how(HttpControl("POST /fault/{what}/{on}"), {"what": "read", "on": True}) == (
        "by the profile's control: POST /fault/read/true"
    )


async def stop_it(_: ControlContext, params: Mapping[str, object]) -> None:
    stopped.append(int(str(params["pid"])))
    os.kill(stopped[-1], signal.SIGINT)


stopped: list[int] = []


def durable(id_: str, how: str, control: plugin.Control) -> Result:
    profile = reference_profile()
    assert profile.process is not None
    given = replace(profile, process=replace(profile.process, stop_seconds=2.0), controls={how: control})
    requirement = next(each for each in load_spec().requirements if each.id == id_)
    with Run(targets.resolve(None, given), [requirement]) as run:
        return run.result(id_)


@pytest.mark.parametrize(("id_", "how"), [("DURABLE-01", "restart"), ("DURABLE-02", "kill")])
def test_a_target_may_be_ended_in_a_way_of_its_own(id_: str, how: str):
    stopped.clear()

    assert durable(id_, how, stop_it).verdict is Verdict.PASS
    assert stopped


@pytest.mark.parametrize(("id_", "how"), [("DURABLE-01", "restart"), ("DURABLE-02", "kill")])
def test_a_process_that_has_not_ended_was_not_restarted(id_: str, how: str):
    result = durable(id_, how, believes_itself)

    assert result.verdict is Verdict.NOT_TESTED
    assert f"the control {how} did not work: the process has not ended" in result.reason


# What a profile says


def written(folder: Path, text: str) -> Profile:
    path = folder / "profile.yaml"
    path.write_text(text)
    return load_profile(path)


def test_a_profile_has_all_of_it(tmp_path: Path):
    profile = written(
        tmp_path,
        "sessions: {path: /api/sessions, field: session, fields: {parent_id: parent}}\n"
        "controls: {compress: {turns: 4, characters: 3000}, evict: {http: 'DELETE /x/{response}'}}\n"
        "process: {start: [x], files: {a/config.yaml: 'port: {port}'}, isolated: true, warm_up: 60, stop_seconds: 3}\n",
    )

    assert (profile.sessions, profile.session_field) == ("/api/sessions", "session")
    assert profile.session_fields == {"parent_id": "parent"}
    assert profile.filling == Filling(4, 3000)
    assert profile.controls == {"evict": HttpControl("DELETE /x/{response}")}
    assert profile.process == Process(
        ("x",), files={"a/config.yaml": "port: {port}"}, isolated=True, warm_up=60, stop_seconds=3
    )


def test_a_number_that_only_the_schema_takes_for_an_integer_is_refused(tmp_path: Path):
    with pytest.raises(SpecError, match=r"profile\.yaml: Expected `int`, got `float` - at `\$\.limits\.parallel`"):
        written(tmp_path, "limits: {parallel: 2.0}\n")


@pytest.mark.parametrize(
    "text",
    [
        "controls: {compress: {characters: 3000}}\n",
        "controls: {compress: {http: POST /x, turns: 4, characters: 3000}}\n",
        "controls: {compress: {turns: 0, characters: 3000}}\n",
        "controls: {evict: {turns: 4, characters: 3000}}\n",
        "process: {start: [x], files: {../config.yaml: x}}\n",
        "process: {start: [x], files: {/etc/config.yaml: x}}\n",
        "process: {start: [x], warm_up: 0}\n",
        "sessions: {path: sessions}\n",
        "sessions: {fields: {parent: parent_id}}\n",
    ],
)
def test_a_mistake_in_a_profile_is_told(tmp_path: Path, text: str):
    with pytest.raises(SpecError):
        written(tmp_path, text)


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/v1/sessions", "/api/sessions"),
        ("/v1/sessions?limit=2", "/api/sessions?limit=2"),
        ("/v1/sessions/a/messages", "/api/sessions/a/messages"),
        ("/v1/sessions-of-another-kind", "/v1/sessions-of-another-kind"),
        ("/v1/responses/a", "/v1/responses/a"),
    ],
)
def test_sessions_may_be_elsewhere(path: str, where: str):
    profile = Profile("x", sessions="/api/sessions")

    assert profile.path(path) == where
    assert profile.documented_path(where) == path


SESSION = {"id": "a", "object": "session", "created_at": 1, "parent_id": None, "end_reason": None}
OWN = {"id": "a", "started_at": 1, "parent": None, "end_reason": None}
NAMES = {"parent_id": "parent", "created_at": "started_at"}


def problems(session: object) -> list[str]:
    told = AnswerValidator("X").problems("GET", "/v1/sessions/a", 200, "application/json", {}, session)
    return [problem.partition(":")[0] for problem in told]


def test_a_session_may_stand_in_a_field_and_have_names_of_its_own():
    shown = Profile("x", session_field="session", session_fields=NAMES).session({"session": OWN})

    assert problems(OWN)
    assert shown == {**OWN, **SESSION}
    assert problems(shown) == []


@pytest.mark.parametrize("own", [{**OWN, "parent": 5}, {"id": "a", "started_at": 1, "end_reason": None}])
def test_other_names_make_no_session_valid_that_is_none(own: Mapping[str, object]):
    assert problems(Profile("x", session_field="session", session_fields=NAMES).session({"session": own}))


def test_names_that_a_target_does_not_use_change_nothing():
    assert Profile("x", session_fields=NAMES).session(SESSION) == SESSION
    assert problems(SESSION) == []


@pytest.mark.parametrize("body", [None, [], "session", {"session": None}, {}])
def test_an_answer_of_any_shape_may_have_no_session(body: object):
    assert Profile("x", session_field="session").session(body) is None


def lineage(defect: str = "") -> Result:
    """COMPRESS-10 on a target that the profile says has names of its own, and that has the contract's."""
    profile = reference_profile((f"--defect={defect}",) if defect else ())
    requirement = next(each for each in load_spec().requirements if each.id == "COMPRESS-10")
    with Run(targets.resolve(None, replace(profile, session_fields={"parent_id": "parent"})), [requirement]) as run:
        return run.result("COMPRESS-10")


def test_a_profile_with_other_names_hides_no_defect():
    assert lineage().verdict is Verdict.PASS
    assert lineage("child-without-parent").verdict is Verdict.FAIL
