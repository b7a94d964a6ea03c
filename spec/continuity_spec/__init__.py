"""The contract: requirements, the OpenAPI document, test vectors, and the loader that checks them.

It knows nobody: neither the kit that runs the scenarios nor a server that keeps them.
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
from continuity_spec.loader import load, load_checked, load_requirements
from continuity_spec.model import Always, Level, Place, Release, Requirement, Scenario, Spec, Step
from continuity_spec.yaml_source import Document, read_yaml

__all__ = [
    "Always",
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
    "Spec",
    "SpecError",
    "Step",
    "UnknownRequirement",
    "UnknownScenario",
    "UnreadableFileError",
    "load",
    "load_checked",
    "load_requirements",
    "read_yaml",
]
