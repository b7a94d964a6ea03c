"""The bundled server on PostgreSQL: three replicas behind one address, on a database of their own."""

import os
from dataclasses import replace
from functools import cache

from continuity_conformance.plugin import KitError, OldStore, Process, Profile, Say
from continuity_plugins.postgres_cluster import Cluster, NoPostgresError
from continuity_plugins.reference import reference_profile

_REPLICAS = 3
_PRELOAD = (
    "continuity_plugins.folder_database",
    "continuity_server.replicas",
    "continuity_server.store.postgres.upgrade",
)
_DO = "Install PostgreSQL (Debian: apt-get install postgresql)."


class ReferencePostgresTarget:
    """The bundled server as three replicas on PostgreSQL, which must be installed: the plugin starts a cluster of its own for the run.

    Each request goes to another replica. `continuity torture reference-postgres --replicas N` kills single replicas. The variable `CONTINUITY_REFERENCE` adds arguments
    of `continuity serve`.
    """

    versions: tuple[str, ...] = ()

    def profile(self, version: str, say: Say) -> Profile:  # noqa: ARG002 - there is one version, and it is installed
        return reference_postgres_profile(tuple(os.environ.get("CONTINUITY_REFERENCE", "").split()))


def reference_postgres_profile(extra: tuple[str, ...] = ()) -> Profile:
    """The profile of the bundled server on PostgreSQL. `extra`: more arguments of the server, such as `--defect=NAME`."""
    cluster, superuser = _cluster().url("{database}"), _cluster().url("postgres", role="postgres")
    where = (f"--cluster={cluster}", "--folder={folder}", f"--replicas={_REPLICAS}")
    program = ("continuity_plugins.one_address", "--port={port}", *where, "--workspace={folder}/workspace")
    own = reference_profile(extra, program=program)
    assert own.process is not None, "the bundled server is started by the kit"
    assert own.previous is not None, "it has a previous release"
    return replace(
        own,
        name="reference-postgres",
        process=replace(_forked(own.process), several=("--replicas=1",)),
        previous=_forked(own.previous),
        limits=replace(own.limits, disturbed=4),
        legacy=cluster,
        old_store=_old_store(cluster, superuser),
        balanced=True,
    )


def _forked(process: Process) -> Process:
    return replace(process, preload=(*process.preload, *_PRELOAD))


def _old_store(cluster: str, superuser: str) -> OldStore:
    try:
        from continuity_plugins.folder_database import PostgresOldStore  # noqa: PLC0415 - its driver is an extra
    except ModuleNotFoundError as missing:
        do = "pip install 'session-continuity[postgres]'"
        raise KitError(f"{missing.name} is not installed.", where="reference-postgres", do=do) from None
    return PostgresOldStore(cluster, superuser)


@cache
def _cluster() -> Cluster:
    """The cluster of this run. It ends with the kit."""
    try:
        return Cluster()
    except NoPostgresError as error:
        raise KitError(str(error), where="reference-postgres", do=_DO) from None
