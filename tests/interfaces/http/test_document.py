"""Test that the OpenAPI document describes every field, and that every example works."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.interfaces.http.document.examples import STORY
from tests.registrations import registrations
from tests.support.stack import stack

EXAMPLE_IDS = {operation: parameter for one in registrations() for operation, parameter in one.example_ids.items()}
MADE_BY_THE_SERVER = {"receipt_id", "change_id", "batch_id", "operation_id", "token_id", "procedure_id", *EXAMPLE_IDS.values()}
"""Path parameters whose values come from an earlier response of the server."""
OF_WORK_THAT_WAITS = {"approve_change", "reject_change", "approve_quarantined", "reject_quarantined", "replay_operation", "drop_operation"}
OF_WORK_THAT_WAITS |= {"act_on_reembedding"}
"""Operations on proposals, quarantined memories and dead letters: a story without failures has none of these."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(load_settings()).openapi()


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _fields(value: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every field of every schema in the document."""
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from _fields(one, f"{place}/{index}")
    elif isinstance(value, dict):
        for key, one in value.items():
            if key == "properties":
                yield from ((f"{place}/{name}", shape) for name, shape in one.items())
                for name, shape in one.items():
                    yield from _fields(shape, f"{place}/{name}")
            elif key not in ("example", "examples", "default"):
                yield from _fields(one, f"{place}/{key}")


def _names_itself(place: str, text: str) -> bool:
    """True if a description only repeats words of the field's name."""
    words = {word.rstrip("s") for word in re.findall(r"[a-z]+", text.lower())} - {"the", "a", "an", "of", "it", "its", "this"}
    return words <= {word.rstrip("s") for word in re.findall(r"[a-z]+", place.rpartition("/")[2].lower())}


def test_every_field_has_a_meaningful_description(document: dict[str, Any]) -> None:
    fields = dict(_fields(document))
    assert len(fields) >= 600
    silent = [place for place, shape in fields.items() if not shape.get("description", "").strip().endswith((".", "`."))]
    assert silent == []
    assert [place for place, shape in fields.items() if _names_itself(place, shape["description"])] == []


def test_every_schema_has_a_description(document: dict[str, Any]) -> None:
    assert [name for name, schema in document["components"]["schemas"].items() if not schema.get("description")] == []


def test_every_parameter_and_header_has_a_description(document: dict[str, Any]) -> None:
    silent: list[tuple[str, ...]] = []
    for method, path, operation in _operations(document):
        silent += [(method, path, one["name"]) for one in operation.get("parameters", []) if not one.get("description")]
        for status, answer in operation["responses"].items():
            silent += [(method, path, status, name) for name, one in answer.get("headers", {}).items() if not one.get("description")]
    assert silent == []


def test_every_body_and_required_parameter_has_an_example(document: dict[str, Any]) -> None:
    bare: list[tuple[str, ...]] = []
    for method, path, operation in _operations(document):
        for media, content in operation.get("requestBody", {}).get("content", {}).items():
            if not content.get("example"):
                bare.append((method, path, media))
        for one in operation.get("parameters", []):
            needed = one["required"] and operation["operationId"] not in OF_WORK_THAT_WAITS
            if needed and "example" not in one and one["name"] not in MADE_BY_THE_SERVER:
                bare.append((method, path, one["name"]))
    assert bare == []


def test_example_story_covers_every_operation_once(document: dict[str, Any]) -> None:
    told = [one.operation_id for one in STORY]
    assert sorted(told) == sorted(operation["operationId"] for _, _, operation in _operations(document))


class Reader:
    """Sends a document's examples with ids from earlier responses filled in."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._known: dict[str, str] = {}

    async def send(self, method: str, path: str, operation: dict[str, Any]) -> httpx.Response:
        query: list[tuple[str, str]] = []
        for one in operation.get("parameters", []):
            shown: Any = one.get("example", self._known.get(one["name"]) if one["in"] == "path" else None)
            if one["in"] == "path":
                path = path.replace(f"{{{one['name']}}}", quote(str(shown), safe=""))
            elif shown is not None:
                query += [(one["name"], str(value)) for value in (shown if isinstance(shown, list) else [shown])]
        content, headers = None, {}
        for media, body in operation.get("requestBody", {}).get("content", {}).items():
            content = body["example"] if isinstance(body["example"], str) else json.dumps(body["example"])
            headers = {"content-type": media}
        answer = await self._client.request(method, path, params=query, content=content, headers=headers)
        self._learn(operation["operationId"], answer)
        return answer

    def _learn(self, operation_id: str, answer: httpx.Response) -> None:
        if operation_id == "list_changes":
            self._known |= {"change_id": answer.json()["changes"][0]["id"], "batch_id": answer.json()["changes"][0]["batch_id"]}
        elif operation_id == "undo_change":
            self._known["batch_id"] = answer.json()["batch_id"]
        elif operation_id in EXAMPLE_IDS:
            self._known[EXAMPLE_IDS[operation_id]] = answer.json()["id"]
        elif operation_id == "forget_memory":
            self._known["receipt_id"] = answer.json()["receipt_id"]
        elif operation_id == "create_procedure_v1_procedures_post":
            self._known["procedure_id"] = answer.json()["id"]
        elif operation_id == "create_token":
            self._known["token_id"] = answer.json()["id"]
        if "x-operation-id" in answer.headers:
            self._known["operation_id"] = answer.headers["x-operation-id"]


KEY = "the-operator-of-this-server"
_stores = count()


@pytest.mark.parametrize("mode", ["disabled", "token"])
async def test_every_example_works_in_order_on_a_fresh_server(redis_url: str, mode: str) -> None:
    given = {"KEY_PREFIX": f"document-{next(_stores)}", "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local", "AUTH_MODE": mode}
    settings = load_settings(**given, **({"AUTH_ADMIN_TOKEN": KEY} if mode == "token" else {}))
    headers = {"Authorization": f"Bearer {KEY}"} if mode == "token" else {}
    refused: list[tuple[str, int, str]] = []
    async with (
        stack(settings, redis_url) as url,
        httpx.AsyncClient(base_url=url, timeout=60, headers=headers) as client,
    ):
        document = (await client.get("/openapi.json")).json()
        operations = {operation["operationId"]: (method, path, operation) for method, path, operation in _operations(document)}
        reader = Reader(client)
        for name in (one.operation_id for one in STORY if one.operation_id not in OF_WORK_THAT_WAITS):
            answer = await reader.send(*operations[name])
            if not answer.is_success:
                refused.append((name, answer.status_code, answer.text))
    assert refused == []
