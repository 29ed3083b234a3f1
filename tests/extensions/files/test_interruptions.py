"""Test reading a file when the worker dies at any step, or when the file is deleted meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent_memory.extensions.files.service import FileService, NewFile, order_of
from agent_memory.extensions.files.store import FileStore, ref_of
from agent_memory.features.access.limits import MemoryLimit
from agent_memory.features.jobs.order_store import OrderStore
from agent_memory.features.memories.commit import MemoryCommits
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import BadInput, NotFound
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models.features.files import StoredFile
from agent_memory_worker.files import read_file
from tests.support.rig import SCOPE, Rig

OLD, NEW = ["".join(f"Dog {number} {does}. " for number in range(80)).encode() for does in ("stays outside", "may come in")]


class _DiedError(Exception):
    pass


async def upload(rig: Rig, data: bytes) -> StoredFile:
    return await rig.rt[FileService].upload(SCOPE, NewFile("rules.txt", data, "", None, "ada"))


async def read(rig: Rig, file: StoredFile) -> None:
    await read_file(rig.rt, order_of(SCOPE, file))


@pytest.mark.parametrize(
    ("kind", "method", "before"),
    [
        (SessionService, "append", True),
        (SessionService, "append", False),
        (MemoryCommits, "commit", True),
        (MemoryCommits, "commit", False),
        (MemoryStore, "delete_records", True),
        (MemoryStore, "delete_records", False),
        (FileStore, "swap", True),
        (FileStore, "swap", False),
        (OrderStore, "keep_receipt", True),
    ],
)
async def test_new_version_is_stored_once_after_a_death(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, kind: type[Any], method: str, before: bool
) -> None:
    await read(rig, await upload(rig, OLD))
    file = await upload(rig, NEW)
    original: Callable[..., Any] = getattr(kind, method)

    async def dying(*given: Any, **more: Any) -> Any:
        if not before:
            await original(*given, **more)
        raise _DiedError

    monkeypatch.setattr(kind, method, dying)
    with pytest.raises(_DiedError):
        await read(rig, file)
    monkeypatch.undo()
    await read(rig, file)
    await read(rig, file)
    stored = await rig.stored()
    row = await rig.rt[FileStore].load(SCOPE, ref_of(file))
    assert row.file is not None
    assert (row.file.state, row.file.passages) == ("ready", len(stored))
    assert len(stored) > 1
    assert all("may come in" in record.text for record in stored)
    session = await rig.contents(file.id, user_id="ada")
    assert sorted(session) == sorted(record.text for record in stored)
    assert await rig.rt[FileStore].load_bytes(SCOPE, ref_of(file)) is None


async def test_upload_is_stored_and_ordered_in_one_step(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def dying(*_: Any) -> None:
        raise _DiedError

    monkeypatch.setattr(OrderStore, "place_orders", dying)
    file = await upload(rig, OLD)
    assert list(await rig.marks(DueKind.ORDER)) == [order_of(SCOPE, file).name]
    assert await rig.rt[OrderStore].load_order(order_of(SCOPE, file).name) == order_of(SCOPE, file)


async def test_file_deleted_while_a_worker_reads_it_stays_deleted(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    file = await upload(rig, OLD)
    original = MemoryCommits.commit

    async def delete_first(*given: Any, **more: Any) -> Any:
        monkeypatch.undo()
        await rig.rt[FileService].delete_file(SCOPE, ref_of(file))
        return await original(*given, **more)

    monkeypatch.setattr(MemoryCommits, "commit", delete_first)
    await read(rig, file)
    assert await rig.stored() == []
    assert await rig.rt[SessionStore].get(SCOPE, ref_of(file)) is None
    with pytest.raises(NotFound):
        await rig.rt[FileService].load_file(SCOPE, ref_of(file))


@pytest.mark.parametrize("when", [(MemoryLimit, "room_for"), (MemoryCommits, "commit")], ids=lambda when: when[1])
async def test_version_that_is_replaced_while_a_worker_reads_it_leaves_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, when: tuple[type[Any], str]
) -> None:
    file = await upload(rig, OLD)
    original: Callable[..., Any] = getattr(*when)

    async def replace_first(*given: Any, **more: Any) -> Any:
        monkeypatch.undo()
        await read(rig, await upload(rig, NEW))
        return await original(*given, **more)

    monkeypatch.setattr(*when, replace_first)
    await read(rig, file)
    stored = [record.text for record in await rig.stored()]
    assert stored
    assert all("may come in" in text for text in stored)
    assert sorted(await rig.contents(file.id, user_id="ada")) == sorted(stored)


async def test_version_that_is_outdated_by_an_unreadable_one_keeps_the_former(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await read(rig, await upload(rig, OLD))
    original = MemoryLimit.room_for

    async def replace_first(*given: Any) -> Any:
        monkeypatch.undo()
        with pytest.raises(BadInput):
            await read(rig, await upload(rig, b"\0"))
        return await original(*given)

    file = await upload(rig, NEW)
    monkeypatch.setattr(MemoryLimit, "room_for", replace_first)
    await read(rig, file)
    assert all("stays outside" in text for text in await rig.contents(file.id, user_id="ada"))
    assert len(await rig.stored()) == len(await rig.contents(file.id, user_id="ada")) > 1
