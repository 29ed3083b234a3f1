"""Test that error responses are JSON with a code, and reveal no input or internals."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx
import pytest

from agent_memory.foundation.core import errors
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.store_watch import Problem
from agent_memory.interfaces.http.app import create_app
from tests.support.api import Recorded, serving

CASES: list[tuple[errors.AgentMemoryError, int, str]] = [
    (errors.UnsupportedRequest("long-term memory is switched off", field="long_term_memory"), 400, "refused"),
    (errors.NotFound("Session s1 not found"), 404, "not_found"),
    (errors.Conflict("under way"), 409, "conflict"),
    (errors.VersionMismatch("another version", current=8), 412, "version_mismatch"),
    (errors.TooLarge("too much"), 413, "too_large"),
    (errors.Unauthenticated("who are you"), 401, "unauthenticated"),
    (errors.Forbidden("not yours"), 403, "forbidden"),
    (errors.IdTaken(["m1"], field="memories.0.id"), 409, "conflict"),
    (errors.RequestUnderWay("it is being carried out", retry_after=4), 409, "request_under_way"),
    (errors.TooMany("slow down", retry_after=3), 429, "too_many"),
    (errors.WrongHost("somebody else"), 421, "misdirected"),
    (errors.RequestTimeout("too slow"), 408, "request_timeout"),
    (errors.BudgetSpent("spent", retry_after=9), 429, "model_tokens_spent"),
    (errors.Unavailable("later"), 503, "unavailable"),
    (errors.Overloaded("full"), 503, "overloaded"),
    (errors.ErasureUnderWay(4.0), 409, "erasure_under_way"),
    (errors.RedisUnavailable("Redis does not answer", retry_after=5), 503, "redis_unavailable"),
    (errors.StoreLost("Redis is empty", retry_after=5), 503, "store_lost"),
    (errors.StoreChanged("Redis holds another store", retry_after=5), 503, "store_changed"),
    (errors.ModelUnavailable("no model"), 503, "model_unavailable"),
    (errors.ModelAnswerInvalid("nonsense", reason="html"), 502, "model_answer_invalid"),
    (errors.ContextExceeded("too long", reason="context"), 502, "context_exceeded"),
    (errors.NotSupported("exports"), 501, errors.NotSupported.code),
    (errors.AgentMemoryError("broken"), 500, "internal_error"),
]


@pytest.mark.parametrize(("error", "status", "code"), CASES, ids=[code for _, _, code in CASES])
async def test_every_error_type_maps_to_status_and_code(
    api: httpx.AsyncClient, recorded: Recorded, error: errors.AgentMemoryError, status: int, code: str
) -> None:
    recorded.answers["working.get"] = error
    answer = await api.get("/v1/working-memory/s1")
    body = answer.json()
    assert (answer.status_code, body["detail"], body["code"]) == (status, error.message, code)
    assert error.data.items() <= body.items()
    waits = isinstance(error, errors.Unavailable | errors.TooMany | errors.RequestUnderWay | errors.ErasureUnderWay)
    assert answer.headers.get("retry-after") == (str(error.retry_after) if waits else None)
    assert answer.headers.get("www-authenticate") == ("Bearer" if isinstance(error, errors.Unauthenticated) else None)


def test_error_cases_cover_every_error_type() -> None:
    def family(kind: type[errors.AgentMemoryError]) -> set[type[errors.AgentMemoryError]]:
        return {kind}.union(*(family(child) for child in kind.__subclasses__() if child.__module__ == errors.__name__))

    tested = {type(error) for error, _, _ in CASES}
    assert family(errors.AgentMemoryError) - tested == {errors.BadInput, errors.RetryLater, errors.StartupError, errors.UnknownWork}


async def test_bad_input_of_a_service_has_the_validation_error_shape(api: httpx.AsyncClient, recorded: Recorded) -> None:
    recorded.answers["working.put"] = errors.BadInput("is in the future; give the time it was said", field="messages.3.created_at")
    answer = await api.put("/v1/working-memory/s1", json={})
    assert answer.status_code == 422
    assert answer.json() == {
        "detail": [
            {
                "type": "invalid_input",
                "loc": ["body", "messages", 3, "created_at"],
                "msg": "messages.3.created_at: is in the future; give the time it was said",
            }
        ],
        "code": "invalid_input",
    }


async def test_validation_error_never_echoes_input_and_lists_at_most_20_problems(api: httpx.AsyncClient) -> None:
    secret = "s3cret" * 100
    body = {
        "messages": [{"role": secret, "content": 5, secret: secret} for _ in range(5)] + [None] * 100,
        "data": {secret: {}},
        "tokens": secret,
    }
    answer = await api.put("/v1/working-memory/s1", json=body)
    assert answer.status_code == 422
    assert "s3cret" not in answer.text
    assert len(answer.json()["detail"]) == 20
    assert all(set(problem) == {"type", "loc", "msg"} for problem in answer.json()["detail"])


async def test_long_unknown_filter_key_is_not_echoed(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/long-term-memory/search", json={"user_id": {"eq": "u", "k" * 10_000: 1}})
    assert answer.status_code == 422
    assert len(answer.content) < 1000


@pytest.mark.parametrize(
    "error", [RuntimeError("password"), ValueError("password"), TimeoutError("password"), ConnectionError("password"), KeyError("x")]
)
async def test_unexpected_error_gives_json_500_and_a_logged_traceback(
    api: httpx.AsyncClient, recorded: Recorded, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    recorded.answers["working.get"] = error
    with caplog.at_level(logging.ERROR):
        answer = await api.get("/v1/working-memory/s1", headers={"X-Request-Id": "r-17"})
    assert (answer.status_code, answer.json()) == (500, {"detail": "Internal Server Error", "code": "internal_error"})
    [record] = [record for record in caplog.records if record.exc_info]
    fields = {"msg": "request failed", "method": "GET", "path": "/v1/working-memory/{session_id}", "request_id": "r-17"}
    assert vars(record) | fields == vars(record)


async def test_connection_stays_open_after_a_500() -> None:
    recorded = Recorded(answers={"working.get": RuntimeError("no")})
    app = create_app(load_settings(), recorded.runtime)
    async with serving(app) as url, httpx.AsyncClient(base_url=url, limits=httpx.Limits(max_connections=1)) as client:
        for _ in range(3):
            assert (await client.get("/v1/working-memory/s1")).status_code == 500
            answer = await client.get("/v1/health")
            assert answer.status_code == 200
            assert "connection" not in answer.headers


async def test_a_request_ends_at_its_deadline() -> None:
    released = asyncio.Event()
    cancelled = asyncio.Event()

    async def hang() -> Any:
        try:
            await released.wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    app = create_app(load_settings(REQUEST_TIMEOUT_SECONDS=0.05), Recorded(answers={"search.search_page": hang}).runtime)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        answer = await client.post("/v1/long-term-memory/search", json={"text": "x"})
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert "0.05 s" in answer.json()["detail"]
    assert answer.headers["retry-after"] == "1"
    assert cancelled.is_set()


async def test_requests_before_the_runtime_opens_get_503_with_retry_after() -> None:
    app = create_app(load_settings())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        assert (await client.get("/v1/health")).status_code == 200
        answer = await client.get("/v1/working-memory/s1")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


async def test_app_without_runtime_and_redis_url_fails_to_start() -> None:
    app = create_app(load_settings())
    with pytest.raises(errors.StartupError, match="REDIS_URL"):
        async with app.router.lifespan_context(app):
            pass


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("abc-1.2:3_4", True), ("x" * 128, True), ("x" * 129, False), ("", False), ("a b", False), ("a\tb", False), ('"><script>', False)],
)
async def test_request_id_is_echoed_if_valid_and_generated_otherwise(api: httpx.AsyncClient, sent: str, kept: bool) -> None:
    answer = await api.get("/v1/health", headers={"X-Request-Id": sent})
    assert (answer.headers["x-request-id"] == sent) is kept
    assert answer.headers["x-request-id"]
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_error_responses_carry_the_request_id(api: httpx.AsyncClient, recorded: Recorded) -> None:
    recorded.answers["working.get"] = RuntimeError("no")
    for path in ("/nowhere", "/v1/working-memory/s1", "/v1/working-memory/%00"):
        answer = await api.get(path, headers={"X-Request-Id": "r1"})
        assert (answer.headers["x-request-id"], answer.headers["x-content-type-options"]) == ("r1", "nosniff")


async def test_ready_lists_failed_checks(api: httpx.AsyncClient, recorded: Recorded) -> None:
    answer = await api.get("/v1/ready")
    assert (answer.status_code, answer.json()) == (200, {"ready": True, "checks": {"redis": "ok"}})
    readiness = await recorded.answer("ready")
    recorded.answers["ready"] = type(readiness)(False, {"redis": "Redis does not answer"})
    answer = await api.get("/v1/ready")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["checks"] == {"redis": "Redis does not answer"}
    assert answer.json()["code"] == "unavailable"
    recorded.answers["ready"] = type(readiness)(False, {}, (Problem("index_missing", "the index is gone"),))
    said = (await api.get("/v1/ready")).json()
    assert said["code"] == "index_missing"
    assert said["problems"] == [{"code": "index_missing", "detail": "the index is gone"}]
    assert said["detail"] == "not ready; the index is gone"


async def test_metrics_are_labeled_by_route_template_without_ids(api: httpx.AsyncClient, recorded: Recorded) -> None:
    await api.get("/v1/working-memory/a-private-id?user_id=a-private-user")
    await api.get("/a-private-path")
    await api.request("BREW", "/v1/health")
    found = await api.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain")
    assert "a-private" not in found.text
    assert "BREW" not in found.text
    assert 'agent_memory_http_requests_total{method="GET",route="/v1/working-memory/{session_id}",status="200"}' in found.text
    assert 'agent_memory_http_request_seconds_bucket{le="0.001",method="GET",route="/v1/working-memory/{session_id}"}' in found.text
    for kind in DueKind:
        assert f'agent_memory_outbox_pending{{kind="{kind.value}"}} 2.0' in found.text
        assert f'agent_memory_outbox_dead{{kind="{kind.value}"}} 1.0' in found.text
        assert f'agent_memory_outbox_oldest_seconds{{kind="{kind.value}"}} 1.5' in found.text


async def test_metrics_are_served_without_redis(api: httpx.AsyncClient, recorded: Recorded) -> None:
    recorded.answers["outbox.backlog"] = errors.RedisUnavailable("away")
    found = await api.get("/metrics")
    assert found.status_code == 200
    assert 'agent_memory_outbox_pending{kind="session"} NaN' in found.text
