"""Test that a killed server loses no messages once callers have received part of a response."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import httpx
import pytest

from tests.interfaces.proxy.conftest import Proxied
from tests.interfaces.proxy.upstream import chat_stream, running_upstream
from tests.support.processes import running
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

STREAMS = 24
PIECES = 5
STOPPED_STREAMS = 300


async def test_kill_in_mid_stream_loses_no_acknowledged_message(tmp_path: Path, redis_url: str) -> None:
    async with running_upstream() as upstream:
        environment = {"REDIS_URL": redis_url, "KEY_PREFIX": "killed", "MODEL_PROVIDER": "local", "PROXY_UPSTREAMS": f"main={upstream.url}"}
        begun: set[str] = set()
        ended: set[str] = set()

        async def talk(http: httpx.AsyncClient, name: str) -> None:
            body = {"model": "m", "messages": [{"role": "user", "content": f"Question of {name}"}], "stream": True}
            headers = {"x-memory-user": "ada", "x-memory-session": name}
            with contextlib.suppress(httpx.HTTPError):
                async with http.stream("POST", "/proxy/v1/chat/completions", json=body, headers=headers) as answer:
                    seen = b""
                    async for piece in answer.aiter_raw():
                        begun.add(name)
                        seen += piece
                        if b"[DONE]" in seen:
                            ended.add(name)

        for place in range(2):
            async with (
                running(tmp_path, "api", "--port", "0", warm=True, **environment) as api,
                httpx.AsyncClient(base_url=await api.base_url(), timeout=60) as http,
            ):
                # The kill happens at different positions of the streams.
                upstream.answers += [
                    chat_stream("One, ", "two, ", "three.", go=asyncio.Semaphore(number % (PIECES + 1))) for number in range(STREAMS)
                ]
                talks = [asyncio.create_task(talk(http, f"s{place}-{number}")) for number in range(STREAMS)]
                goal = (place + 1) * STREAMS // (PIECES + 1)

                async def some_ended(goal: int = goal) -> bool:
                    return len(ended) >= goal

                await wait_until(some_ended, "the first ends")
                await api.kill()
                await asyncio.gather(*talks)
        assert len(begun) > len(ended) > 0
        async with (
            running(tmp_path, "api", "--port", "0", warm=True, **environment) as api,
            httpx.AsyncClient(base_url=await api.base_url(), timeout=60) as http,
        ):
            proxied = Proxied(http, upstream, "ada")
            for name in sorted(begun):
                said = await proxied.said(name)
                assert said[:1] == [("user", f"Question of {name}")], name
                assert name not in ended or said[1:] == [("assistant", "One, two, three.")], name


async def test_stopped_server_stores_unfinished_streams(tmp_path: Path, redis_url: str) -> None:
    async with running_upstream() as upstream:
        environment = {
            "REDIS_URL": redis_url,
            "KEY_PREFIX": "stopped",
            "MODEL_PROVIDER": "local",
            "PROXY_UPSTREAMS": f"main={upstream.url}",
        }
        grace = {"SHUTDOWN_GRACE_SECONDS": "1", "SHUTDOWN_DRAIN_SECONDS": "0"}
        begun: set[str] = set()

        async def talk(http: httpx.AsyncClient, name: str) -> None:
            body = {"model": "m", "messages": [{"role": "user", "content": f"Question of {name}"}], "stream": True}
            headers = {"x-memory-user": "ada", "x-memory-session": name}
            with contextlib.suppress(httpx.HTTPError):
                async with http.stream("POST", "/proxy/v1/chat/completions", json=body, headers=headers) as answer:
                    async for _ in answer.aiter_raw():
                        begun.add(name)

        async def all_begun() -> bool:
            return len(begun) == STOPPED_STREAMS

        upstream.answers += [chat_stream("Half ", "an answer", go=asyncio.Semaphore(1)) for _ in range(STOPPED_STREAMS)]
        async with (
            running(tmp_path, "api", "--port", "0", warm=True, **environment, **grace) as api,
            httpx.AsyncClient(base_url=await api.base_url(), timeout=60, limits=httpx.Limits(max_connections=None)) as http,
        ):
            talks = [asyncio.create_task(talk(http, f"s{number}")) for number in range(STOPPED_STREAMS)]
            await wait_until(all_begun, "the first events")
            await api.stop()
            await asyncio.gather(*talks)
        async with (
            running(tmp_path, "api", "--port", "0", warm=True, **environment) as api,
            httpx.AsyncClient(base_url=await api.base_url(), timeout=60, limits=httpx.Limits(max_connections=None)) as http,
        ):
            proxied = Proxied(http, upstream, "ada")
            for name in sorted(begun):
                assert await proxied.said(name) == [("user", f"Question of {name}"), ("assistant", "Half ")], name
