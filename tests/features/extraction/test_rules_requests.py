"""Test extraction rules over HTTP. Each place has one set, which a PUT replaces."""

from __future__ import annotations

import httpx
import pytest

from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.errors import MemoryClientError
from agent_memory_client.models import ExtractionCategory, ExtractionRules


async def test_extraction_rules_are_separate_per_namespace_and_user(live_url: str) -> None:
    async with MemoryAPIClient(MemoryClientConfig(base_url=live_url)) as memory:
        assert await memory.get_extraction_rules(namespace="rules") == ExtractionRules()
        wide = ExtractionRules(instructions="Only hobbies.", do_not_record=["salary"], categories=[ExtractionCategory(name="hobby")])
        narrow = ExtractionRules(timezone="Asia/Tokyo", language="Japanese")
        assert await memory.put_extraction_rules(wide, namespace="rules") == wide
        assert await memory.put_extraction_rules(narrow, namespace="rules", user_id="ada") == narrow
        assert await memory.get_extraction_rules(namespace="rules") == wide
        assert await memory.get_extraction_rules(namespace="rules", user_id="ada") == narrow
        assert await memory.get_extraction_rules(user_id="ada") == ExtractionRules()
        assert (await memory.delete_extraction_rules(namespace="rules")).status == "ok"
        assert (await memory.delete_extraction_rules(namespace="rules")).status == "ok"
        assert await memory.get_extraction_rules(namespace="rules") == ExtractionRules()
        with pytest.raises(MemoryClientError, match="timezone"):
            await memory.put_extraction_rules(ExtractionRules(timezone="Mars/Olympus"))


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"do_not_record": [" "]}, "do_not_record"),
        ({"do_not_record": ["x"] * 201}, "do_not_record"),
        ({"categories": [{"name": ""}]}, "categories"),
        ({"instructions": "x" * 4001}, "instructions"),
        ({"timezone": "x" * 65}, "timezone"),
    ],
)
async def test_invalid_extraction_rules_are_refused_with_the_field_name(
    live: httpx.AsyncClient, rules: dict[str, object], field: str
) -> None:
    answer = await live.put("/v1/extraction-rules", json=rules)
    assert answer.status_code == 422
    assert field in answer.text


async def test_extraction_rules_are_deleted_with_their_user(worked: httpx.AsyncClient) -> None:
    rules = {"do_not_record": ["salary"]}
    places = [{"user_id": "gone"}, {"user_id": "gone", "namespace": "n"}, {"user_id": "stays"}, {"namespace": "n"}]
    for place in places:
        assert (await worked.put("/v1/extraction-rules", params=place, json=rules)).status_code == 200
    assert (await worked.delete("/v1/users/gone", params={"wait": "true"})).json()["status"] == "ok"
    left = [(await worked.get("/v1/extraction-rules", params=place)).json()["do_not_record"] for place in places]
    assert left == [[], [], ["salary"], ["salary"]]
