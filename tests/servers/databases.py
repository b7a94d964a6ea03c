"""Databases for tests of the server: a file of SQLite, or a database of a PostgreSQL that this process starts once."""

import secrets
from functools import cache
from pathlib import Path

from continuity_plugins.folder_database import PostgresOldStore, database_of
from continuity_plugins.postgres_cluster import OWNER, Cluster

KINDS = ("sqlite", "postgres")


@cache
def cluster():
    """The PostgreSQL of this process, which ends with it."""
    return Cluster()


def new_database(kind, folder):
    """The name of a new database, as `--db` takes it."""
    if kind == "sqlite":
        return str(folder / f"{secrets.token_hex(4)}.db")
    name = f"t_{secrets.token_hex(8)}"
    cluster().sql(f"CREATE DATABASE {name} OWNER {OWNER}")
    return cluster().url(name)


def old_store():
    """Writes databases of the old schema into the cluster, one for each folder."""
    return PostgresOldStore(cluster().url("{database}"), cluster().url("postgres", role="postgres"))


def of_folder(folder: Path):
    return database_of(cluster().url("{database}"), folder)
