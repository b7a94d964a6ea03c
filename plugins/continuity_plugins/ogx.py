"""OGX (formerly Llama Stack): the OpenAI Responses API with stored responses and conversations.

POST /v1/conversations creates a conversation, and later requests name it by its id (`slugs: made`). An answer has its own id, but no session. Chat completions
are not stored. OGX needs Python 3.12 or newer; if the kit's own Python is older, the plugin looks for another one. Its log is JSON, because the coloured log
takes seconds to format the traceback of an error, and no request is answered in that time.
"""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from continuity_conformance.plugin import Build, ControlContext, Limits, Process, Profile, Say, python_environment
from continuity_plugins.runtimes import python_from

_KEY: Final = "key-of-alice-for-tests-only"
"""One key only: every local API key of OGX can read everything, and OGX says that they are meant for deployments with a single key. The target is still not
`single_user`: it supports several users through other identity providers, which are not set up here."""
_WAIT: Final = 10.0
_MISSING_PACKAGES: Final = ("sqlite-vec", "faiss-cpu", "sqlalchemy", "aiosqlite", "chardet", "pypdf")
"""The packages that its providers import but its own package does not depend on."""
_TOKENS: Final = ("--no-deps", "litellm==1.106.7")
"""OGX does not start without the token table that tiktoken downloads. This package contains the table."""
_PYTHON: Final = 12
"""The oldest minor version of Python 3 that it supports."""
_CONFIG: Final = """\
version: 2
distro_name: continuity
apis: [file_processors, files, inference, responses, tool_runtime, vector_io]
providers:
  inference:
    - provider_id: vllm
      provider_type: remote::vllm
      config: {base_url: "{probe}", api_token: none, max_tokens: 4096}
  vector_io:
    - provider_id: sqlite-vec
      provider_type: inline::sqlite-vec
      config:
        db_path: "{folder}/data/sqlite_vec.db"
        persistence: {namespace: "vector_io::sqlite_vec", backend: kv_default}
  files:
    - provider_id: files
      provider_type: inline::localfs
      config:
        storage_dir: "{folder}/data/files"
        metadata_store: {table_name: files_metadata, backend: sql_default}
  file_processors:
    - {provider_id: auto, provider_type: "inline::auto"}
  responses:
    - provider_id: builtin
      provider_type: inline::builtin
      config:
        persistence:
          responses: {table_name: responses, backend: sql_default, max_write_queue_size: 10000, num_writers: 4}
  tool_runtime:
    - {provider_id: file-search, provider_type: "inline::file-search"}
storage:
  backends:
    kv_default: {type: kv_sqlite, db_path: "{folder}/data/kvstore.db"}
    sql_default: {type: sql_sqlite, db_path: "{folder}/data/sql_store.db"}
  stores:
    metadata: {namespace: registry, backend: kv_default}
    inference: {table_name: inference_store, backend: sql_default, max_write_queue_size: 10000, num_writers: 4, enabled: true}
    conversations: {table_name: openai_conversations, backend: sql_default}
    prompts: {table_name: prompts, backend: sql_default}
    connectors: {table_name: connectors, backend: sql_default}
registered_resources:
  models:
    - {model_id: probe, provider_id: vllm, provider_model_id: probe, model_type: llm, metadata: {}}
server:
  host: 127.0.0.1
  port: {port}
  auth:
    provider_config:
      type: local_api_key
      api_keys: [KEY]
""".replace("KEY", _KEY)


class OgxTarget:
    """OGX (formerly Llama Stack): /v1/responses and conversations."""

    versions = ("1.5.0",)
    any_version = any_wheel = any_checkout = True

    def profile(self, version: str, say: Say) -> Profile:
        build, python = Build(version), python_from(_PYTHON, "OGX")
        home = python_environment(
            f"ogx-{build.version}", [build.requirement("ogx"), *_MISSING_PACKAGES], say, python=python
        )
        tokens = next(python_environment("tokens-of-litellm", _TOKENS, say, python=python).rglob("tokenizers"))
        return Profile(
            name=f"ogx {build.title}",
            model="vllm/probe",
            chat="none",
            slugs="made",
            principals={"alice": _KEY},
            options={"derivation": "none", "compaction": "in-place", "environment": "none", "tells": "nothing"},
            offers=frozenset({"responses", "stored-responses", "conversations", "streaming"}),
            limits=Limits(parallel=3, at_once=6, turn_seconds=90, ids=100, disturbed=1, examples=2),
            process=Process(
                (str(home / "bin" / "ogx"), "run", "{folder}/run.yaml", "--insecure"),
                ready="/v1/health",
                env={"TIKTOKEN_CACHE_DIR": str(tokens), "OGX_LOG_FORMAT": "json"},
                seconds=120,
                files={"run.yaml": _CONFIG, "data/README": "what the server keeps\n"},
                isolated=True,
                warm_up=60,
            ),
            controls={"evict": evict},
        )


async def evict(context: ControlContext, params: Mapping[str, object]) -> None:
    """Delete the row of a response, which OGX reads again in every turn. Conversations are in other tables."""
    await asyncio.to_thread(_delete, context.file("data/sql_store.db"), params["response_id"])


def _delete(file: Path, response: object) -> None:
    with closing(sqlite3.connect(file, timeout=_WAIT)) as database, database:
        database.execute("DELETE FROM responses WHERE id = ?", [response])
