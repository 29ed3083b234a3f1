"""Test that no undo restores data that was deleted or replaced in the meantime."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.settings import load_settings
from agent_memory_client.models import ForgetMemoryRequest, UpdateWorkingMemory
from tests.support.rig import SCOPE, Rig
from tests.support.stack import stack
from tests.support.waiting import wait_until

TEXT = "The greenhouse code is 4711."
NEW_TEXT = "The shed is never locked."


@pytest.fixture(scope="module")
async def server(lasting_redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    settings = load_settings(KEY_PREFIX="undo-after", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="mem0,supermemory")
    async with stack(settings, lasting_redis_url) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


async def call(server: httpx.AsyncClient, method: str, path: str, body: Any = None, **params: Any) -> Any:
    answer = await server.request(method, path, json=body, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def texts(server: httpx.AsyncClient, user: str) -> list[str]:
    body = {"text": "", "limit": 100, "user_id": {"eq": user}}
    return sorted(memory["text"] for memory in (await call(server, "POST", "/v1/long-term-memory/search", body))["memories"])


async def wait_for(server: httpx.AsyncClient, user: str, *expected: str) -> None:
    async def stored() -> bool:
        return await texts(server, user) == sorted(expected)

    await wait_until(stored, f"the user's memories are {expected}")


async def forget(server: httpx.AsyncClient, user: str) -> str:
    body = {"text": "everything about greenhouse", "user_id": user}
    receipt: str = (await call(server, "POST", "/v1/memory/forget", body))["receipt_id"]
    await wait_for(server, user)
    return receipt


async def add_file(server: httpx.AsyncClient, user: str, text: str = TEXT) -> str:
    answer = await server.post("/v1/files", params={"user_id": user, "name": "notes.md"}, content=text.encode())
    assert answer.status_code == 200, answer.text
    await wait_for(server, user, text)
    name: str = answer.json()["id"]
    return name


async def add_document(server: httpx.AsyncClient, user: str) -> str:
    await call(server, "POST", "/v3/documents", {"content": TEXT, "containerTag": user, "customId": f"doc-{user}"})
    await wait_for(server, user, TEXT)
    return f"doc-{user}"


async def add_mem0(server: httpx.AsyncClient, user: str) -> str:
    body = {"messages": [{"role": "user", "content": TEXT}], "infer": False, "user_id": user, "run_id": f"run-{user}"}
    await call(server, "POST", "/v3/memories/add/", body)
    await wait_for(server, user, TEXT)
    return f"run-{user}"


async def delete_file(server: httpx.AsyncClient, user: str, name: str) -> None:
    await call(server, "DELETE", f"/v1/files/{name}", user_id=user)


async def replace_file(server: httpx.AsyncClient, user: str, _: str) -> None:
    await add_file(server, user, NEW_TEXT)


async def upload_again(server: httpx.AsyncClient, user: str, _: str) -> None:
    await add_file(server, user)


async def delete_document(server: httpx.AsyncClient, user: str, name: str) -> None:
    answer = await server.delete(f"/v3/documents/{name}")
    assert answer.status_code in (200, 204), answer.text


async def replace_document(server: httpx.AsyncClient, user: str, name: str) -> None:
    await call(server, "PATCH", f"/v3/documents/{name}", {"content": NEW_TEXT})
    await wait_for(server, user, NEW_TEXT)


async def delete_container(server: httpx.AsyncClient, user: str, _: str) -> None:
    await call(server, "DELETE", "/v3/documents/bulk", {"containerTags": [user]})


async def delete_all_of_user(server: httpx.AsyncClient, user: str, _: str) -> None:
    await call(server, "DELETE", "/v1/memories/", user_id=user)


async def delete_all_of_run(server: httpx.AsyncClient, _: str, run: str) -> None:
    await call(server, "DELETE", "/v1/memories/", run_id=run)


async def delete_user(server: httpx.AsyncClient, user: str, _: str) -> None:
    # All memories were forgotten, so Mem0's clients may see no user.
    answer = await server.delete(f"/v2/entities/user/{user}/")
    assert answer.status_code in (200, 404), answer.text


Add = Callable[[httpx.AsyncClient, str], Awaitable[str]]
Delete = Callable[[httpx.AsyncClient, str, str], Awaitable[None]]


@pytest.mark.parametrize(
    ("add", "delete", "left"),
    [
        (add_file, delete_file, ()),
        (add_file, replace_file, (NEW_TEXT,)),
        (add_file, upload_again, (TEXT,)),
        (add_document, delete_document, ()),
        (add_document, replace_document, (NEW_TEXT,)),
        (add_document, delete_container, ()),
        (add_mem0, delete_all_of_user, ()),
        (add_mem0, delete_all_of_run, ()),
        (add_mem0, delete_user, ()),
    ],
)
async def test_undo_of_a_forget_request_restores_nothing_deleted_since(
    server: httpx.AsyncClient, add: Add, delete: Delete, left: tuple[str, ...]
) -> None:
    user, other = f"u-{ULID()}", f"o-{ULID()}"
    name, _ = await add(server, user), await add_file(server, other)
    receipt, receipt_of_other = await forget(server, user), await forget(server, other)
    await delete(server, user, name)
    for path in (f"/v1/memory/forget/{receipt}", f"/v1/memory/forget/{receipt}/undo"):
        answer = await server.request("POST" if path.endswith("undo") else "GET", path)
        assert answer.status_code in (404, 409), answer.text
    assert await texts(server, user) == sorted(left)
    await call(server, "POST", f"/v1/memory/forget/{receipt_of_other}/undo")
    await wait_for(server, other, TEXT)


@pytest.mark.parametrize("delete", [delete_file, replace_file])
async def test_undo_of_a_retention_policy_restores_no_passage_of_a_deleted_file(server: httpx.AsyncClient, delete: Delete) -> None:
    user = f"u-{ULID()}"
    name = await add_file(server, user)
    await call(server, "POST", "/v1/long-term-memory/forget", {"policy": {"budget": 0}}, user_id=user, dry_run=False)
    await wait_for(server, user)
    changes = (await call(server, "GET", "/v1/changes", user_id=user))["changes"]
    await delete(server, user, name)
    for change in changes:
        await server.post(f"/v1/changes/{change['id']}/undo")
    assert TEXT not in await texts(server, user)


SESSION = SessionRef("s", None, "ana")


async def forget_in(rig: Rig, text: str) -> str:
    answer = await rig.rt[ForgetService].forget(SCOPE, ForgetMemoryRequest(text=text, user_id="ana"))
    assert answer.receipt_id is not None
    return answer.receipt_id


@pytest.mark.parametrize("ended", ["deleted", "expired", "neither"])
async def test_undo_restores_messages_only_in_the_session_they_came_from(rig: Rig, ended: str) -> None:
    await rig.append("s", "Hello there.", TEXT, user_id="ana")
    await rig.work()
    receipt = await forget_in(rig, TEXT)
    if ended == "deleted":
        await rig.rt[SessionStore].delete(SCOPE, SESSION)
    elif ended == "expired":
        keys = rig.keys.session(rig.sid(SESSION))
        await rig.rt.client.delete(keys.meta, keys.messages, keys.ids, keys.doc)
    await rig.append("s", "Hello again.", user_id="ana")
    shown = await rig.rt[ForgetService].show(SCOPE, receipt)
    assert [item.kind for item in shown.items] == (["message", "session_message"] if ended == "neither" else ["message"])
    undone = await rig.rt[ForgetService].undo(SCOPE, receipt)
    assert undone.restored == {"memories": 1, "messages": int(ended == "neither"), "kept_newer": 0}
    said = ["Hello there.", TEXT] if ended == "neither" else []
    assert await rig.contents("s", user_id="ana") == [*said, "Hello again."]
    assert TEXT in {memory.text for memory in await rig.stored()}


async def test_undo_restores_no_waiting_memory_of_a_deleted_session(rig: Rig) -> None:
    body = {"user_id": "ana", "messages": [], "memories": [{"id": "m", "text": TEXT, "memory_type": "semantic"}]}
    await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory.model_validate(body))
    receipt = await forget_in(rig, TEXT)
    await rig.rt[SessionStore].delete(SCOPE, SESSION)
    await rig.rt[ForgetService].undo(SCOPE, receipt)
    assert not [key for key in await rig.raw_keys() if key.startswith("j:")]
    await rig.append("s", NEW_TEXT, user_id="ana")
    await rig.work()
    assert [memory.text for memory in await rig.stored()] == [NEW_TEXT]
