"""Test the translation of Redis errors, and a connection pool that waits for a free connection."""

from __future__ import annotations

import pytest
from redis import exceptions

from agent_memory.features.sessions.session_write import NewMessage, SessionWrite
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import BadInput, RedisUnavailable, StartupError
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.storage.connection import check_engine, connect, read, redis_errors, translate_error
from agent_memory_client.models import MemoryMessage
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, MakeRig, Rig, gathered

AWAY = [
    exceptions.ConnectionError("gone"),
    exceptions.TimeoutError("slow"),
    exceptions.BusyLoadingError("loading"),
    exceptions.ReadOnlyError("replica"),
    exceptions.OutOfMemoryError("full"),
    exceptions.MaxConnectionsError("all taken"),
    exceptions.AuthenticationError("no"),
    exceptions.ClusterDownError("down"),
    exceptions.ResponseError("MISCONF Redis is configured to save"),
    exceptions.ResponseError("BUSY Redis is busy running a script"),
    exceptions.ResponseError("MASTERDOWN Link with MASTER is down"),
    exceptions.ResponseError("Timeout limit was reached"),
    exceptions.ResponseError("Command # 1 (FT.SEARCH x) of pipeline caused error: ('BUSY Redis is busy running a script',)"),
    exceptions.ResponseError("Command # 2 (GET x) of pipeline caused error: MASTERDOWN Link with MASTER is down"),
]


@pytest.mark.parametrize("error", AWAY, ids=lambda error: str(error)[:40])
def test_temporary_redis_errors_become_unavailable(error: Exception) -> None:
    with pytest.raises(RedisUnavailable) as ours, redis_errors():
        raise error
    assert ours.value.retry_after >= 1
    assert ours.value.__cause__ is error


@pytest.mark.parametrize(
    "error", [exceptions.ResponseError("ERR wrong number of arguments"), exceptions.NoScriptError("x"), ValueError("x")]
)
def test_programming_errors_are_not_translated(error: Exception) -> None:
    assert translate_error(error) is None
    with pytest.raises(type(error)), redis_errors():
        raise error


def test_missing_scorer_is_reported_as_bad_input() -> None:
    ours = translate_error(exceptions.ResponseError("Command # 1 (FT.SEARCH x) of pipeline caused error: ('No such scorer X',)"))
    assert isinstance(ours, BadInput)


async def test_unreachable_redis_is_reported_in_one_line() -> None:
    client = connect("redis://127.0.0.1:1/0", pool_size=4, command_timeout=1)
    with pytest.raises(StartupError) as error:
        await check_engine(client, "redis://127.0.0.1:1")
    assert "\n" not in error.value.message
    with pytest.raises(RedisUnavailable):
        await read(client, lambda pipe: pipe.ping())
    await client.aclose()


async def test_more_readers_than_connections_wait(rig: Rig, make_rig: MakeRig) -> None:
    async with make_rig(REDIS_POOL_SIZE=4) as small:
        answers = await gathered(small.rt[SessionStore].get(SCOPE, SessionRef("s")) for _ in range(300))
        assert answers == [None] * 300


async def test_client_never_retries_a_command(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script may have run even if its reply was lost, so only callers can decide to retry."""
    written = SessionWrite("append", [NewMessage(MemoryMessage(role="user", content="a", id="1"), 1)])
    await rig.rt[SessionStore].write(SCOPE, SessionRef("s"), written)
    assert rig.rt.client.connection_pool.connection_kwargs["retry"].get_retries() == 0
    sent = commands_of(rig, monkeypatch)
    await rig.rt[SessionStore].write(SCOPE, SessionRef("s"), written)
    assert [one.count(b"EVALSHA") for one in sent] == [1]


async def test_reads_survive_a_lost_connection(rig: Rig) -> None:
    await rig.rt[SessionStore].write(
        SCOPE, SessionRef("s"), SessionWrite("append", [NewMessage(MemoryMessage(role="user", content="a"), 1)])
    )
    ids = set(await gathered(rig.rt.client.client_id() for _ in range(5)))
    killer = connect(rig.rt.redis_url, pool_size=4, command_timeout=5)
    for number in ids:
        await killer.client_kill_filter(_id=str(number))
    await killer.aclose()
    assert await rig.rt[SessionStore].get(SCOPE, SessionRef("s")) is not None
