"""The shell completes commands, options and names."""

import subprocess

import pytest
from processes import called

from continuity_conformance.cli.main import COMMANDS
from continuity_spec import load_spec

BASH = called("completion", "bash").stdout


def completed(*words: str) -> set[str]:
    """What bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in ("continuity", *words))
    script = f'{BASH}\nCOMP_WORDS=({line}) COMP_CWORD={len(words)}\n_continuity\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    return set(subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split())


def test_the_first_word_is_a_command():
    assert completed("") == set(COMMANDS)
    assert completed("che") == {"check", "checklist"}


def test_an_option_belongs_to_its_command():
    assert completed("check", "--base") == {"--baseline"}
    assert completed("doctor", "--base") == set()


def test_names_of_the_spec_are_completed():
    assert completed("run", "HISTORY-0") >= {"HISTORY-01", "HISTORY-02"}
    assert completed("check", "--class", "R") == {"Responses", "Recovery"}
    assert completed("serve", "--defect", "history-doub") == {"history-doubles"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_every_command_and_every_id(shell):
    script = called("completion", shell).stdout

    assert [name for name in COMMANDS if name not in script] == []
    assert [each.id for each in load_spec().requirements if each.id not in script] == []
