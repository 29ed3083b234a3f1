"""Test files through the Python clients."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from ulid import ULID

from agent_memory_client import MemoryClient, MemoryClientConfig, SyncMemoryClient
from agent_memory_client.errors import MemoryNotFoundError
from agent_memory_client.models.features.files import StoredFile
from tests.support.waiting import wait_until


async def test_clients_upload_list_read_and_delete_files(worked: httpx.AsyncClient) -> None:
    config, user = MemoryClientConfig(base_url=str(worked.base_url)), f"u-{ULID()}"
    async with MemoryClient(config) as client:
        file = await client.files.upload("notes.md", b"# Oven\n\nThe oven needs ten minutes.", user_id=user)

        async def ready() -> StoredFile | None:
            found = await client.files.get(file.id, user_id=user)
            return found if found.state == "ready" else None

        assert await wait_until(ready, "the file is read") is not None
        assert [one.name for one in (await client.files.list(user_id=user)).files] == ["notes.md"]

        def in_blocking_client() -> None:
            with SyncMemoryClient(config) as blocking:
                assert blocking.files.upload("copy.txt", b"# Oven\n\nThe oven needs ten minutes.", user_id=user).id == file.id
                assert blocking.files.delete(file.id, user_id=user).status == "ok"

        await asyncio.to_thread(in_blocking_client)
        with pytest.raises(MemoryNotFoundError):
            await client.files.get(file.id, user_id=user)
