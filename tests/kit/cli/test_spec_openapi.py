"""`continuity spec openapi` prints the OpenAPI document in the form that a tool needs."""

import pytest
import yaml

from continuity_conformance.cli.main import main
from continuity_spec.openapi.builds import in_version_3_2, overlay_text, with_header
from continuity_spec.openapi.document import document_text, load_control, load_openapi


def printed(capsys, *arguments):
    assert main(["spec", "openapi", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "file"), [((), "openapi.yaml"), (("--control",), "control.yaml")])
def test_it_prints_the_bundled_document_as_it_is(capsys, arguments, file):
    assert printed(capsys, *arguments).rstrip() == document_text(file).rstrip()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--version", "3.2"), in_version_3_2(load_openapi())),
        (("--header", "X-My-Session"), with_header(load_openapi(), "X-My-Session")),
        (("--header", "X-My", "--version", "3.2"), in_version_3_2(with_header(load_openapi(), "X-My"))),
        (("--control", "--version", "3.2"), in_version_3_2(load_control())),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_it_prints_other_forms(capsys, arguments, expected):
    assert yaml.safe_load(printed(capsys, *arguments)) == expected


def test_it_prints_an_overlay_for_a_name_of_the_header(capsys):
    assert printed(capsys, "--overlay", "X-My-Session").rstrip() == overlay_text("X-My-Session").rstrip()


@pytest.mark.parametrize("option", ["--header", "--overlay"])
def test_what_is_no_name_of_a_header_is_a_usage_error(capsys, option):
    assert main(["spec", "openapi", option, "a b"]) == 2
    assert '"a b" is no name of a header' in capsys.readouterr().err
