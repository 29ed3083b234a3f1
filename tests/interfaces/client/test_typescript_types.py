"""The types of the TypeScript client are those of the server's OpenAPI document."""

from __future__ import annotations

import runpy

from tests.support.cli import ROOT


def test_the_types_are_what_the_document_gives() -> None:
    script = runpy.run_path(str(ROOT / "client-ts" / "scripts" / "make_types.py"))
    types = (ROOT / "client-ts" / "src" / "types.ts").read_text("utf-8")
    assert script["types"]() == types, "python client-ts/scripts/make_types.py writes the types anew"
    assert '"POST /v1/memory/prompt": {' in types
