"""Test forgetting during concurrent writes or a server crash."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.privacy.forget.plan import Plan
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.features.privacy.forget.store import ForgetStore
from agent_memory.foundation.core.scope import Scope
from agent_memory_client.models import ForgetMemoryRequest
from tests.features.privacy.test_forget import forget, peanuts, texts
from tests.support.rig import SCOPE, Rig


class Died(BaseException):
    """Simulates the death of a server process. No code catches it."""


async def test_forget_retries_if_the_session_changed_meanwhile(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await peanuts(rig)
    take, tries = ForgetStore.take, list[int]()

    async def slow(self: ForgetStore, scope: Scope, owner: Any, name: str, plan: Plan, *more: Any) -> Any:
        tries.append(len(plan.matches))
        if len(tries) == 1:
            await rig.append("s", "By the way, peanuts are what I am allergic to.", user_id="ana")
        return await take(self, scope, owner, name, plan, *more)

    monkeypatch.setattr(ForgetStore, "take", slow)
    await forget(rig, "I am allergic to peanuts")
    assert tries == [3, 4]
    assert not any("peanut" in text for text in await rig.contents("s", user_id="ana"))


@pytest.mark.parametrize("dies_at", [1, 2])
async def test_forget_is_atomic_if_the_server_dies(rig: Rig, monkeypatch: pytest.MonkeyPatch, dies_at: int) -> None:
    """A crash leaves everything or nothing deleted. A retry completes the request."""
    await peanuts(rig)
    before = await texts(rig)
    calls: list[Plan] = []

    async def dying(self: ForgetService, scope: Scope, plan: Plan) -> None:
        calls.append(plan)
        if len(calls) == dies_at:
            raise Died

    with monkeypatch.context() as patch:
        patch.setattr(ForgetService, "_purge", dying)
        with pytest.raises(Died):
            await forget(rig, "I am allergic to peanuts")
    left = await texts(rig)
    assert left == (before if dies_at == 1 else ["User works at Acme", "We talked about the weather in Rome."])
    await rig.rt[ForgetService].forget(SCOPE, ForgetMemoryRequest(text="I am allergic to peanuts", user_id="ana"))
    assert await texts(rig) == ["User works at Acme", "We talked about the weather in Rome."]
