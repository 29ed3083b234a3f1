"""Test that the TypeScript client's types cover the server's OpenAPI document."""

from __future__ import annotations

import runpy

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from tests.support.cli import ROOT


def test_types_name_every_operation_and_schema() -> None:
    types = runpy.run_path(str(ROOT / "client-ts" / "scripts" / "make_types.py"))["types"]()
    document = create_app(load_settings()).openapi()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f'"{method.upper()} {path}": {{' in types
    for name in document["components"]["schemas"]:
        assert f"export interface {name} {{" in types or f"export type {name} = " in types
