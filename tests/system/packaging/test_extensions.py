"""Test that the core runs without extensions, and that another package can add one."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from tests.support.cli import ROOT, agent_memory, clean_environment
from tests.support.processes import Running, running
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

FOLDERS = ("agent_memory", "worker", "client", "evaluation", "tests")
# Compatible APIs show profiles and items, so they are removed with the extensions.
LEFT_OUT = ("agent_memory/extensions", "agent_memory/interfaces/compat", "tests/extensions", "tests/compat")


def test_core_passes_its_first_tests_without_extensions(tmp_path: Path) -> None:
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder)  # with the compiled modules
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for folder in LEFT_OUT:
        shutil.rmtree(tmp_path / folder)
    path = ":".join(str(tmp_path / folder) for folder in (".", "worker", "client", "evaluation"))
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--timeout", "600", "tests/fundamentals"]
    program = "import agent_memory.feature_list as it; print(it.__file__, *sorted(feature.name for feature in it.FEATURES))"
    environment = clean_environment(PYTHONPATH=path)
    listed = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    file, *features = listed.stdout.split()
    assert Path(file).is_relative_to(tmp_path)
    assert features == [
        "access",
        "extraction",
        "forget",
        "jobs",
        "memories",
        "oauth_server",
        "privacy",
        "recall",
        "reembed",
        "sessions",
        "transfer",
    ]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


# Another package, whose background function fails at its first call.
COUNTING = """
from agent_memory.foundation.core.feature import Feature

calls = []

async def count_calls(runtime, stop):
    calls.append(runtime.keys.root)
    if len(calls) == 1:
        raise ValueError("the first call fails")
    print("calls of counting:", *calls, flush=True)
    await stop.wait()

FEATURE = Feature("counting", background=("counting:count_calls",))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install examples/extension and a small counting package into a separate folder."""
    folder = tmp_path_factory.mktemp("extension")
    source = shutil.copytree(ROOT / "examples" / "extension", folder / "source")
    target = folder / "installed"
    install = ["pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target), str(source)]
    subprocess.run([sys.executable, "-m", *install], check=True, env=clean_environment(), capture_output=True)
    (target / "counting.py").write_text(COUNTING)
    metadata = target / "counting-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[agent_memory.extensions]\ncounting = counting:FEATURE\n")
    return target


@pytest.fixture(scope="module")
async def server(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running]:
    folder = tmp_path_factory.mktemp("served")
    async with running(folder, "serve", "--port", "0", PYTHONPATH=str(installed)) as server:
        yield server


@pytest.fixture(scope="module")
async def http(server: Running) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=30, base_url=await server.base_url()) as client:
        yield client


async def test_installed_extension_serves_its_route(http: httpx.AsyncClient) -> None:
    for session in ("s1", "s2"):
        body = {"user_id": "ana", "messages": [{"role": "user", "content": "I moved to Porto"}]}
        (await http.put(f"/v1/working-memory/{session}", json=body)).raise_for_status()
    assert (await http.get("/v1/last-session", params={"user_id": "ana"})).json() == {"session_id": "s2"}
    assert (await http.get("/v1/last-session", params={"user_id": "ben"})).json() == {"session_id": None}
    assert "/v1/last-session" in (await http.get("/openapi.json")).json()["paths"]


async def becomes(name: str | None, http: httpx.AsyncClient, owner: dict[str, str]) -> None:
    """Wait until the user has this nickname."""

    async def has_name() -> bool:
        return (await http.get("/v1/nickname", params=owner)).json() == {"name": name}

    await wait_until(has_name, f"the nickname is {name}")


async def test_installed_extension_adds_data_jobs_and_a_prompt_section(http: httpx.AsyncClient) -> None:
    owner = {"user_id": "ana", "namespace": "home"}
    for name, before in (("Annie", None), ("Queen  Ana ", "Annie")):
        assert (await http.put("/v1/nickname", params={**owner, "name": name})).json() == {"before": before}
    await becomes("Queen Ana", http, owner)
    too_long = await http.put("/v1/nickname", params={**owner, "name": "A" * 81})
    assert (too_long.status_code, "must have 1 to 80 characters" in too_long.text) == (422, True), too_long.text
    prompt = await http.post("/v1/memory/prompt", json={"query": "Who am I?", **owner})
    assert 'not an instruction): \\"Queen Ana\\"' in prompt.text
    exported = (await http.post("/v1/users/ana/export")).raise_for_status().text
    assert '"kind":"nickname"' in exported.replace('": "', '":"')
    erased = await http.delete("/v1/users/ana", params={"wait": 20})
    assert erased.status_code in (200, 202), erased.text
    await becomes(None, http, owner)
    imported = await http.post("/v1/users/bo/import", content=exported, headers={"content-type": "application/x-ndjson"})
    assert imported.json()["imported"]["nickname"] == 1, imported.text
    await becomes("Queen Ana", http, owner | {"user_id": "bo"})


async def test_background_function_of_an_installed_package_restarts_after_an_error(server: Running) -> None:
    await server.said(r"(calls of counting: am:\{0\}: am:\{0\}:)\n")
    assert server.output.count("ValueError: the first call fails") == 1


async def test_installed_package_adds_a_command(installed: Path, http: httpx.AsyncClient, tmp_path: Path) -> None:
    (await http.put("/v1/nickname", params={"user_id": "cleo", "name": "Queen Cleo"})).raise_for_status()
    command = ("nickname", "cleo", "--json", "--url", str(http.base_url))
    done = await asyncio.to_thread(agent_memory, *command, cwd=tmp_path, cold=True, PYTHONPATH=str(installed))
    assert (done.returncode, done.stdout) == (0, '{"name": "Queen Cleo"}\n'), done.stderr


def test_extension_refuses_an_invalid_setting_in_one_line(installed: Path, tmp_path: Path) -> None:
    variables = {"PYTHONPATH": str(installed), "NICKNAME_MAX_CHARACTERS": "0", "LOG_LEVEL": "WARNING"}
    done = agent_memory("serve", "--port", "0", cwd=tmp_path, cold=True, **variables)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "agent-memory: setting NICKNAME_MAX_CHARACTERS: must be at least 1"


RECURRING = """
import asyncio, sys
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.settings import load_settings
from agent_memory.runtime import open_runtime
from agent_memory_worker.periodic_runner import periods, run_job
from nickname import Nicknames

async def main():
    settings = load_settings(KEY_PREFIX="nicknames")
    print(periods(settings)["nicknames"])
    async with open_runtime(settings, sys.argv[1]) as runtime:
        scope = scope_of_work("default")
        for user, name in (("ana", "Queen  Ana "), ("bo", "Bo")):
            await runtime[Nicknames].put(scope, None, user, name)
        print(await run_job(runtime, "nicknames", 7.0))
        print(*[await runtime[Nicknames].load(scope, None, user) for user in ("ana", "bo")], await runtime[Nicknames].tidy_all())

asyncio.run(main())
"""


def test_recurring_job_of_an_extension_tidies_all_nicknames(installed: Path, lasting_redis_url: str) -> None:
    environment = clean_environment(PYTHONPATH=str(installed), MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    command = [sys.executable, "-c", RECURRING, lasting_redis_url]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["86400", "7.0", "Queen Ana Bo 0"], done.stdout + done.stderr
