"""`continuity check --NAME` and `pytest --continuity-NAME` are the same options: they are declared from one table."""

import argparse
from typing import Any

import pytest
from processes import called as continuity

from continuity_conformance.cli import check
from continuity_conformance.core.budget import Budget
from continuity_conformance.core.option_table import RUN_OPTIONS, values
from continuity_conformance.core.run_options import RunOptions
from continuity_conformance.pytest.plugin import pytest_addoption
from continuity_spec import Level

OF_ONE_COMMAND = {"help", "verbose", "k", "target", "json"}
"""`-k` is pytest's own there, the target is an argument here, and `--json` is for programs that start the command."""


class Declared:
    """Stands for pytest's parser and its group: keeps what a plugin declares."""

    def __init__(self) -> None:
        self.options: dict[str, dict[str, Any]] = {}

    def getgroup(self, *_: str) -> "Declared":
        return self

    def addoption(self, name: str, **keywords: Any) -> None:
        self.options[name.removeprefix("--continuity-")] = keywords


def of_pytest() -> dict[str, dict[str, Any]]:
    declared = Declared()
    pytest_addoption(declared)
    return {name: keywords for name, keywords in declared.options.items() if name not in OF_ONE_COMMAND}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(exit_on_error=False)
    check.add_arguments(made)
    return made


def of_check() -> dict[str, argparse.Action]:
    actions = {action.option_strings[-1].lstrip("-"): action for action in parser()._actions if action.option_strings}
    return {name: action for name, action in actions.items() if name not in OF_ONE_COMMAND}


def test_both_commands_have_every_option_of_the_table():
    names = {option.name for option in RUN_OPTIONS}

    assert set(of_check()) == names
    assert set(of_pytest()) == names


@pytest.mark.parametrize("option", RUN_OPTIONS, ids=lambda option: option.name)
def test_an_option_has_the_same_help_in_both_commands(option):
    assert of_check()[option.name].help == of_pytest()[option.name]["help"] == option.help


@pytest.mark.parametrize("option", RUN_OPTIONS, ids=lambda option: option.name)
def test_an_option_has_the_same_default_in_both_commands(option):
    assert of_check()[option.name].default == of_pytest()[option.name].get("default", False)


def test_without_arguments_the_defaults_of_a_run_hold():
    assert RunOptions.read(values(parser().parse_args([]))) == RunOptions("reference")


def test_arguments_become_the_options_of_a_run():
    given = ["url", "--area", "slug", "--area", "echo,derive", "--fail-on", "should", "--examples", "3", "--seed", "7"]
    read = RunOptions.read(values(parser().parse_args(given)))

    assert read.target == "url"
    assert read.areas == ("SLUG", "ECHO", "DERIVE")
    assert read.fail_on is Level.SHOULD
    assert read.budget == Budget(3, 7)


def test_no_examples_at_all_is_a_usage_error():
    done = continuity("check", "--examples", "0")

    assert done.returncode == 2
    assert "a number of at least 1" in done.stderr
