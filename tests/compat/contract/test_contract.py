"""Test that the OpenAPI document covers the contract, except for the lines in `exceptions.py`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from agent_memory.feature_list import FEATURES
from agent_memory.foundation.core.feature import Feature, import_name
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from tests.compat.contract.differences import CONTRACT, differences, is_left_out, operations, owner_of
from tests.compat.contract.exceptions import EXCEPTIONS, REASONS, expanded

Document = dict[str, Any]


@pytest.fixture(scope="module")
async def document() -> Document:
    """Return the server's OpenAPI document."""
    transport = httpx.ASGITransport(create_app(load_settings()))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return (await client.get("/openapi.json")).json()


def test_every_difference_from_the_contract_is_a_listed_exception(document: Document) -> None:
    assert sorted(differences(document) - EXCEPTIONS.keys()) == []


def test_every_listed_exception_still_applies(document: Document) -> None:
    assert sorted({line for line in EXCEPTIONS if not is_left_out(line)} - differences(document)) == []


def test_each_exception_is_listed_once() -> None:
    lines = [line for patterns in REASONS.values() for pattern in patterns for line in expanded(pattern)]
    assert len(lines) == len(set(lines))


def test_contract_is_complete() -> None:
    assert CONTRACT["counts"]["operations"] == len(CONTRACT["operations"]) == 21
    assert CONTRACT["counts"]["schemas"] == len(CONTRACT["schemas"]) == 53


def test_each_operation_is_served_by_its_declared_feature() -> None:
    served = {name: set(paths) for name, paths in ((one.name, _paths(one)) for one in FEATURES)}
    for operation in operations():
        owner = owner_of(operation["path"])
        assert owner is None or operation["path"] in served[owner], operation["path"]


def _paths(feature: Feature) -> list[str]:
    return [route.path_format for name in feature.routes for route in import_name(name).routes]


def _search(document: Document) -> Document:
    return document["paths"]["/v1/long-term-memory/search"]["post"]


def _parameter(document: Document, name: str) -> Document:
    listing = document["paths"]["/v1/working-memory/"]["get"]["parameters"]
    return next(parameter for parameter in listing if parameter["name"] == name)


def _field(document: Document, schema: str, field: str) -> Document:
    return document["components"]["schemas"][schema]["properties"][field]


# Each change would break a client; the line must report it.
DRIFTS: list[tuple[Callable[[Document], Any], str]] = [
    (lambda d: d["paths"].pop("/v1/memory/prompt"), "POST /v1/memory/prompt: missing"),
    (lambda d: d["paths"]["/v1/long-term-memory/"].pop("post"), "POST /v1/long-term-memory/: missing"),
    (lambda d: _search(d).update(operationId="search"), "POST /v1/long-term-memory/search: operation id search"),
    (lambda d: _search(d)["parameters"].clear(), "POST /v1/long-term-memory/search: optimize_query: missing in the query"),
    (
        lambda d: _search(d)["parameters"].append({"name": "x", "in": "header", "required": True, "schema": {}}),
        "POST /v1/long-term-memory/search: x: required and not known in the header",
    ),
    (lambda d: _parameter(d, "limit").update({"in": "header"}), "GET /v1/working-memory/: limit: missing in the query"),
    (lambda d: _parameter(d, "limit")["schema"].update(default=10), "GET /v1/working-memory/: limit: default 10"),
    (lambda d: _parameter(d, "limit")["schema"].update(maximum=50), "GET /v1/working-memory/: limit: maximum 50"),
    (lambda d: _parameter(d, "limit")["schema"].update(type="string"), "GET /v1/working-memory/: limit: type string"),
    (lambda d: _parameter(d, "user_id").update(required=True), "GET /v1/working-memory/: user_id: required true"),
    (lambda d: _parameter(d, "user_id")["schema"]["anyOf"].pop(), "GET /v1/working-memory/: user_id: nullable false"),
    (lambda d: _search(d).pop("requestBody"), "POST /v1/long-term-memory/search: body: missing"),
    (lambda d: _search(d)["responses"].pop("422"), "POST /v1/long-term-memory/search: 422 null"),
    (lambda d: _search(d)["responses"].pop("400"), "POST /v1/long-term-memory/search: 400: not documented"),
    (
        lambda d: _search(d)["responses"].update({"201": _search(d)["responses"].pop("200")}),
        "POST /v1/long-term-memory/search: success null",
    ),
    (
        lambda d: d["paths"]["/v1/working-memory/{session_id}"]["put"]["responses"]["200"]["headers"].pop("X-Deprecation-Warning"),
        "PUT /v1/working-memory/{session_id}: header X-Deprecation-Warning: not documented",
    ),
    (lambda d: _search(d).pop("security"), "POST /v1/long-term-memory/search: auth none"),
    (lambda d: _search(d).update(security=[{"api_key": []}]), "POST /v1/long-term-memory/search: auth other"),
    (lambda d: d["paths"]["/v1/health"]["get"].update(security=[{"bearer": []}]), "GET /v1/health: auth bearer"),
    (lambda d: d["components"]["schemas"].pop("Icon"), "Icon: missing"),
    (lambda d: d["components"]["schemas"]["Topics"]["properties"].pop("any"), "Topics.any: missing"),
    (lambda d: d["components"]["schemas"]["SearchRequest"].update(additionalProperties=False), "SearchRequest: unknown fields refused"),
    (lambda d: d["components"]["schemas"]["SearchRequest"].update(required=["explain"]), "SearchRequest.explain: required and not known"),
    (lambda d: _field(d, "SearchRequest", "hybrid_alpha").update(default=0.5), "SearchRequest.hybrid_alpha: default 0.5"),
    (lambda d: _field(d, "SearchRequest", "text").update(pattern="."), "SearchRequest.text: pattern ."),
    (lambda d: d["components"]["schemas"]["SearchModeEnum"]["enum"].pop(), 'SearchModeEnum: enum ["keyword", "semantic"]'),
    (
        lambda d: _field(d, "MemoryMessage", "discrete_memory_extracted")["enum"].pop(),
        'MemoryMessage.discrete_memory_extracted: enum ["t"]',
    ),
]


@pytest.mark.parametrize(("drift", "line"), DRIFTS, ids=[line for _, line in DRIFTS])
def test_contract_drift_is_detected(document: Document, drift: Callable[[Document], Any], line: str) -> None:
    changed = copy.deepcopy(document)
    drift(changed)
    assert line in differences(changed) - differences(document)


def test_additions_are_not_differences(document: Document) -> None:
    more = copy.deepcopy(document)
    more["paths"]["/v1/new"] = {"get": {"responses": {}}}
    _search(more)["parameters"].append({"name": "new", "in": "query", "schema": {"type": "string"}})
    _search(more)["responses"]["429"] = {}
    more["components"]["schemas"]["SearchRequest"]["properties"]["new"] = {"type": "string"}
    assert differences(more) == differences(document)
