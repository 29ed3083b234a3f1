"""Run Supermemory's unmodified clients, in the latest version and the tutorials' version."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.support.foreign_clients import run_program
from tests.support.lookalike import Lookalike
from tests.support.stack import stack

HERE = Path(__file__).parent
pytestmark = pytest.mark.integrations
HOME = "I only train at home, no gym."


@pytest.fixture
async def keyless_url(redis_url: str, request: pytest.FixtureRequest) -> AsyncGenerator[str]:
    settings = load_settings(KEY_PREFIX=f"sm-{id(request)}", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="supermemory")
    async with stack(settings, redis_url) as url:
        yield url


async def run_trainer(url: str, part: str) -> dict[str, Any]:
    return await run_program(HERE / "trainer_program.py", "supermemory-3", part, SUPERMEMORY_API_KEY="any-key", SUPERMEMORY_BASE_URL=url)


async def test_trainer_program_works_without_a_model(keyless_url: str) -> None:
    """Each step runs in its own process, as if the user had restarted the program."""
    seen = await run_trainer(keyless_url, "log")
    assert (seen["status"], seen["total"]) == ("done", 5)
    assert seen["content"] == seen["listed"][-1] == "Performed bench press: 4 sets of 5 reps at 185.0 lbs. Notes: no knee pain"
    assert seen["profile"]["static"] == []
    assert sorted(seen["profile"]["dynamic"]) == sorted(seen["listed"])
    assert HOME in seen["profile"]["found"]
    named = {"id", "memory", "rootMemoryId", "metadata", "updatedAt", "version", "similarity", "filepath", "documents"}
    assert set(seen["profile"]["keys"]) == named
    assert seen["numbered"] == ["Performed run: 5 km in 26 minutes"]
    assert "bench press" in seen["chunks"][0]
    assert seen["other"] == ["I always train at the gym downtown"]

    habit = await run_trainer(keyless_url, "habit")
    assert any("home" in text for text in habit["static"])

    seen = await run_trainer(keyless_url, "read")
    assert HOME in seen["before"]["found"][:3]
    assert not any("downtown" in text for text in [*seen["before"]["found"], *seen["before"]["dynamic"]])
    assert "My coach is called Petra" in seen["coach"]
    assert "My coach is called Maria" not in seen["coach"]
    assert seen["changed"] == seen["squat"][0] == "I want to squat 320 lbs by summer"
    assert seen["forgotten"]
    assert not any("squat" in text for text in seen["squat_after"])
    assert seen["missing"]
    assert seen["deleted"]
    assert seen["after"] == {"static": [], "dynamic": [], "found": [], "keys": []}
    assert seen["other"] == ["I always train at the gym downtown"]


async def test_trainer_program_works_with_a_model(redis_url: str, lookalike: Lookalike, request: pytest.FixtureRequest) -> None:
    settings = load_settings(
        KEY_PREFIX=f"sm-{id(request)}-model",
        OPENAI_BASE_URL=lookalike.url,
        OPENAI_API_KEY="test",
        EMBEDDING_PROVIDER="local",
        COMPAT_APIS="supermemory",
    )
    async with stack(settings, redis_url) as url:
        seen = await run_trainer(url, "log")
        assert any("train at home" in text for text in [*seen["profile"]["static"], *seen["profile"]["dynamic"]])
        assert any("train at home" in text for text in seen["profile"]["found"])
        assert all("downtown" in text for text in seen["other"])
        assert seen["other"]


async def test_newest_client_line_adds_searches_filters_forgets_and_deletes(keyless_url: str) -> None:
    seen = await run_program(HERE / "namespace_program.py", "supermemory-5", keyless_url)
    run = "Performed run: 5 km in 26 minutes"
    assert (seen["status"], seen["id"], seen["content"], seen["metadata"]) == ("queued", "run-1", run, {"kind": "workout"})
    assert seen["dynamic"] == seen["memories"] == [HOME, run]
    assert (seen["hits"][0], seen["filtered"], seen["documents"]) == (HOME, [run], 2)
    assert seen["other"] == ["I always train at the gym downtown"]
    assert HOME not in seen["after_forget"]
    assert (seen["deleted"], seen["after_delete"]) == (1, [])


@pytest.mark.parametrize("line", ["3", "5"])
async def test_uploaded_file_is_found_replaced_and_deleted(keyless_url: str, line: str) -> None:
    environment = {"SUPERMEMORY_API_KEY": "any-key", "SUPERMEMORY_BASE_URL": keyless_url}
    seen = await run_program(HERE / "file_program.py", f"supermemory-{line}", line, **environment)
    assert seen["title"] == "plan.md"
    assert seen["metadata"]["coach"] == "Petra"
    assert seen["content"] == "Swimming is on Tuesday."
    assert seen["same"]
    assert (seen["found"], seen["changed"], seen["after"]) == (["Swimming is on Tuesday."], ["Swimming is on Friday."], [])
