"""All properties for one target, behind one import: hypothesis takes half a second to load."""

from dataclasses import dataclass

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.findings import Finding
from continuity_conformance.fuzz.names import RunNames
from continuity_conformance.fuzz.property.id_properties import IdProperties
from continuity_conformance.fuzz.property.malformed_bodies import MalformedBodies
from continuity_conformance.fuzz.property.wrong_keys import find_unprotected_operations
from continuity_conformance.fuzz.sync_client import SyncClient


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of one target, by what they are about."""

    client: SyncClient
    names: RunNames
    budget: Budget

    @property
    def ids(self) -> IdProperties:
        return IdProperties(self.client, self.names, self.budget)

    @property
    def bodies(self) -> MalformedBodies:
        return MalformedBodies(self.client, self.names, self.budget)

    def unprotected_operations(self) -> list[Finding]:
        return find_unprotected_operations(self.client, self.names, self.budget)
