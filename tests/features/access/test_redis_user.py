"""Test the server over TLS and with the Redis ACL user in docs/running/security.md.

Covers rows S10b and S10c.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis.asyncio as aioredis
import trustme
from redis.exceptions import NoPermissionError

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.runtime import open_runtime
from agent_memory_client.models import SearchRequest
from agent_memory_worker.main import run_worker
from tests.support.rig import SCOPE, Rig, open_rig, record
from tests.support.waiting import wait_until

PAGE = Path(__file__).parents[3] / "docs" / "running" / "security.md"
PASSWORD = "a-password-of-this-test"


def documented(prefix: str) -> list[str]:
    """Return the documented user's rules, adapted to a key prefix."""
    found = re.search(r"^ACL SETUSER agent-memory on >\S+ (.+)$", PAGE.read_text(), re.MULTILINE)
    assert found is not None
    assert "-@dangerous" in found[1]
    return found[1].replace("am:", f"{prefix}:").split()


async def lives(rig: Rig) -> None:
    """Use the server normally: store, process and search a session and a memory."""
    stop = asyncio.Event()
    worker = asyncio.create_task(run_worker(rig.rt, rig.settings, stop))
    try:
        await rig.append("s", "Anna lives in Oslo", namespace="n", user_id="u")
        await rig.rt[MemoryService].store(SCOPE, [record("Ben likes green tea", user_id="u")])

        async def found() -> bool:
            hits = (await rig.rt[SearchService].search(SCOPE, SearchRequest(text="Anna Ben", search_mode="keyword"))).memories
            return len(hits) == 2

        async def rests() -> bool:
            backlog = await rig.rt.outbox.backlog()
            return not any(one.pending for one in backlog.values())

        await wait_until(found, "both memories")
        await wait_until(rests, "the worker's rest")
        answer = await rig.rt[SearchService].search(SCOPE, SearchRequest(text="what does Ben drink", search_mode="semantic"))
        assert answer.memories[0].text == "Ben likes green tea"
        assert (await rig.rt.ready()).ok
    finally:
        stop.set()
        await worker


async def test_documented_redis_acl_user_can_run_the_server_and_nothing_more(
    redis_url: str, local: EmbeddingModel, counter: TokenCounter
) -> None:
    prefix, place = "acl-user", urlsplit(redis_url)
    admin = aioredis.Redis.from_url(redis_url)
    await admin.execute_command("ACL", "SETUSER", prefix, "reset", "on", f">{PASSWORD}", *documented(prefix))
    url = f"redis://{prefix}:{PASSWORD}@{place.hostname}:{place.port}/0"
    try:
        await admin.acl_log_reset()
        async with open_rig(url, local, counter, None, KEY_PREFIX=prefix) as rig:
            await lives(rig)
            refused = {(entry["reason"], entry["object"]) for entry in await admin.acl_log() if entry["username"] == prefix}
            assert refused <= {("command", "info")}  # the server only asks for the version, and works without an answer
            forbidden = (["KEYS", "*"], ["FLUSHALL"], ["CONFIG", "GET", "*"], ["GET", "am:other"], ["SET", "other", "x"], ["ACL", "LIST"])
            for command in forbidden:
                with pytest.raises(NoPermissionError):
                    await rig.rt.client.execute_command(*command)
    finally:
        await admin.execute_command("ACL", "DELUSER", prefix)
        await admin.aclose()


@asynccontextmanager
async def tls_in_front_of(redis_url: str, certificate: trustme.LeafCert) -> AsyncGenerator[int]:
    """Open a port that speaks TLS and forwards to Redis."""
    place = urlsplit(redis_url)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(place.hostname, place.port)
        await asyncio.gather(pump(reader, forth), pump(back, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_server_verifies_redis_certificates_over_tls(
    redis_url: str, local: EmbeddingModel, counter: TokenCounter, tmp_path: Path, make_settings: Callable[..., Settings]
) -> None:
    ours, theirs = trustme.CA(), trustme.CA()
    for name, authority in (("ours", ours), ("theirs", theirs)):
        authority.cert_pem.write_to_path(str(tmp_path / name))
    password = urlsplit(redis_url).password
    async with tls_in_front_of(redis_url, ours.issue_cert("127.0.0.1", "localhost")) as port:
        url = f"rediss://:{password}@127.0.0.1:{port}/0?ssl_ca_certs={tmp_path / 'ours'}"
        async with open_rig(url, local, counter, None) as rig:
            await lives(rig)
        # The server rejects another authority's certificate, another name's certificate, and a plain connection.
        for wrong in (url.replace("/ours", "/theirs"), url.split("?")[0], url.replace("rediss:", "redis:").split("?")[0]):
            with pytest.raises(StartupError):
                async with open_runtime(make_settings(REDIS_COMMAND_TIMEOUT_SECONDS=2), wrong):
                    pass
    async with tls_in_front_of(redis_url, ours.issue_cert("elsewhere.example")) as port:
        with pytest.raises(StartupError):
            async with open_runtime(make_settings(), f"rediss://:{password}@127.0.0.1:{port}/0?ssl_ca_certs={tmp_path / 'ours'}"):
                pass
