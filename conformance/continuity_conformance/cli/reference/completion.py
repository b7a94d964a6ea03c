"""`continuity completion`: a script that completes commands, options and names in a shell.

The script is made from the parsers, so it knows every option. It starts no process while somebody types.
"""

import argparse
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from continuity_conformance.cli import main
from continuity_conformance.suite.defects import defects
from continuity_conformance.terminal.output import say
from continuity_spec import load_spec

_NAMES: Final = ("continuity", "session-continuity")
_WITH_IDS: Final = frozenset({"run", "explain", "show"})
_BASH: Final = """\
_continuity() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
  case "$previous" in
{values}
  *) if [ "$COMP_CWORD" -eq 1 ]; then words={commands}; else
    case "${{COMP_WORDS[1]}}" in
{options}
    esac
  fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _continuity {names}
"""
_ZSH: Final = "autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """\
Add the line of your shell to its start file:

  eval "$(continuity completion bash)"         ~/.bashrc
  eval "$(continuity completion zsh)"          ~/.zshrc
  continuity completion fish | source          ~/.config/fish/config.fish
"""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(options: argparse.Namespace) -> int:
    say({"bash": _bash, "zsh": lambda: _ZSH + _bash(), "fish": _fish}[options.shell]().rstrip())
    return 0


def _bash() -> str:
    values = "\n".join(f"  {option}) words={shlex.quote(' '.join(words))} ;;" for option, words in _values().items())
    options = "\n".join(f"    {name}) words={shlex.quote(' '.join(_words(name)))} ;;" for name in main.COMMANDS)
    commands = shlex.quote(" ".join(main.COMMANDS))
    return _BASH.format(values=values, commands=commands, options=options, names=" ".join(_NAMES))


def _fish() -> str:
    lines = [line for command in _NAMES for line in _fish_lines(command)]
    return "\n".join(lines)


def _fish_lines(command: str) -> Iterator[str]:
    for name, about in main.COMMANDS.items():
        yield f"complete -c {command} -n __fish_use_subcommand -a {name} -d {shlex.quote(about)}"
        condition = f"-n {shlex.quote(f'__fish_seen_subcommand_from {name}')}"
        yield f"complete -c {command} {condition} -a {shlex.quote(' '.join(_words(name)))}"
    for option, words in _values().items():
        yield f"complete -c {command} -l {option.removeprefix('--')} -x -a {shlex.quote(' '.join(words))}"


def _values() -> Mapping[str, list[str]]:
    """The words that can follow an option."""
    spec = load_spec()
    return {
        "--class": [*(each.name for each in spec.classes), *(each.name for each in spec.selections)],
        "--area": list(dict.fromkeys(each.area for each in spec.requirements)),
        "--release": list(spec.releases),
        "--fail-on": ["MUST", "SHOULD"],
        "--defect": list(defects()),
    }


def _words(name: str) -> list[str]:
    """The options of a command, its actions, and the ids where it takes some."""
    if name == "serve":
        return ["--defect", "--port", "--db", "--help"]
    parser = _subparsers(main.parser_for(name))[name]
    actions = _subparsers(parser)
    words = [*actions, *_options(parser), *(option for each in actions.values() for option in _options(each))]
    words += [each.id for each in load_spec().requirements] if {name, *actions} & _WITH_IDS else []
    choices = [choice for action in parser._get_positional_actions() for choice in action.choices or ()]  # noqa: SLF001 - argparse has no public way
    return list(dict.fromkeys([*words, *choices, *(defects() if name == "defects" else ())]))


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [option for action in parser._get_optional_actions() for option in action.option_strings]  # noqa: SLF001 - as above


def _subparsers(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001 - as above
    return found[0].choices if found else {}
