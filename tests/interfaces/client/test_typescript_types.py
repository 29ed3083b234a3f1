"""The types of the TypeScript client are those of the server's OpenAPI document."""

from __future__ import annotations

import runpy

from tests.compat.contract.differences import operations
from tests.support.cli import ROOT


def test_the_types_are_what_the_document_gives() -> None:
    script = runpy.run_path(str(ROOT / "client-ts" / "scripts" / "make_types.py"))
    types = (ROOT / "client-ts" / "src" / "types.ts").read_text("utf-8")
    made, left = script["types"](), iter(types.splitlines())
    # Of features that this server does not have the client still knows the types, between those that the document gives.
    same = all(line in left for line in made.splitlines()) if operations(left_out=True) else made == types
    assert same, "python client-ts/scripts/make_types.py writes the types anew"
    assert '"POST /v1/memory/prompt": {' in types
