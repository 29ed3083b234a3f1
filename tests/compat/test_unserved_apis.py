"""Test that only the paths of a disabled compatible API return a hint about its setting."""

from __future__ import annotations

import re

import httpx
import pytest
from starlette.routing import Route

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.compat.mem0 import routes as mem0
from agent_memory.interfaces.compat.supermemory import routes as supermemory
from agent_memory.interfaces.http.app import create_app

PATHS = {
    name: sorted({re.sub(r"\{[^}]*\}", "x", route.path) for route in module.routes() if isinstance(route, Route)})
    for name, module in (("mem0", mem0), ("supermemory", supermemory))
}


def client_of(apis: str) -> httpx.AsyncClient:
    app = create_app(load_settings(MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS=apis))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


@pytest.mark.parametrize(("apis", "off"), [("", "mem0"), ("", "supermemory"), ("supermemory", "mem0"), ("mem0", "supermemory")])
async def test_path_of_a_disabled_api_names_its_setting(apis: str, off: str) -> None:
    async with client_of(apis) as client:
        for path in set(PATHS[off]) - set(PATHS.get(apis, ())):
            for method in ("GET", "POST", "DELETE"):
                answer = await client.request(method, path)
                assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), (method, path)
                assert f"COMPAT_APIS={off}" in answer.json()["detail"], (method, path)


async def test_unknown_path_with_foreign_version_names_every_disabled_api() -> None:
    async with client_of("") as client:
        for path in ("/v2/unknown", "/v3/unknown"):
            assert "COMPAT_APIS=mem0 or COMPAT_APIS=supermemory" in (await client.get(path)).json()["detail"]
    async with client_of("mem0,supermemory") as client:
        assert (await client.get("/v3/unknown")).json()["detail"].startswith("Not Found: there is no such path")


async def test_unknown_path_of_the_own_api_names_no_setting() -> None:
    async with client_of("") as client:
        for path in ("/v1/unknown", "/unknown", "/v10/documents"):
            assert (await client.get(path)).json() == {"detail": "Not Found: there is no such path, /docs lists all", "code": "not_found"}
        assert (await client.post("/v1/health")).status_code == 405
