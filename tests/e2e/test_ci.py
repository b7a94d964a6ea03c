"""action.yml and the GitLab snippet, tried as far as they can be without their hosts: their form, and every line of shell in them."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from processes import CONTINUITY

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{\s*([^}]+?)\s*\}\}")
# What the runner takes in the file of a composite action.
ACTION_KEYS = {"name", "author", "description", "branding", "inputs", "outputs", "runs"}
STEP_KEYS = {"name", "id", "if", "env", "continue-on-error"}
RUN_KEYS = STEP_KEYS | {"run", "shell", "working-directory"}
USES_KEYS = STEP_KEYS | {"uses", "with"}
# How the runner starts `shell: bash`.
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")


def documented(title: str, page: str = "ci.md") -> Any:
    """The YAML under a heading of the docs."""
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8").partition(f"## {title}\n")[2]
    return yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])


def run_step(step: dict[str, Any], folder: Path, environ: dict[str, str], **inputs: str):
    given = {name: each["default"] for name, each in ACTION["inputs"].items()} | inputs
    known = {f"inputs.{name}": value for name, value in given.items()} | {"github.action_path": str(ROOT)}
    own = {name: EXPRESSION.sub(lambda found: known[found[1]], value) for name, value in step["env"].items()}
    return subprocess.run(
        [*BASH, step["run"]], cwd=folder, env=environ | own, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The runner's environment, in which the first step has installed the kit. What it depends on was there: test_wheel.py installs that too."""
    folder = tmp_path_factory.mktemp("runner")
    (folder / "there").mkdir()
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if not each.name.startswith(("session_continuity", "pip")):
            (folder / "there" / each.name).symlink_to(each)
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "NO_"))}
    environ = kept | {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PIP_CACHE_DIR": str(Path.home() / ".cache" / "pip"),
        "PIP_NO_COMPILE": "1",
        "PYTHONPATH": str(folder / "there"),
        "RUNNER_TEMP": str(folder),
        "GITHUB_ACTIONS": "true",
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    installed = run_step(STEPS[0], folder, environ, python=sys.executable)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    return environ


def outputs(environ: dict[str, str]) -> dict[str, str]:
    lines = Path(environ["GITHUB_OUTPUT"]).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_the_action_has_only_keys_that_the_runner_knows():
    assert ACTION.keys() <= ACTION_KEYS
    assert {"name", "description", "runs"} <= ACTION.keys()
    assert ACTION["runs"].keys() == {"using", "steps"}
    assert all(each.keys() <= {"description", "required", "default"} for each in ACTION["inputs"].values())
    assert all(each.keys() == {"description", "value"} for each in ACTION["outputs"].values())
    assert all(isinstance(each["default"], str) for each in ACTION["inputs"].values())


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step["name"])
def test_a_step_either_runs_in_bash_or_uses_an_action(step: dict[str, Any]):
    assert step.keys() <= (RUN_KEYS if "run" in step else USES_KEYS)
    assert step.get("shell") == ("bash" if "run" in step else None)


def test_every_expression_names_what_is_there():
    found = set(EXPRESSION.findall((ROOT / "action.yml").read_text()))
    known = {f"inputs.{name}" for name in ACTION["inputs"]} | {"github.action_path"}
    known |= {f"steps.check.outputs.{name}" for name in ACTION["outputs"]} | {"always() && inputs.artifact != ''"}

    assert found == known


def test_no_input_becomes_text_of_a_script():
    assert not any(EXPRESSION.search(step.get("run", "")) for step in STEPS)


def test_every_line_of_shell_parses():
    for step in STEPS:
        subprocess.run(["bash", "-n", "-c", step.get("run", ":")], check=True)


def test_the_action_checks_and_tells(runner, url, tmp_path):
    environ = runner | {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "page.md")}
    given = {"target": url, "areas": "DERIVE,ECHO", "accept-untested": "true", "report": "a report"}
    done = run_step(STEPS[1], tmp_path, environ, **given)

    assert done.returncode == 0, done.stdout + done.stderr
    assert outputs(environ) == {"verdict": "incomplete", "exit-code": "0", "report": "a report"}
    assert "::group::not tested: " in done.stdout
    assert (tmp_path / "a report" / "results.json").is_file()
    assert (tmp_path / "page.md").read_text() == (tmp_path / "a report" / "report.md").read_text() + "\n"


def test_a_failure_fails_the_step_and_is_annotated(runner, defective, tmp_path):
    environ = runner | {"GITHUB_OUTPUT": str(tmp_path / "output")}
    done = run_step(STEPS[1], tmp_path, environ, target=defective, areas="DERIVE")

    assert done.returncode == 1
    assert "\n::error title=DERIVE-04 (MUST)::session: expected " in done.stdout
    assert outputs(environ)["verdict"] == "not_conformant"


def test_a_stale_entry_is_annotated_at_its_line(runner, url, tmp_path):
    (tmp_path / "known.yaml").write_text("# mine\n- {id: DERIVE-04, reason: r, until: 2999-01-31}\n")
    environ = runner | {"GITHUB_OUTPUT": str(tmp_path / "output")}
    done = run_step(STEPS[1], tmp_path, environ, target=url, areas="DERIVE", baseline="known.yaml")

    assert done.returncode == 1
    assert "\n::error file=known.yaml,line=2,title=stale%3A DERIVE-04::" in done.stdout


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"target": "http://127.0.0.1:9"}, "3"),
        ({"target": "$(touch owned)"}, "2"),
        ({"target": "--help"}, "2"),
        ({"target": "http://127.0.0.1:9", "fail-on": "PERHAPS"}, "2"),
    ],
)
def test_what_is_wrong_is_told_and_fails_the_step(runner, tmp_path, inputs: dict[str, str], code: str):
    environ = runner | {"GITHUB_OUTPUT": str(tmp_path / "output")}
    done = run_step(STEPS[1], tmp_path, environ, **inputs)

    assert done.returncode == int(code)
    assert outputs(environ)["exit-code"] == code
    assert outputs(environ)["verdict"] in {"unreachable", "error"}
    assert not (tmp_path / "owned").exists()


def test_the_documented_workflow_gives_inputs_that_the_action_has():
    workflow = documented("GitHub Actions")
    step = next(each for each in workflow["jobs"]["check"]["steps"] if "session-continuity@" in each.get("uses", ""))

    assert step["with"].keys() <= ACTION["inputs"].keys()


def test_the_documented_inputs_and_outputs_are_the_actions():
    text = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
    inputs = text.partition("Inputs: ")[2].partition("Outputs: ")[0]

    assert re.findall(r"`([a-z-]+)`", inputs) == list(ACTION["inputs"])
    assert re.findall(r"`([a-z-]+)`", text.partition("Outputs: ")[2].partition(". It runs")[0]) == list(
        ACTION["outputs"]
    )


def test_the_gitlab_job_leaves_the_artifacts_that_it_names(url, surroundings, tmp_path):
    """All but the installation from the index, which the package is not on yet; and one area, which leaves as many files as all."""
    job = documented("GitLab")["continuity"]
    script = [f"{line} --area DERIVE" for line in job["script"] if line.startswith("continuity check ")]
    environ = surroundings | job["variables"] | {"CONTINUITY_TARGET": url}
    environ["PATH"] = f"{Path(CONTINUITY).parent}:{environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )

    assert len(script) == len([line for line in job["script"] if not line.startswith("pip install")]) == 1
    assert job.keys() <= {"image", "variables", "script", "artifacts"}
    assert job["artifacts"].keys() <= {"when", "paths", "reports"}
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(
        (tmp_path / path).exists() for path in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"])
    )


def test_the_documented_baseline_has_the_form_of_its_schema(tmp_path, at_once):
    text = (ROOT / "docs" / "how-to" / "gate.md").read_text(encoding="utf-8")
    (tmp_path / "known.yaml").write_text(text.partition("```yaml\n")[2].partition("```")[0])
    done = at_once("check", "http://127.0.0.1:9", "--baseline", "known.yaml")

    assert done.returncode == 3, done.stderr
