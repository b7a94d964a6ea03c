"""The command line and the environment of a child process. The key is in its environment only: everybody on the machine sees command lines."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from continuity_conformance.core.files import replace_file
from continuity_conformance.ui.form import KEY_NAME, Form

_CONTINUITY: Final = (sys.executable, "-m", "continuity_conformance")
_NOT_FOR_CHILDREN: Final = frozenset({"GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", KEY_NAME})
"""The page reads the output of its children; annotations for GitHub would be in the way."""
PROFILE: Final = "profile.yaml"
RESULTS: Final = "results.json"


def doctor(form: Form, folder: Path) -> Sequence[str]:
    """Examine the target. Without a profile the doctor writes one into the folder."""
    profile = _profile(form, folder) if form.profile.strip() or form.path else None
    if profile is not None:
        given = [f"--profile={profile}"]
    else:
        given = [f"--write={folder / PROFILE}", *([f"--key-env={KEY_NAME}"] if form.key else [])]
    return (*_CONTINUITY, "doctor", "--json", *given, "--", form.address)


def check(form: Form, folder: Path) -> Sequence[str]:
    """Play the suite on the target, with a report in the folder."""
    profile = _profile(form, folder)
    given = [f"--report={folder}", *([f"--profile={profile}"] if profile is not None else [])]
    given += [f"--class={name}" for name in form.classes]
    given += [f"-k{form.only.strip()}"] if form.only.strip() else []
    # A profile with `process:` starts the target itself: then there is no address.
    target = [form.address] if form.address or profile is None else []
    return (*_CONTINUITY, "check", "--json", *given, "--", *target)


def environment(form: Form, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if name not in _NOT_FOR_CHILDREN}
    return {**kept, **({KEY_NAME: form.key} if form.key else {})}


def _profile(form: Form, folder: Path) -> Path | None:
    """The profile's file: the one that the form names, or its text in the folder."""
    form.check()
    if form.path is not None:
        return form.path
    text = form.profile_text()
    if not text:
        return None
    replace_file(folder / PROFILE, text)
    (folder / PROFILE).chmod(0o600)
    return folder / PROFILE
