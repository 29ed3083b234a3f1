"""Test that `AgentMemoryStore` works like LangGraph's store, including with agents and LangMem.

LangGraph publishes conformance tests only for checkpointers, so these tests make the same calls to
its in-memory store and compare the results.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any
from uuid import uuid4

import pytest
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from langmem import create_manage_memory_tool, create_search_memory_tool

from agent_memory_client import MemoryClient
from agent_memory_client.errors import MemoryUnavailableError, MemoryValidationError
from agent_memory_client.integrations.langgraph import AgentMemoryStore
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import NOBODY, ModelServer


def new_user() -> str:
    return f"user-{uuid4()}"


@pytest.fixture
def store(blocking: SyncMemoryClient) -> AgentMemoryStore:
    return AgentMemoryStore(blocking, user_id=new_user())


VALUES: list[dict[str, Any]] = [
    {"kind": "a", "n": 1, "nested": {"x": 1, "tags": ["p", "q"]}},
    {"kind": "a", "n": 2.5, "nested": {"x": 2}},
    {"kind": "b", "n": -3, "nested": {"x": None}},
    {"kind": "b", "n": 10**18},
    {"kind": "ü ", "n": 0, "list": [1, [2, {"three": None}]]},
]
FILTERS: list[dict[str, Any] | None] = [
    None,
    {"kind": "a"},
    {"n": {"$gt": 0}},
    {"n": {"$gte": 1, "$lt": 10}},
    {"n": {"$lte": 0}},
    {"kind": {"$ne": "a"}},
    {"kind": {"$eq": "b"}, "n": -3},
    {"nested": {"x": 2}},
]
LABELS = ["a", "b", "c d", "*é"]


def plain(result: Any) -> Any:
    """Remove the times from a result and sort it."""
    if isinstance(result, list):
        return sorted((plain(entry) for entry in result), key=repr)
    return (result.namespace, result.key, result.value) if hasattr(result, "key") else result


def random_ops(choose: random.Random) -> list[Any]:
    def path() -> tuple[str, ...]:
        return tuple(choose.choice(LABELS) for _ in range(choose.randint(1, 3)))

    ops: list[Any] = []
    for _ in range(choose.randint(1, 6)):
        key = f"k{choose.randint(0, 4)}"
        kind = choose.randrange(6)
        if kind <= 1:
            ops.append(PutOp(path(), key, choose.choice(VALUES)))
        elif kind == 2:
            ops.append(PutOp(path(), key, None))
        elif kind == 3:
            ops.append(GetOp(path(), key))
        elif kind == 4:
            prefix = path()[: choose.randint(0, 2)]
            ops.append(SearchOp(prefix, choose.choice(FILTERS), limit=1000))
        else:
            condition = MatchCondition(choose.choice(["prefix", "suffix"]), tuple(choose.choice([*LABELS, "*"]) for _ in range(2)))
            depth = choose.choice([None, 1, 2])
            conditions = choose.choice([None, (condition,)])
            ops.append(ListNamespacesOp(conditions, depth, limit=1000))
    return ops


@pytest.mark.parametrize("seed", range(4))
def test_store_returns_the_same_as_langgraphs_store_for_random_calls(store: AgentMemoryStore, seed: int) -> None:
    reference, choose = InMemoryStore(), random.Random(seed)
    for _ in range(60):
        ops = random_ops(choose)
        expected = [plain(result) for result in reference.batch(ops)]
        # LangGraph's in-memory store keeps a namespace whose last item was deleted.
        held = {item.namespace for item in reference.search((), limit=10_000)}
        actual = [plain(result) for result in store.batch(ops)]
        for op, theirs, ours in zip(ops, expected, actual, strict=True):
            if isinstance(op, ListNamespacesOp):
                assert set(ours) <= set(theirs)
            else:
                assert ours == theirs, op
        assert set(store.list_namespaces(limit=10_000)) == held


def test_store_supports_every_blocking_call(store: AgentMemoryStore) -> None:
    assert isinstance(store, BaseStore)
    store.put(("users", "ada"), "k", {"a": 1})
    item = store.get(("users", "ada"), "k")
    assert item is not None
    assert (item.value, item.key, item.namespace) == ({"a": 1}, "k", ("users", "ada"))
    assert item.created_at == item.updated_at
    assert item.created_at.tzinfo is not None
    assert [found.key for found in store.search(("users",), filter={"a": {"$gte": 1}})] == ["k"]
    assert store.list_namespaces(prefix=("users", "*"), suffix=("ada",)) == [("users", "ada")]
    assert store.list_namespaces(max_depth=1) == [("users",)]
    store.delete(("users", "ada"), "k")
    assert store.get(("users", "ada"), "k") is None
    assert store.search(()) == []


async def test_store_supports_every_awaited_call(client: MemoryClient, blocking: SyncMemoryClient) -> None:
    for made in (client, blocking):
        store = AgentMemoryStore(made, user_id=new_user())
        await store.aput(("users", "ada"), "k", {"a": 1})
        item = await store.aget(("users", "ada"), "k")
        assert item is not None
        assert item.value == {"a": 1}
        assert [found.key for found in await store.asearch(("users",))] == ["k"]
        assert await store.alist_namespaces() == [("users", "ada")]
        await asyncio.gather(*(store.aput(("many",), str(number), {"n": number}) for number in range(20)))
        assert len(await store.asearch(("many",), limit=100)) == 20
        await store.adelete(("users", "ada"), "k")
        assert await store.aget(("users", "ada"), "k") is None


async def test_asynchronous_client_also_serves_blocking_calls(client: MemoryClient) -> None:
    store = AgentMemoryStore(client, user_id=new_user())
    await asyncio.to_thread(store.put, ("a",), "k", {"n": 1})
    item = await store.aget(("a",), "k")
    assert item is not None
    store.close()


def test_new_item_is_found_by_words_at_once_and_later_by_meaning(store: AgentMemoryStore) -> None:
    store.put(("m",), "food", {"text": "She is allergic to peanuts", "secret": "bicycle"}, index=["text"])
    store.put(("m",), "city", {"text": "She lives in Oslo"})
    store.put(("m",), "none", {"text": "peanuts peanuts"}, index=False)
    at_once = store.search(("m",), query="peanuts")
    assert [item.key for item in at_once][:1] == ["food"]
    assert at_once[0].score
    assert at_once[-1].key == "none"
    assert at_once[-1].score is None
    deadline = time.monotonic() + 60
    while [item.key for item in store.search(("m",), query="which Norwegian town is home?", limit=1)] != ["city"]:
        assert time.monotonic() < deadline, "the items are not embedded"
    assert [item.key for item in store.search(("m",), query="peanuts", filter={"secret": "bicycle"})] == ["food"]


def test_item_expires_after_its_ttl(blocking: SyncMemoryClient) -> None:
    store = AgentMemoryStore(blocking, user_id=new_user(), ttl={"default_ttl": 0.001, "refresh_on_read": False})
    store.put(("a",), "short", {"n": 1})
    store.put(("a",), "long", {"n": 1}, ttl=60)
    deadline = time.monotonic() + 30
    while store.get(("a",), "short") is not None:
        assert time.monotonic() < deadline
    assert [item.key for item in store.search(("a",))] == ["long"]


HOSTILE = ["*", "a*", "{}", "{*}", "@t:{*}", "'", '"', "\\", "a/b", "a|b", " ", "\n", "é", "e\u0301", "\U0001f600", "!", "A" * 500]


def test_hostile_namespaces_and_keys_are_stored_unchanged(store: AgentMemoryStore) -> None:
    for number, name in enumerate(HOSTILE):
        store.put((name, "x"), name, {"n": number})
    for number, name in enumerate(HOSTILE):
        item = store.get((name, "x"), name)
        assert item is not None
        assert (item.value, item.key, item.namespace) == ({"n": number}, name, (name, "x"))
        assert [found.value["n"] for found in store.search((name,))] == [number]
    assert len(store.list_namespaces(limit=1000)) == len(HOSTILE)
    for bad in ((), ("",), ("a.b",), ("\x00",), ("langgraph",)):
        with pytest.raises(InvalidNamespaceError):
            store.put(bad, "k", {})
    with pytest.raises(InvalidNamespaceError):
        store.batch([GetOp(("a.b",), "k")])
    for key in ("", "\x00", "\ud800", "x" * 2001):
        with pytest.raises(ValueError):
            store.put(("a",), key, {})
    with pytest.raises(ValueError):
        store.put(("a",), "k", {"no": object()})


def test_tuples_are_returned_as_lists_and_long_keys_are_accepted(store: AgentMemoryStore) -> None:
    key = "é" * 2000
    store.put(("x",), key, {"pair": (1, (2, {"deep": ()}))})
    item = store.get(("x",), key)
    assert item is not None
    assert item.value == {"pair": [1, [2, {"deep": []}]]}
    store.delete(("x",), key)
    assert store.get(("x",), key) is None
    with pytest.raises(MemoryValidationError, match=r"value\.prices\.1: JSON has no nan"):
        store.put(("x",), "k", {"prices": [1.0, float("nan")]})


def test_unknown_filter_operator_raises_value_error(store: AgentMemoryStore) -> None:
    """LangGraph's own stores do the same."""
    store.put(("operators",), "k", {"price": {"amount": 1}})
    for bad in ({"price": {"$like": 1}}, {"price": {"$gt": 0, "$regex": "x"}}):
        with pytest.raises(ValueError, match="operator"):
            store.search(("operators",), filter=bad)
    assert [item.key for item in store.search(("operators",), filter={"price": {"amount": 1}})] == ["k"]


def test_items_of_different_users_are_separate(blocking: SyncMemoryClient) -> None:
    names: list[dict[str, Any]] = [{"user_id": new_user()}, {"user_id": new_user()}, {"namespace": new_user()}]
    names += [names[0] | {"namespace": "n"}, {"user_id": f"{names[0]['user_id']} "}]
    stores = [AgentMemoryStore(blocking, **owner) for owner in names]
    for number, store in enumerate(stores):
        store.put(("same",), "k", {"text": f"the secret of {number}"})
    for number, store in enumerate(stores):
        everything = [*store.search(()), *store.search((), query="secret", limit=100)]
        assert {item.value["text"] for item in everything} == {f"the secret of {number}"}
        assert store.list_namespaces() == [("same",)]
    stores[0].delete(("same",), "k")
    assert stores[1].get(("same",), "k") is not None


async def test_unreachable_server_raises_at_once() -> None:
    began = time.monotonic()
    store = AgentMemoryStore(SyncMemoryClient(NOBODY))
    with pytest.raises(MemoryUnavailableError):
        store.put(("a",), "k", {})
    async with MemoryClient(NOBODY) as nobody:
        with pytest.raises(MemoryUnavailableError):
            await AgentMemoryStore(nobody).aget(("a",), "k")
    assert time.monotonic() - began < 20


def test_prebuilt_agent_stores_and_finds_memories_with_langmems_tools(blocking: SyncMemoryClient, model: ModelServer) -> None:
    user = new_user()
    store = AgentMemoryStore(blocking, user_id=user)
    tools = [create_manage_memory_tool(namespace=("memories",)), create_search_memory_tool(namespace=("memories",))]
    agent = create_react_agent(ChatOpenAI(model="m", streaming=False), tools, store=store)
    model.script += [{"name": "manage_memory", "arguments": {"content": "Ada keeps bees", "action": "create"}}, "noted"]
    agent.invoke({"messages": [{"role": "user", "content": "I keep bees. I am Ada."}]})
    (item,) = store.search(("memories",))
    assert item.value["content"] == "Ada keeps bees"
    # In another process and with another agent, the store has the same content.
    model.script += [{"name": "search_memory", "arguments": {"query": "which animals?"}}, "bees"]
    again = create_react_agent(ChatOpenAI(model="m", streaming=False), tools, store=AgentMemoryStore(blocking, user_id=user))
    messages = again.invoke({"messages": [{"role": "user", "content": "What do I keep?"}]})["messages"]
    assert "Ada keeps bees" in messages[-2].content
    stranger = create_react_agent(ChatOpenAI(model="m", streaming=False), tools, store=AgentMemoryStore(blocking, user_id=new_user()))
    model.script += [{"name": "search_memory", "arguments": {"query": "which animals?"}}, "nothing"]
    messages = stranger.invoke({"messages": [{"role": "user", "content": "What do I keep?"}]})["messages"]
    assert "bees" not in messages[-2].content


async def test_langmems_tools_can_be_awaited(client: MemoryClient) -> None:
    store = AgentMemoryStore(client, user_id=new_user())
    manage = create_manage_memory_tool(namespace=("memories",), store=store)
    search = create_search_memory_tool(namespace=("memories",), store=store)
    await manage.ainvoke({"content": "Ada likes tea", "action": "create"})
    (item,) = await store.asearch(("memories",))
    await manage.ainvoke({"content": "Ada likes coffee", "action": "update", "id": item.key})
    assert "coffee" in str(await search.ainvoke({"query": "drinks"}))
    await manage.ainvoke({"action": "delete", "id": item.key})
    assert await store.asearch(("memories",)) == []
