"""Test embedding model changes in a store whose buckets reach each phase at different times.

A bucket that has no worker stays in its phase.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import httpx
import pytest

from agent_memory.features.reembed.service import ReembedService
from agent_memory.features.reembed.store import ReembedStore
from agent_memory.interfaces.http.app import create_app
from tests.support.api import serving
from tests.support.model_changes import SECOND, Store, filling, store
from tests.support.rig import Rig
from tests.support.waiting import wait_until

__all__ = ["store"]

_BODY = SECOND.model_dump(mode="json")


@pytest.fixture
def make_settings(make_settings: Callable[..., Any]) -> Callable[..., Any]:
    return partial(make_settings, REDIS_BUCKETS=3)


@pytest.fixture
async def rig(store: Store) -> Rig:
    return await store.open()


@pytest.fixture
async def http(rig: Rig) -> AsyncGenerator[httpx.AsyncClient]:
    app = create_app(rig.settings, rig.rt)
    async with serving(app) as url, httpx.AsyncClient(base_url=f"{url}/v1/reembed", timeout=30) as client:
        yield client


async def phases(rig: Rig) -> list[str]:
    return [(await bucket[ReembedService].read_status()).phase for bucket in rig.rt.all]


async def reach(rig: Rig, wanted: list[str], *, working: list[int]) -> None:
    """Run workers for some buckets until all buckets are in the expected phases."""
    async with AsyncExitStack() as stack:
        for bucket in working:
            await stack.enter_async_context(filling(rig.rt.all[bucket]))

        async def is_there() -> bool:
            return await phases(rig) == wanted

        await wait_until(is_there, str(wanted))


async def models(rig: Rig) -> list[str]:
    return [bucket.current.spec.model for bucket in rig.rt.all]


async def act(http: httpx.AsyncClient, action: str, code: int = 200) -> dict[str, Any]:
    answer = await http.post(f"/{action}")
    assert answer.status_code == code, answer.text
    return answer.json()


async def test_change_can_be_paused_and_aborted_while_other_buckets_have_swapped(rig: Rig, http: httpx.AsyncClient) -> None:
    assert (await http.post("", json=_BODY)).json()["phase"] == "filling"
    await reach(rig, ["swapped", "filling", "filling"], working=[0])
    assert (await act(http, "pause"))["phase"] == "paused"
    assert await phases(rig) == ["swapped", "paused", "paused"]
    assert (await act(http, "resume"))["phase"] == "filling"
    await act(http, "abort")
    await reach(rig, ["none"] * 3, working=[0, 1, 2])
    assert await models(rig) == ["first"] * 3
    assert (await http.post("", json=_BODY)).json()["phase"] == "filling"


async def test_refused_action_changes_no_bucket(rig: Rig, http: httpx.AsyncClient, store: Store) -> None:
    slow = await store.open(begin=False)
    assert slow.rt.switch is not None
    await http.post("", json=_BODY)
    await reach(rig, ["swapped", "filling", "filling"], working=[0])
    for action in ("confirm", "rollback"):
        assert "in phase filling, but this action needs swapped" in (await act(http, action, 409))["detail"]
        assert await phases(rig) == ["swapped", "filling", "filling"]
    await slow.rt.switch.look()
    await reach(rig, ["swapped"] * 3, working=[1, 2])
    assert "do not use second yet" in (await act(http, "confirm", 409))["detail"]
    assert await phases(rig) == ["swapped"] * 3


@pytest.mark.parametrize(("action", "refused", "model"), [("confirm", "rollback", "second"), ("rollback", "confirm", "first")])
async def test_change_that_ended_in_some_buckets_can_only_end_alike_in_others(
    rig: Rig, http: httpx.AsyncClient, action: Any, refused: str, model: str
) -> None:
    """Simulates an action that was interrupted between two buckets."""
    await http.post("", json=_BODY)
    await reach(rig, ["swapped"] * 3, working=[0, 1, 2])
    await wait_until(lambda: use(rig, "second"), "all buckets use the new model")
    await rig.rt[ReembedService].act(action)
    await reach(rig, ["none", "swapped", "swapped"], working=[0])
    assert f"some buckets already keep {model}: send {action} instead" in (await act(http, refused, 409))["detail"]
    await act(http, action)
    await reach(rig, ["none"] * 3, working=[1, 2])
    assert await models(rig) == [model] * 3


async def use(rig: Rig, model: str) -> bool:
    return set(await models(rig)) == {model}


async def test_change_starts_in_no_bucket_while_another_change_ends(rig: Rig, http: httpx.AsyncClient) -> None:
    await http.post("", json=_BODY)
    await act(http, "abort")
    await reach(rig, ["none", "ending", "none"], working=[0, 2])
    answer = await http.post("", json=_BODY)
    assert (answer.status_code, "already running (phase ending)" in answer.text) == (409, True)
    assert await phases(rig) == ["none", "ending", "none"]


async def test_status_shows_the_error_of_any_bucket(rig: Rig, http: httpx.AsyncClient) -> None:
    await http.post("", json=_BODY)
    await rig.rt.all[2][ReembedStore].note_error("second: no memory")
    assert (await http.get("")).json()["error"] == "second: no memory"
