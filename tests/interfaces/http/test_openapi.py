"""Test that the OpenAPI document is complete and has no duplicates."""

from __future__ import annotations

from typing import Annotated, Any

import httpx
import pytest
from fastapi import Query, Response
from fastapi.routing import APIRoute

from agent_memory.foundation.api.operation import Operation
from agent_memory.foundation.core.errors import NotFound
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.interfaces.http.routes import ROUTERS
from tests.compat.contract.differences import operations
from tests.support.api import Recorded


@pytest.fixture
async def document(api: httpx.AsyncClient) -> dict[str, Any]:
    return (await api.get("/openapi.json")).json()


def _operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(method.upper(), path): found for path, methods in document["paths"].items() for method, found in methods.items()}


async def test_every_contract_operation_exists_with_its_operation_id(document: dict[str, Any]) -> None:
    wanted = {(found["method"], found["path"]): found["operation_id"] for found in operations()}
    ours = {key: found["operationId"] for key, found in _operations(document).items()}
    assert {key: ours.get(key) for key in wanted} == wanted
    assert len(set(ours.values())) == len(ours)


async def test_every_operation_documents_its_responses_and_errors(document: dict[str, Any]) -> None:
    for (method, path), found in _operations(document).items():
        assert found["description"], (method, path)
        assert found["responses"]["200"]["content"], (method, path)
        if path.startswith(("/v1/working", "/v1/long", "/v1/memory")):
            assert {"422", "503"} <= found["responses"].keys(), (method, path)
            for parameter in found.get("parameters", []):
                assert parameter["schema"].keys() - {"title"}, (method, path, parameter)
        if "requestBody" in found:
            assert found["requestBody"]["required"] is True
            assert {"413", "415"} <= found["responses"].keys(), (method, path)


async def test_validation_error_schema_has_the_contract_name(document: dict[str, Any]) -> None:
    refused = document["paths"]["/v1/memory/prompt"]["post"]["responses"]["422"]
    assert refused["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/HTTPValidationError"}


async def test_error_schema_has_every_field_of_a_404(document: dict[str, Any], api: httpx.AsyncClient, recorded: Recorded) -> None:
    recorded.answers["working.get"] = NotFound("Session s1 not found", field="session_id")
    body = (await api.get("/v1/working-memory/s1")).json()
    assert body.keys() == {"detail", "code", "field", "hint"}
    assert body.keys() <= document["components"]["schemas"]["ErrorResponse"]["properties"].keys()


@pytest.mark.parametrize("mode", ["disabled", "token", "oauth2", "both"])
def test_document_states_where_credentials_are_required(mode: str) -> None:
    settings = load_settings(AUTH_MODE=mode, **({"OAUTH2_ISSUER_URL": "https://issuer.example"} if mode in ("oauth2", "both") else {}))
    document = create_app(settings).openapi()
    schemes = document["components"]["securitySchemes"]
    assert [(one["type"], one.get("scheme") or one["name"]) for one in schemes.values()] == [("http", "bearer"), ("apiKey", "X-API-Key")]
    for (method, path), found in _operations(document).items():
        security = found.get("security", [])
        assert [name for one in security for name in one] == ([] if path == "/v1/health" else list(schemes)), (method, path)
        assert ({} in security) == (path == "/v1/ready" or (mode == "disabled" and path != "/v1/health")), (method, path)


def test_all_routes_are_operations() -> None:
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, Operation)
            assert isinstance(route, APIRoute)


def test_operation_is_documented_like_a_fastapi_route() -> None:
    async def endpoint(limit: Annotated[int, Query()] = 5) -> Response:
        """What it does."""
        return Response(str(limit))

    operation = Operation("/x/{name:path}", endpoint, methods=["post"], tags=["t"], status_code=202)
    assert (operation.path, operation.path_format, operation.name, operation.methods) == (
        "/x/{name:path}",
        "/x/{name}",
        "endpoint",
        {"POST"},
    )
    documented = APIRoute("/x/{name:path}", endpoint, methods=["post"], tags=["t"], status_code=202)
    assert (operation.description, operation.unique_id, operation.status_code) == ("What it does.", documented.unique_id, 202)
    assert [field.name for field in operation.dependant.query_params] == ["limit"]
