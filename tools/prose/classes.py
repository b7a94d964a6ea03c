"""Write docs/reference/classes.md: every conformance class with its claim and its requirements."""

from collections.abc import Iterator
from pathlib import Path

from continuity_spec import ConformanceClass, Spec, load_spec

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "classes.md"
_INTRODUCTION = """\
# Conformance classes

This page is generated from `spec/continuity_spec/classes.yaml` by `python tools/prose/classes.py`. Each requirement is in exactly one class. Within a class they are in the order
in which it is easiest to build them. A server may make the claim of a class when every MUST of the class that applies to it was tested and passed, and when the same is true
of the classes that it requires. A failed SHOULD is a warning. What a server does not offer does not count against it. A class with an essential requirement is not claimed for a server to which
that requirement does not apply."""


def page(spec: Spec) -> str:
    blocks = [_INTRODUCTION, *("\n".join(_class(each, spec)) for each in spec.classes)]
    if spec.selections:
        blocks.append("\n".join(_selections(spec)))
    return "\n\n".join(blocks) + "\n"


def _class(each: ConformanceClass, spec: Spec) -> Iterator[str]:
    yield f"## {each.name}"
    yield ""
    yield each.claim
    if each.requires:
        yield f"Requires {', '.join(each.requires)}."
    if each.essential:
        yield f"Essential: {each.essential}."
    if not each.decides:
        yield "It decides the verdict of a run only if `--class` names it; otherwise its failures are warnings."
    yield from ("", "| requirement | level | text |", "|---|---|---|")
    for identity in each.ids:
        requirement = spec.requirement(identity)
        yield f"| {identity} | {requirement.level.value} | {requirement.text.replace('|', '¦')} |"


def _selections(spec: Spec) -> Iterator[str]:
    yield from (
        "## Selections",
        "",
        "A selection is a set of scenarios across the classes. It is not part of the ladder; `--class NAME` runs it.",
    )
    yield from ("", "| selection | claim | requirements |", "|---|---|---|")
    for each in spec.selections:
        yield f"| {each.name} | {each.claim} | {', '.join(each.scenarios)} |"


if __name__ == "__main__":
    PAGE.write_text(page(load_spec()), encoding="utf-8")
