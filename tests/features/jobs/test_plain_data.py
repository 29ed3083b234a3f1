"""Test that queued data cannot run code in a worker, even if an attacker wrote it (row S10a)."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from agent_memory.foundation.core.task_kinds import TaskName
from agent_memory_worker.main import run_worker
from agent_memory_worker.plain_serializer import loads
from tests.support.rig import MakeRig
from tests.support.waiting import wait_until


class Gadget:
    """Runs code in the process that unpickles it."""

    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self._made = call, arguments

    def __reduce__(self) -> Any:
        return self._made


def gadgets(trace: Path) -> list[bytes]:
    """Return pickles that create the folder `trace`, using every opcode that can reference code."""
    name = str(trace)
    ways = [pickle.dumps((Gadget(os.mkdir, name),), protocol) for protocol in range(6)]
    ways.append(pickle.dumps({"deep": [({"er": Gadget(os.mkdir, name)},)]}))
    ways.append(cloudpickle.dumps((Gadget(lambda: os.mkdir(name)),)))
    ways.append(pickle.dumps((Gadget(eval, f"__import__('os').mkdir({name!r})"),)))
    ways.append(f"(S{name!r}\nios\nmkdir\n.".encode())  # the INST opcode
    ways.append(f"cposix\nmkdir\n(V{name}\ntR.".encode())  # GLOBAL and REDUCE
    return ways


def test_a_pickle_that_names_code_is_refused(tmp_path: Path) -> None:
    for at, gadget in enumerate(gadgets(tmp_path / "ran")):
        with pytest.raises((pickle.UnpicklingError, AttributeError)):
            loads(gadget)
        assert not (tmp_path / "ran").exists(), at
    # The counter-check: without the guard, the pickles run code.
    pickle.loads(gadgets(tmp_path / "ran")[0])
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("value", [("m", 1, 2), (["a", "b"], [1, 2**60], [1.5]), {}, {"a": None, "b": True, "c": b"x"}])
def test_plain_data_is_unpickled_unchanged(value: Any) -> None:
    assert loads(pickle.dumps(value)) == loads(cloudpickle.dumps(value)) == value


async def test_worker_sets_malicious_messages_aside_and_continues(make_rig: MakeRig, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    soon = {"WORKER_REDELIVERY_TIMEOUT_SECONDS": 1, "WORKER_LEASE_SECONDS": 2}
    async with make_rig(**soon) as rig, rig.rt.docket() as docket:
        plain = pickle.dumps({})
        for place, (args, kwargs) in enumerate([(gadgets(trace)[4], plain), (plain, gadgets(trace)[8])]):
            message: dict[bytes, bytes] = {
                b"key": b"gadget:%d" % place,
                b"when": b"2026-01-01T00:00:00+00:00",
                b"function": TaskName.INDEX_MEMORIES.value.encode(),
                b"args": args,
                b"kwargs": kwargs,
                b"attempt": b"1",
                b"generation": b"0",
            }
            await rig.rt.client.xadd(docket.stream_key, message)
        await rig.append("s", "I live in Oslo")
        stop = asyncio.Event()
        worker = asyncio.create_task(run_worker(rig.rt, rig.settings, stop))

        # Messages read in the same batch may be set aside, too; their marks make them due again.
        async def over() -> bool:
            return await rig.rt.client.llen(rig.keys.dead_messages) >= 2 and len(await rig.stored()) == 1

        try:
            await wait_until(over, "both messages to be set aside and the session to be promoted", 60)
        finally:
            stop.set()
            await worker
        assert not trace.exists()
