"""Test that a block's text matches a simple model and a replay of its changes.

Operations occur in any order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ulid import ULID

from agent_memory.extensions.blocks.codec import replay_change
from agent_memory.extensions.blocks.owners import BlockOwner
from agent_memory.extensions.blocks.service import BlockService
from agent_memory.extensions.blocks.store import BlockStore, BlockWrite
from agent_memory.foundation.core.errors import Conflict, NotFound
from agent_memory.foundation.core.prompt_sections import Reader
from agent_memory.foundation.core.scope import DEFAULT_TENANT, Scope
from agent_memory.runtime import Runtime
from agent_memory_client.models.features.blocks import EditBlockRequest, PutBlockRequest

SCOPE = Scope(DEFAULT_TENANT)
LIMIT = 60
# Few letters, so that searches for text match; some letters take several bytes.
TEXT = st.text(alphabet="aé茶\n😀 ", max_size=12)
PART = st.text(alphabet="aé茶\n😀 ", min_size=1, max_size=3)
STEP = st.one_of(
    st.builds(lambda text: ("put", {"value": text}), TEXT),
    st.builds(lambda limit: ("put", {"limit": limit}), st.integers(5, LIMIT)),
    st.builds(lambda text: ("edit", {"operation": "append", "content": text}), PART),
    st.builds(lambda old, text: ("edit", {"operation": "replace", "old_content": old, "content": text}), PART, TEXT),
    st.builds(lambda line, text: ("edit", {"operation": "insert", "line": line, "content": text}), st.integers(1, 6), PART),
    st.builds(lambda text: ("edit", {"operation": "rethink", "content": text}), TEXT),
    st.just(("attach", {})),
    st.just(("detach", {})),
    st.just(("erase", {})),
    st.builds(lambda version: ("undo", {"version": version}), st.one_of(st.none(), st.integers(1, 12))),
)


def expected_text(text: str, step: dict[str, Any]) -> str | None:
    """Return the text after an edit, or None if the edit must fail."""
    content = step["content"]
    lines = text.split("\n")
    match step["operation"]:
        case "rethink":
            return content
        case "replace":
            old = step["old_content"]
            return None if text.find(old) < 0 or text.find(old) != text.rfind(old) else text.replace(old, content)
        case "insert" if step["line"] <= len(lines) and not (step["line"] == len(lines) and lines[-1] == ""):
            return "\n".join([*lines[: step["line"] - 1], content, *lines[step["line"] - 1 :]])
        case _:
            return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{content}"


async def play(runtime: Runtime, steps: list[tuple[str, dict[str, Any]]]) -> None:
    service, store = runtime[BlockService], runtime[BlockStore]
    owner, target = BlockOwner(user_id=str(ULID())), BlockOwner(agent_id=str(ULID()))
    text, limit, attached = "", LIMIT, False
    await service.put(SCOPE, owner, "b", PutBlockRequest(limit=LIMIT), None)
    for kind, step in steps:
        before = await service.get(SCOPE, owner, "b")
        assert (before.value, before.limit, bool(before.attached_to)) == (text, limit, attached)
        shown = await store.load_shown(SCOPE, Reader(agent_id=target.agent_id))
        assert [each.block.value for each in shown] == ([text] if attached else [])
        if kind == "erase":
            await store.erase(SCOPE, owner)
            await service.put(SCOPE, owner, "b", PutBlockRequest(limit=LIMIT), None)
            text, limit, attached = "", LIMIT, False
            continue
        if kind in ("attach", "detach"):
            attached = kind == "attach"
            await service.attach(SCOPE, owner, "b", target, attach=attached)
            continue
        try:
            if kind == "put":
                done = await service.put(SCOPE, owner, "b", PutBlockRequest(**step), None)
                text, limit = step.get("value", text), step.get("limit", limit)
            elif kind == "edit":
                done = await service.edit(SCOPE, owner, "b", EditBlockRequest(**step))
                wanted = expected_text(text, step)
                assert wanted is not None, step
                text = wanted
            else:
                done = await service.undo(SCOPE, owner, "b", step["version"], None)
                text, limit = done.block.value, done.block.limit
        except (NotFound, Conflict):
            assert await service.get(SCOPE, owner, "b") == before, "what is refused changes nothing"
            continue
        assert done.block.value == text, step
        assert len(text) <= max(limit, before.chars)
    history = await service.history(SCOPE, owner, "b")
    replayed = history.base
    for change in history.changes:
        replayed = replay_change(replayed, change)
    assert replayed == text == (await service.get(SCOPE, owner, "b")).value
    assert [change.version for change in history.changes] == list(range(1, len(history.changes) + 1))
    await runtime[BlockStore].erase(SCOPE, owner)


async def test_replay_of_changes_equals_the_block(runtime: Runtime) -> None:
    cases: list[list[tuple[str, dict[str, Any]]]] = []

    @settings(max_examples=80, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(STEP, min_size=1, max_size=12))
    def draw(steps: list[tuple[str, dict[str, Any]]]) -> None:
        cases.append(steps)

    draw()
    for steps in cases:
        await play(runtime, steps)


async def test_undo_reverts_changes_from_newest_to_oldest(runtime: Runtime) -> None:
    service, owner = runtime[BlockService], BlockOwner(agent_id=str(ULID()))
    await service.put(SCOPE, owner, "b", PutBlockRequest(), None)
    edits: list[dict[str, Any]] = [{"operation": "append", "content": f"line {number} ✓"} for number in range(5)]
    edits += [{"operation": "replace", "old_content": "line 2", "content": "row 2"}, {"operation": "insert", "line": 1, "content": "first"}]
    texts = [""]
    for edit in edits:
        texts.append((await service.edit(SCOPE, owner, "b", EditBlockRequest.model_validate(edit))).block.value)
    for version in range(8, 1, -1):
        undone = await service.undo(SCOPE, owner, "b", version, None)
        assert undone.block.value == texts[version - 2]


async def test_old_changes_are_folded_into_the_base(runtime: Runtime, monkeypatch: Any) -> None:
    monkeypatch.setattr("agent_memory.extensions.blocks.store.MAX_CHANGES", 5)
    service, owner = runtime[BlockService], BlockOwner(agent_id=str(ULID()))
    await service.put(SCOPE, owner, "b", PutBlockRequest(value="é"), None)
    for number in range(12):
        await service.edit(SCOPE, owner, "b", EditBlockRequest(operation="append", content=f"茶{number}"))
    history = await service.history(SCOPE, owner, "b")
    assert len(history.changes) == 5
    assert history.base.endswith("茶6")
    replayed = history.base
    for change in history.changes:
        replayed = replay_change(replayed, change)
    assert replayed == (await service.get(SCOPE, owner, "b")).value
    await service.undo(SCOPE, owner, "b", 10, None)


async def test_concurrent_edits_replay_to_the_block(runtime: Runtime) -> None:
    service, owner = runtime[BlockService], BlockOwner(user_id=str(ULID()))
    await service.put(SCOPE, owner, "b", PutBlockRequest(limit=5000, limit_tokens=3000), None)

    async def attempt(do: Callable[[], Any]) -> None:
        with suppress(Conflict):
            await do()

    def edit(number: int) -> Callable[[], Any]:
        if number % 5 == 4:
            return lambda: service.undo(SCOPE, owner, "b", None, None)
        if number % 5 == 3:
            body = EditBlockRequest(operation="replace", old_content=f"茶{number - 1}", content="x")
        else:
            body = EditBlockRequest(operation="append", content=f"茶{number}")
        return lambda: service.edit(SCOPE, owner, "b", body)

    await asyncio.gather(*(attempt(edit(number)) for number in range(40)))
    history = await service.history(SCOPE, owner, "b")
    replayed = ""
    for change in history.changes:
        replayed = replay_change(replayed, change)
    assert replayed == (await service.get(SCOPE, owner, "b")).value


async def test_overtaken_edit_must_recount_its_tokens(runtime: Runtime) -> None:
    """A token count applies to one version, so another edit makes it outdated."""
    store, owner = runtime[BlockStore], BlockOwner(user_id=str(ULID()))
    await runtime[BlockService].put(SCOPE, owner, "b", PutBlockRequest(value="tea", limit_tokens=30), None)
    write = BlockWrite("append", "plums", tokens=40)
    asked = await store.change(SCOPE, owner, "b", write)
    assert (asked.state, asked.size, asked.text) == ("count", 1, "tea\nplums")
    await runtime[BlockService].edit(SCOPE, owner, "b", EditBlockRequest(operation="append", content="x"))
    again = await store.change(SCOPE, owner, "b", BlockWrite("append", "plums", tokens=40, counted={"version": 1, "tokens": 3}))
    assert (again.state, again.size, again.text) == ("count", 2, "tea\nx\nplums")
