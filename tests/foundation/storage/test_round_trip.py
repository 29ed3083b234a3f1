"""Test that round trips return the same results as redis-py's pipeline, even after errors."""

from __future__ import annotations

import asyncio

import pytest
from redis.exceptions import ConnectionError, DataError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeout

from agent_memory.foundation.storage.connection import connect
from agent_memory.foundation.storage.round_trip import command, exchange
from tests.support.rig import Rig
from tests.support.waiting import wait_until


async def test_replies_and_errors_come_in_order(rig: Rig) -> None:
    long = "ü" * 70_000
    sent: list[tuple[str | float, ...]] = [("SET", "wire:a", 1.5e-7), ("GET", "wire:a"), ("HGET", "wire:a", "x")]
    sent += [("CLIENT GETNAME",), ("ECHO", long)]
    replies = await exchange(rig.rt.client, sent)
    assert replies[:2] == [b"OK", b"1.5e-07"]
    assert isinstance(replies[2], ResponseError)
    assert replies[4] == long.encode()
    with pytest.raises(ResponseError):
        await command(rig.rt.client, "HGET", "wire:a", "x")


async def test_unencodable_command_leaves_the_connection_usable(redis_url: str) -> None:
    client = connect(redis_url, pool_size=1, command_timeout=2)
    with pytest.raises(DataError):
        await exchange(client, [("SET", "wire:b", None)])
    assert await command(client, "PING") == b"PONG"
    await client.aclose()


async def test_a_cancelled_round_trip_leaves_no_reply_for_the_next(redis_url: str) -> None:
    client = connect(redis_url, pool_size=1, command_timeout=5)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await exchange(client, [("BLPOP", "wire:none", 1)])
    assert await exchange(client, [("ECHO", "mine")]) == [b"mine"]
    await client.aclose()


async def test_closed_connection_raises_once_and_is_reopened(redis_url: str) -> None:
    client = connect(redis_url, pool_size=1, command_timeout=2)
    name = await command(client, "CLIENT", "ID")
    other = connect(redis_url, pool_size=1, command_timeout=2)
    waiting = asyncio.ensure_future(exchange(client, [("BLPOP", "wire:none", 5)]))

    async def blocked() -> bool:
        listed: bytes = await command(other, "CLIENT", "LIST")
        return any(line.startswith(f"id={name} ") and "cmd=blpop" in line for line in listed.decode().splitlines())

    await wait_until(blocked, "the connection waits for its reply")
    await command(other, "CLIENT", "KILL", "ID", name)
    with pytest.raises(ConnectionError):
        await waiting
    assert await command(client, "PING") == b"PONG"
    await client.aclose()
    await other.aclose()


async def test_callers_without_a_free_connection_wait(redis_url: str) -> None:
    client = connect(redis_url, pool_size=2, command_timeout=5)
    replies = await asyncio.gather(*(exchange(client, [("ECHO", str(n))]) for n in range(50)))
    assert replies == [[str(n).encode()] for n in range(50)]
    await client.aclose()


async def test_late_reply_raises_timeout_and_the_next_call_works(redis_url: str) -> None:
    client = connect(redis_url, pool_size=1, command_timeout=0.3)
    with pytest.raises(RedisTimeout):
        await exchange(client, [("ECHO", "a"), ("BLPOP", "wire:none", 30)])
    assert await exchange(client, [("ECHO", "mine")]) == [b"mine"]
    await client.aclose()


async def test_timeout_applies_to_each_reply(redis_url: str) -> None:
    client = connect(redis_url, pool_size=1, command_timeout=1.0)
    assert await exchange(client, [("ECHO", "a"), *[("BLPOP", "wire:none", 0.4)] * 3]) == [b"a", None, None, None]
    await client.aclose()


async def test_push_messages_are_not_taken_for_replies(redis_url: str) -> None:
    client, other = (connect(redis_url, pool_size=1, command_timeout=5) for _ in range(2))
    assert await command(client, "CLIENT", "TRACKING", "ON", "BCAST") == b"OK"
    # Redis notifies the connection of its own writes in between, and of other writes while it is idle.
    assert await exchange(client, [("SET", "wire:t", "1"), ("GET", "wire:t"), ("SET", "wire:t", "2"), ("GET", "wire:t")]) == [
        b"OK",
        b"1",
        b"OK",
        b"2",
    ]
    await command(other, "SET", "wire:t", "3")
    assert await exchange(client, [("GET", "wire:t"), ("ECHO", "x")]) == [b"3", b"x"]
    for one in (client, other):
        await one.aclose()
