"""A third-party package `house-rules` for tests of plugins. It contains a target and a pack.

`written` writes the source tree, which pip can install. `found` writes an installed package into a folder for PYTHONPATH, which is faster.
"""

import json
from pathlib import Path

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "house-rules"
version = "2.1"

[project.entry-points."continuity.targets"]
house = "house_rules.server:HouseTarget"

[project.entry-points."continuity.packs"]
house = "house_rules.pack:HousePack"

[tool.hatch.build.targets.wheel]
packages = ["house_rules"]
"""

PACK = '''\
"""What our gateways promise beyond the spec."""

from pathlib import Path

from continuity_conformance.plugin import Dialogue, Pack, Unmet, check


class HousePack(Pack):
    """Rules of the house: a version on every answer, and models that have a name."""

    def requirements(self):
        return sorted(Path(__file__).parent.glob("rules/*.yaml"))

    def controls(self):
        return {"clear-out": clear_out}


async def clear_out(site, params):
    await site.send("DELETE", f"/v1/sessions/{params['session_id']}")


@check
async def house_models(dialogue: Dialogue) -> None:
    """HOUSE-02: the list of models is not empty, and each has a name."""
    listed = await dialogue.do("get", path="/v1/models")
    names = [model.get("id") for model in listed.answer.body["data"]]
    if not names or not all(names):
        raise Unmet("models with names", str(names), expectation="models", step="GET /v1/models")
'''

RULES = """\
- id: HOUSE-01
  level: MUST
  text: Every answer MUST carry the version of the house.
  why: Support cannot tell which gateway answered, and asks the customer.
  steps:
    - chat: {session: $id, say: red}
      expect: {session: $id, headers: {X-House: "2.1"}}
  refuted_by: [house-without-version]

- id: HOUSE-02
  level: SHOULD
  text: The list of models SHOULD have at least one model, and each of them SHOULD have a name.
  why: Clients show an empty menu, and people think that the gateway is down.
  check: house_models
  refuted_by: [house-without-models]

- id: HOUSE-03
  level: MUST
  text: A session that was cleared out MUST begin anew under its id.
  why: People ask for a clean desk, and find the papers of yesterday on it.
  needs: [sessions]
  steps:
    - chat: {session: $id, say: red}
      expect: {sees: [red]}
    - control: {clear-out: {session_id: $id}}
    - chat: {session: $id, say: blue}
      expect: {session: $id, sees: [blue]}
  refuted_by: [house-never-cleared-out]
"""

SERVER = '''\
"""The gateway of the house: the bundled server behind a proxy of a few lines, which adds a header."""

import asyncio
import os
import sys

import aiohttp
from aiohttp import web

from continuity_conformance.plugin import Process, Profile


class HouseTarget:
    """The gateway of the house, with a version on every answer."""

    versions = ()

    def profile(self, version, say):
        version = os.environ.get("HOUSE_VERSION", "2.1")
        start = (sys.executable, "-m", "house_rules.server", "{port}", "{folder}", "{probe}", version)
        return Profile("house", process=Process(start), single_user=True)


async def proxy(request):
    url = f"http://127.0.0.1:{request.app['upstream']}{request.path_qs}"
    fields = {name: value for name, value in request.headers.items() if name.lower() != "host"}
    async with request.app["client"].request(
        request.method, url, headers=fields, data=await request.read(), allow_redirects=False
    ) as answer:
        kept = {k: v for k, v in answer.headers.items() if k.lower() not in {"content-length", "transfer-encoding"}}
        if request.app["version"]:
            kept["X-House"] = request.app["version"]
        return web.Response(status=answer.status, headers=kept, body=await answer.read())


async def main(port, folder, probe, version):
    server = (sys.executable, "-m", "continuity_server", "--port=0", f"--db={folder}/house.db", f"--model={probe}")
    upstream = await asyncio.create_subprocess_exec(*server, stdout=asyncio.subprocess.PIPE)
    app = web.Application()
    app["upstream"] = (await upstream.stdout.readline()).decode().rpartition(":")[2].strip("/ \\n")
    app["version"] = version
    app.router.add_route("*", "/{path:.*}", proxy)
    async with aiohttp.ClientSession() as app["client"]:
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", int(port)).start()
        await upstream.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
'''

FILES = {
    "pyproject.toml": PYPROJECT,
    "house_rules/__init__.py": "",
    "house_rules/pack.py": PACK,
    "house_rules/server.py": SERVER,
    "house_rules/rules/house.yaml": RULES,
}


def written(folder: Path) -> Path:
    """The source of the package."""
    _write(folder, FILES)
    return folder


def found(folder: Path, name: str = "house", package: str = "house-rules", **changed: str) -> Path:
    """A folder for PYTHONPATH with the package in it. `changed`: other text for `pack` and `rules`; other entry points as `points`."""
    module = package.replace("-", "_")
    own = {"pack": PACK, "rules": RULES} | changed
    points = own.get(
        "points",
        f"[continuity.packs]\n{name} = {module}.pack:HousePack\n[continuity.targets]\n{name} = {module}.server:HouseTarget\n",
    )
    _write(
        folder,
        {
            f"{module}/__init__.py": "",
            f"{module}/pack.py": own["pack"],
            f"{module}/server.py": SERVER.replace("house_rules", module),
            f"{module}/rules/house.yaml": own["rules"],
            f"{module}-2.1.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.1\n",
            f"{module}-2.1.dist-info/entry_points.txt": points,
        },
    )
    return folder


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))
