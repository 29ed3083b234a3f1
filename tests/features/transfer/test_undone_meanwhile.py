"""Test repeating an import that was undone while it was running."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_memory.features.transfer.export import ExportService
from agent_memory.features.transfer.import_progress import ImportOwner, ImportProgress
from agent_memory.features.transfer.imports import ImportService
from tests.support.rig import SCOPE, Rig, record


async def test_line_that_arrived_before_an_undo_is_not_noted_after_it(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.remember(record("Ada keeps bees", user_id="ada"))
    _, pieces = await rig.rt[ExportService].begin(SCOPE, None, "ada")
    head, *lines = b"".join([piece async for piece in pieces]).splitlines(keepends=True)
    export = b"".join([json.dumps(json.loads(head) | {"moved": True}).encode() + b"\n", *lines])
    imports, progress, original = rig.rt[ImportService], rig.rt[ImportProgress], ImportProgress.arrived

    async def undone(*given: Any) -> set[str]:
        marks = await original(*given)
        await progress.forget(SCOPE, "old", [ImportOwner(None, "bo", None)])
        return marks

    monkeypatch.setattr(ImportProgress, "arrived", undone)
    assert (await imports.run(SCOPE, None, "bo", export, source="old")).imported == {"memory": 1}
    assert await progress.owners(SCOPE, "old") == [ImportOwner(None, "bo", None)]  # The next undo finds the line.
    assert (await imports.run(SCOPE, None, "bo", export, source="old")).present == {"memory": 1}
    assert not [key for key in await rig.raw_keys() if key.startswith("arrived:")]
