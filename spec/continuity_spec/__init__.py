"""The spec of session continuity: requirements, releases, the OpenAPI document, test vectors, and the code that reads them.

It imports neither the conformance kit, which plays the scenarios, nor the server, which implements the requirements.

    load_spec()                        all requirements and releases, checked
    errors, model                      the types of a loaded spec, and what can be wrong with its files
    expectations, variables, needs     what a scenario says, read without playing it
    foundations                        the more basic requirements that a scenario rests on
    derivation                         the id that a server derives from the messages of a request
    flow_yaml                          data as one line of YAML
    openapi                            openapi.yaml and control.yaml, their other forms, and whether an answer is what they document
    load                               files to types: YAML, JSON Schema, requirements, classes
    lint                               requirements that are valid, but check less than they seem to
    render                             requirements as text for a terminal
"""

from continuity_spec.errors import (
    InconsistentSpecError,
    NotJsonError,
    NotYamlError,
    SchemaViolationError,
    SpecError,
    UnknownRequirement,
    UnknownScenario,
    UnreadableFileError,
)
from continuity_spec.load.loader import load_checked, load_checked_document, load_requirements, load_spec
from continuity_spec.load.yaml_document import Document, read_yaml
from continuity_spec.model import (
    Always,
    ConformanceClass,
    Level,
    Place,
    Release,
    Requirement,
    Scenario,
    Selection,
    Spec,
    Step,
)

__all__ = [
    "Always",
    "ConformanceClass",
    "Document",
    "InconsistentSpecError",
    "Level",
    "NotJsonError",
    "NotYamlError",
    "Place",
    "Release",
    "Requirement",
    "Scenario",
    "SchemaViolationError",
    "Selection",
    "Spec",
    "SpecError",
    "Step",
    "UnknownRequirement",
    "UnknownScenario",
    "UnreadableFileError",
    "load_checked",
    "load_checked_document",
    "load_requirements",
    "load_spec",
    "read_yaml",
]
