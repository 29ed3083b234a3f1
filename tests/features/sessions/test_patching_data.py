"""Test that `PATCH …/data` merges in Redis according to RFC 7396.

Covers arbitrary data and concurrent requests.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.session_write import SessionWrite
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.errors import NotFound, VersionMismatch
from agent_memory.foundation.core.scope import SessionRef
from agent_memory_client.models import UpdateWorkingMemory
from tests.support.rig import SCOPE, Rig, gathered

# The examples of RFC 7396, appendix A, that are objects.
_RFC = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]
# Values that a lossy merge would change: empty lists, large and fractional numbers, quotes and brackets within strings.
_HARD = {"empty": [], "none": {}, "big": 2**63 + 1, "small": 0.1 + 0.2, 'q"\\': '"}],\\" {', "é\n": [{"a": [[], {}]}, "]", None]}


def merge_patch(target: Any, patch: Any) -> Any:
    """Merge according to RFC 7396, section 2."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


async def patched(rig: Rig, target: dict[str, Any], patch: dict[str, Any], session: str = "s") -> Any:
    await rig.rt[SessionService].put(SCOPE, session, UpdateWorkingMemory.model_validate({"data": target}))
    return (await rig.rt[SessionService].patch_data(SCOPE, session, patch)).session.data


async def test_merge_patch_follows_the_rfc_examples(rig: Rig) -> None:
    for target, patch, result in _RFC:
        assert await patched(rig, target, patch) == result == merge_patch(target, patch)


async def test_unpatched_data_is_preserved_exactly(rig: Rig) -> None:
    for target, patch in (
        (_HARD, {"new": 1}),
        ({}, _HARD),
        (_HARD, {"none": {"x": {}}, "empty": None}),
        ({"d": _HARD}, {"d": {"x": _HARD}}),
    ):
        assert json.dumps(await patched(rig, target, patch)) == json.dumps(merge_patch(target, patch))


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text('ab"\\{}[],: é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"\\{},', max_size=2), inner, max_size=3),
    max_leaves=12,
)
_objects = st.dictionaries(st.text('ab"\\{},', max_size=2), _json, max_size=4)


async def test_merge_in_redis_equals_merge_in_python_for_any_data(rig: Rig) -> None:
    loop = asyncio.get_running_loop()

    @settings(max_examples=150)
    @given(target=_objects, patch=_objects)
    def agrees(target: dict[str, Any], patch: dict[str, Any]) -> None:
        async def run() -> int | None:
            await rig.rt[SessionStore].write(SCOPE, SessionRef("s"), SessionWrite("put", [], data=target))
            return await rig.rt[SessionStore].merge_data(SCOPE, SessionRef("s"), patch, None)

        assert asyncio.run_coroutine_threadsafe(run(), loop).result(20)
        state = asyncio.run_coroutine_threadsafe(rig.rt[SessionStore].get(SCOPE, SessionRef("s")), loop).result(20)
        assert state is not None
        assert json.dumps(state.data) == json.dumps(merge_patch(target, patch))

    await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory())
    await asyncio.to_thread(agrees)


async def test_two_hundred_concurrent_patches_all_take_effect(rig: Rig) -> None:
    await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory(data={"counts": {"kept": True}}))
    work = [rig.rt[SessionService].patch_data(SCOPE, "s", {"counts": {f"k{n}": n}, f"top{n % 7}": n}) for n in range(200)]
    await gathered([*work, *(rig.append("s", f"message {n}") for n in range(50))])
    answer = (await rig.rt[SessionService].get(SCOPE, "s")).session
    assert answer.data["counts"] == {"kept": True} | {f"k{n}": n for n in range(200)}
    assert len(answer.messages) == 50


async def test_patch_with_if_match_requires_that_version(rig: Rig) -> None:
    await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory(data={"a": 1}))
    assert (await rig.rt[SessionService].patch_data(SCOPE, "s", {"b": 2}, if_match="1")).version == 2
    with pytest.raises(VersionMismatch):
        await rig.rt[SessionService].patch_data(SCOPE, "s", {"b": 3}, if_match="1")
    with pytest.raises(NotFound):
        await rig.rt[SessionService].patch_data(SCOPE, "nobody", {"b": 3})
    assert (await rig.rt[SessionService].get(SCOPE, "s")).session.data == {"a": 1, "b": 2}


async def test_patch_without_a_user_finds_the_only_session_of_an_id(rig: Rig) -> None:
    await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory(user_id="ann", namespace="n", data={"a": 1}))
    assert (await rig.rt[SessionService].patch_data(SCOPE, "s", {"b": 2})).session.data == {"a": 1, "b": 2}
    await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory(user_id="ben", namespace="n"))
    with pytest.raises(NotFound):
        await rig.rt[SessionService].patch_data(SCOPE, "s", {"b": 3})
