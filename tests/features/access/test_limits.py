"""Test that a tenant's limits apply only to that tenant (row S7).

Covers requests, memories, model tokens and sizes.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import httpx
import pytest

from agent_memory.features.access.limits import LimitStore, RequestLimit
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.jobs.operation_store import Mark
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core import metrics
from agent_memory.foundation.core.errors import BudgetSpent, TooMany
from agent_memory.foundation.core.settings import LimitSettings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.llm.token_usage import metering, note
from agent_memory.interfaces.http.app import create_app
from agent_memory_client import MemoryAPIClient, MemoryClientConfig, MemoryRateLimitError
from agent_memory_client.models import AppendMessagesRequest, ClientMemoryRecord, MemoryMessage, OperationState
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig
from tests.support.waiting import wait_until

BUSY, CALM = scope_of_work("busy"), scope_of_work("calm")


def _limited(name: str) -> float:
    samples = [sample for metric in metrics.LIMITED.collect() for sample in metric.samples if sample.name.endswith("_total")]
    return sum(sample.value for sample in samples if name in sample.labels.values())


def _client(rig: Rig) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(create_app(rig.settings, rig.rt)), base_url="http://localhost")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def _admitted(limit: RequestLimit, tenant: str, number: int) -> int:
    """Return how many of the concurrent requests succeed."""
    found = await asyncio.gather(*(limit.admit(tenant) for _ in range(number)), return_exceptions=True)
    assert all(one is None or isinstance(one, TooMany) for one in found)
    return sum(one is None for one in found)


async def test_request_limit_is_shared_by_all_processes(rig: Rig) -> None:
    """At one request per hour, only the burst succeeds, however many processes there are."""
    settings = LimitSettings.model_validate({"requests_per_minute": 1, "requests_burst": 60})
    limits = [RequestLimit(settings, LimitStore(rig.rt.client, rig.keys), Clock()) for _ in range(3)]
    found = await asyncio.gather(*(_admitted(limit, "busy", 100) for limit in limits))
    assert sum(found) in (60, 61)
    assert await _admitted(limits[0], "calm", 10) == 10


async def test_refusal_names_retry_after_and_costs_no_redis_call(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    store = LimitStore(rig.rt.client, rig.keys)
    limit = RequestLimit(LimitSettings.model_validate({"requests_per_minute": 6, "requests_burst": 2}), store, clock)
    for _ in range(2):
        await limit.admit("busy")
    with pytest.raises(TooMany) as refused:
        await limit.admit("busy")
    assert 1 <= refused.value.retry_after <= 10
    asked: list[Any] = []
    monkeypatch.setattr(store, "take", lambda *_, **__: asked.append(1))  # pyright: ignore[reportUnknownLambdaType]
    for _ in range(50):
        with pytest.raises(TooMany):
            await limit.admit("busy")
    assert asked == []
    monkeypatch.undo()
    clock.now += refused.value.retry_after
    await rig.rt.client.hset(rig.keys.rate("busy"), "n", "1.0")  # what the bucket gains in ten seconds of Redis time
    await limit.admit("busy")


async def test_request_limit_takes_permits_from_redis_in_batches(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LimitStore(rig.rt.client, rig.keys)
    limit = RequestLimit(LimitSettings.model_validate({"requests_per_minute": 60_000, "requests_burst": 1000}), store, Clock())
    taken: list[int] = []
    take = store.take

    async def seen(*arguments: Any, **options: Any) -> Any:
        taken.append(options["most"])
        return await take(*arguments, **options)

    monkeypatch.setattr(store, "take", seen)
    for _ in range(500):
        await limit.admit("busy")
    assert len(taken) == 5
    assert set(taken) == {100}


async def test_http_flood_is_refused_without_affecting_another_tenant(make_rig: MakeRig) -> None:
    admin = "the-operator-of-this-server"
    own = {"busy": {"requests_per_minute": 1, "requests_burst": 5}}
    async with make_rig(AUTH_MODE="token", AUTH_ADMIN_TOKEN=admin, LIMIT_TENANTS=own) as rig, _client(rig) as http:
        operator = {"x-api-key": admin}
        keys: dict[str, dict[str, str]] = {}
        for tenant in ("busy", "calm"):
            made = await http.post("/v1/auth/tokens", json={"tenant": tenant, "role": "write"}, headers=operator)
            keys[tenant] = {"x-api-key": made.json()["token"]}
        before = _limited("requests")
        answers = {
            tenant: await asyncio.gather(*(http.get("/v1/working-memory/", headers=keys[tenant]) for _ in range(20))) for tenant in keys
        }
        found = {tenant: Counter(answer.status_code for answer in some) for tenant, some in answers.items()}
        assert found == {"busy": {200: 5, 429: 15}, "calm": {200: 20}}
        assert _limited("requests") - before == 15
        for answer in answers["busy"]:
            if answer.status_code == 429:
                assert answer.json()["code"] == "too_many"
                assert 1 <= int(answer.headers["retry-after"]) <= 61
        over_mcp = await http.post("/mcp", headers=keys["busy"], json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert over_mcp.status_code == 429
        # Operators and monitoring are always admitted.
        assert (await http.get("/v1/auth/tokens", headers=operator)).status_code == 200
        assert {(await http.get("/v1/health", headers=keys["busy"])).status_code for _ in range(10)} == {200}
        config = MemoryClientConfig(base_url="http://localhost", api_key=keys["busy"]["x-api-key"], max_retries=2)
        async with MemoryAPIClient(config, transport=httpx.ASGITransport(create_app(rig.settings, rig.rt))) as client:
            with pytest.raises(MemoryRateLimitError) as refused:
                await client.list_sessions()
        assert refused.value.retry_after is not None
        assert refused.value.code == "too_many"


async def test_tenant_at_its_memory_limit_cannot_write_more_but_loses_nothing(make_rig: MakeRig) -> None:
    async with make_rig(LIMIT_MEMORIES=10) as rig, _client(rig) as http:

        async def create(*names: str) -> httpx.Response:
            return await http.post("/v1/long-term-memory/", json={"memories": [{"id": name, "text": f"about {name}"} for name in names]})

        assert (await create(*(f"m{n}" for n in range(8)))).status_code == 200
        messages = [{"role": "user", "content": f"n {n}", "waits": True} for n in range(3)]
        lines = [{"kind": "header", "format": "agent-memory-user", "version": 1, "user_id": "u"}, {"kind": "session", "session_id": "i"}]
        lines[1]["messages"] = messages
        for refused in (
            await create("a", "b", "c"),
            await http.post(
                "/v1/users/u/import", content="\n".join(map(json.dumps, lines)), headers={"content-type": "application/x-ndjson"}
            ),
            await http.post("/v1/working-memory/s/messages", json={"messages": [{"role": "user", "content": f"n {n}"} for n in range(3)]}),
            await http.put("/v1/working-memory/s", json={"memories": [{"id": f"w{n}", "text": f"held {n}"} for n in range(3)]}),
        ):
            assert (refused.status_code, refused.json()["limit"]) == (429, "memories")
            assert refused.headers["retry-after"] == "60"
        assert len(await rig.stored()) == 8
        assert (await create("a", "b")).status_code == 200
        assert (await create("c")).status_code == 429
        # Changes and deletions add no memory. A deletion makes room, which the next check a moment later sees.
        assert (await http.patch("/v1/long-term-memory/a", json={"text": "about another"})).status_code == 200
        assert (await http.delete("/v1/long-term-memory/", params={"memory_ids": ["m1", "m2"]})).status_code == 200

        async def has_room() -> bool:
            return (await create("c", "d")).status_code == 200

        await wait_until(has_room, "room for two memories")


async def test_spent_daily_tokens_defer_extraction_and_report_the_reason(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    own = {"busy": {"model_tokens_per_day": 3}}
    async with make_rig(chat, LIMIT_TENANTS=own, EXTRACTION_DEBOUNCE_SECONDS="0", INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY="false") as rig:

        async def say(scope: Any, session: str) -> None:
            message = MemoryMessage(role="user", content=f"Anna lives in {session}", id=session)
            await rig.rt[SessionService].append(scope, session, AppendMessagesRequest(messages=[message], user_id="u"))

        await say(BUSY, "Oslo")
        await rig.work()
        assert lookalike.calls["chat"] > 0
        calls = lookalike.calls["chat"]
        await LimitStore(rig.rt.client, rig.keys).spend("busy", 1)
        await say(BUSY, "Rome")
        await rig.work()
        assert lookalike.calls["chat"] == calls
        (mark,) = await rig.marks(DueKind.EXTRACTION)
        operation = await rig.rt[OperationService].get_operation(BUSY, Mark(DueKind.EXTRACTION, mark).operation_id)
        assert (operation.state, operation.attempts) == (OperationState.RETRYING, 0)
        assert "LIMIT_MODEL_TOKENS_PER_DAY" in (operation.reason or "")
        metered = rig.rt[TenantModels].chat("busy")
        assert metered is not None
        with pytest.raises(BudgetSpent) as spent:
            await metered.text([])
        assert 0 < spent.value.retry_after <= 24 * 3600
        # Another tenant's work continues. This tenant's work continues on the next day, and nothing is lost.
        await say(CALM, "Bern")
        await rig.work()
        calls = lookalike.calls["chat"]
        await rig.rt.client.hset(rig.keys.spent("busy"), "d", "1")
        await rig.make_due(DueKind.EXTRACTION)
        await rig.work()
        assert lookalike.calls["chat"] > calls
        assert await rig.marks(DueKind.EXTRACTION) == {}
        texts = [found.record.text for scope in (BUSY, CALM) for found in await _all(rig, scope)]
        assert sum("Oslo" in text for text in texts) == sum("Rome" in text for text in texts) == sum("Bern" in text for text in texts) == 1


async def _all(rig: Rig, scope: Any) -> list[Any]:
    return [found async for page in rig.rt[MemoryScan].walk_memories(scope, Selection()) for found in page]


def test_unreported_token_usage_is_estimated() -> None:
    with metering() as used:
        note(70, chars=4000)
        note(None, chars=401)
        note(True, chars=4)
        with metering() as inner:
            note(5, chars=0)
    note(1000, chars=0)
    assert (used.tokens, inner.tokens) == (70 + 101 + 1, 5)


async def test_size_limits_are_configurable_and_refusals_name_the_field(make_rig: MakeRig) -> None:
    async with make_rig(MAX_MESSAGE_BYTES=20) as rig, _client(rig) as http:
        session = "/v1/working-memory/s"

        def said(*texts: str) -> list[dict[str, str]]:
            return [{"role": "user", "content": text} for text in texts]

        assert (await http.put(session, json={"messages": said("1")})).status_code == 200
        refused = [
            (await http.put(session, json={"messages": said("ok", "é" * 11)}), 413, "messages.1.content"),
            (await http.post(f"{session}/messages", json={"messages": said("x" * 21)}), 413, "messages.0.content"),
        ]
        for answer, status, field in refused:
            assert answer.status_code == status, answer.text
            assert field in str(answer.json()), answer.text
        assert len((await http.get(session)).json()["messages"]) == 1


async def test_default_settings_limit_nothing(rig: Rig) -> None:
    assert not rig.settings.limits.limits_any("requests_per_minute")
    for number in range(3):
        await rig.rt[MemoryService].store(SCOPE, [ClientMemoryRecord(text=f"fact {number}")])
    assert rig.rt[TenantModels].chat("any") is rig.rt.chat
    assert not [key for key in await rig.raw_keys() if key.startswith(("rate:", "spent:"))]
