"""Test that an unreadable record or a message with no text does not stop an erasure or purge.

The operation identifies the record.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from tests.features.privacy.persons import Face, faced
from tests.support.rig import SCOPE, MakeRig

BAD, GOOD = "ann-bad", "ann-good"


def call(name: str, user: str, session: str) -> dict[str, Any]:
    """Return messages that have no text, like those of any agent that uses tools."""
    asked = {
        "id": f"{session}-c",
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": name}}],
    }
    picture = {"id": f"{session}-p", "role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/x.png"}}]}
    answer = {"id": f"{session}-a", "role": "tool", "content": "The page says eleven.", "tool_call_id": "1"}
    return {"user_id": user, "messages": [asked, picture, answer]}


async def fill(face: Face) -> None:
    """Store sessions with tool calls for two users, and an agent's memories."""
    for user in ("ann", "bob"):
        await face.ok("POST", f"/v1/working-memory/{user}-s/messages", json=call("look_up", user, f"{user}-s"))
    where = {"user_id": "ann", "agent_id": "coach", "session_id": "ann-s"}
    facts = [{"id": name, "text": f"Ann says that {name} is a name", **where} for name in (BAD, GOOD)]
    await face.ok("POST", "/v1/long-term-memory/", json={"memories": facts})
    again = [fact | {"text": f"Ann says that {fact['id']} was a name"} for fact in facts]
    await face.ok("POST", "/v1/long-term-memory/", json={"memories": again})
    await face.ok("PUT", "/v1/blocks/human", params={"user_id": "ann", "agent_id": "coach"}, json={"value": "Looks things up."})
    await face.rig.work()


async def poison(face: Face, *, former: bool) -> str:
    """Corrupt a memory or its former version, and return the key."""
    client: Any = face.rig.rt.client
    root, mid = face.rig.keys.root, face.rig.keys.mid(SCOPE.tenant, BAD)
    key = next(key for key in await face.rig.raw_keys() if key.startswith(f"h:{mid}.")) if former else f"m:{mid}"
    await client.hset(root + key, "j", b'{"id": "ann-bad", "text": 5')
    return key


async def outcome(face: Face, operation_id: str) -> dict[str, Any]:
    await face.rig.work(DueKind.DELETION)
    await face.rig.work(DueKind.ORDER)
    return await face.ok("GET", f"/v1/operations/{operation_id}")


@pytest.mark.parametrize("path", ["/v1/users/ann", "/v1/agents/coach", "/v1/working-memory/ann-s?user_id=ann&memories=true"])
@pytest.mark.parametrize("former", [False, True])
async def test_erasure_completes_despite_an_unreadable_record(make_rig: MakeRig, path: str, former: bool) -> None:
    async with make_rig() as rig, faced(rig) as face:
        await fill(face)
        key = await poison(face, former=former)
        answer = await face.http.delete(path)
        done = await outcome(face, answer.headers["x-operation-id"])
        # A former version is deleted with its memory without being read, unless its owner matters.
        named = not former or path.startswith("/v1/agents")
        assert (done["state"], done["stages"].get("unreadable", 0)) == ("done", int(named)), done
        assert not named or key.partition(".")[0][2:] in done["reason"]
        mids = [rig.keys.mid(SCOPE.tenant, name) for name in (BAD, GOOD)]
        assert [left for left in await rig.raw_keys() if any(mid in left and not left.startswith("mt:") for mid in mids)] == []
        assert (await face.http.get("/v1/working-memory/bob-s", params={"user_id": "bob"})).status_code == 200
        blocks = await face.ok("GET", "/v1/blocks", params={"user_id": "ann", "agent_id": "coach"})
        assert bool(blocks["blocks"]) == path.startswith("/v1/working-memory")


@pytest.mark.parametrize("dry_run", [True, False])
async def test_purge_completes_and_reports_unreadable_records(make_rig: MakeRig, dry_run: bool) -> None:
    async with make_rig() as rig, faced(rig) as face:
        await fill(face)
        key = await poison(face, former=False)
        sid = rig.sid(SessionRef("bob-s", None, "bob"))
        await rig.rt.client.rpush(rig.keys.session(sid).messages, b"9 1 {")
        asked = await face.ok("POST", "/v1/long-term-memory/purge", params={"dry_run": dry_run, "wait": 0}, json={"source_class": ["tool"]})
        done = await outcome(face, asked["operation_id"])
        assert (done["state"], done["stages"]["unreadable"]) == ("done", 2), done
        assert key in done["reason"]
        assert f"w:{sid}" in done["reason"]
        assert done["stages"]["messages"] == 1, "the tool's in the session that can be read"
        said = await rig.contents("ann-s", user_id="ann")
        assert ("The page says eleven." in said) == dry_run


async def test_purge_includes_tool_call_messages_without_text(make_rig: MakeRig) -> None:
    async with make_rig() as rig, faced(rig) as face:
        await fill(face)
        params = {"dry_run": False, "wait": 0}
        asked = await face.ok("POST", "/v1/long-term-memory/purge", params=params, json={"session_id": "bob-s"})
        done = await outcome(face, asked["operation_id"])
        assert (done["state"], done["stages"]["messages"], done["reason"]) == ("done", 3, None)
        assert await rig.contents("bob-s", user_id="bob") == []
