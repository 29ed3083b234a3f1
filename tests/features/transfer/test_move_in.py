"""Test `agent-memory import --from` against a real server.

Covers the imported content, repetition, kills and undo.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.cli.app import app
from tests.features.transfer.exports import BASE, DATA, chatgpt_conversation, node, write_all
from tests.support.stack import stack
from tests.support.waiting import wait_until

LOCAL = {"MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}
USERS = {"chatgpt": "gita", "claude": "clara", "letta": "lena", "basic-memory": "bea", "memobase": "mona"}
"""The user who receives the data of systems without users."""


@dataclass
class Home:
    url: str
    http: httpx.AsyncClient

    async def run(self, *words: str) -> tuple[dict[str, Any], int]:
        result = await asyncio.to_thread(CliRunner().invoke, app, [*words, "--json", "--url", self.url])
        assert result.exit_code in (0, 4), (result.output, result.exception)
        return json.loads(result.stdout.splitlines()[-1]), result.exit_code

    async def move_in(self, system: str, files: list[Path], *more: str) -> dict[str, Any]:
        user = ["--user", USERS[system]] if system in USERS else []
        return (await self.run("import", "--from", system, *map(str, files), *user, *more))[0]

    async def memories(self, **filters: Any) -> list[dict[str, Any]]:
        body = {"text": "", "limit": 100} | {name: {"eq": value} for name, value in filters.items()}
        return (await self.http.post("/v1/long-term-memory/search", json=body)).raise_for_status().json()["memories"]

    async def blocks(self, **owner: str) -> dict[str, str]:
        listed = (await self.http.get("/v1/blocks", params=owner)).raise_for_status().json()["blocks"]
        return {block["label"]: block["value"] for block in listed}

    async def session(self, session_id: str, user_id: str) -> dict[str, Any] | None:
        answer = await self.http.get(f"/v1/working-memory/{session_id}", params={"user_id": user_id})
        return None if answer.status_code == 404 else answer.raise_for_status().json()


@pytest.fixture
async def home(redis_url: str, request: pytest.FixtureRequest) -> AsyncGenerator[Home]:
    prefix = f"move{abs(hash(request.node.name)) % 10**8}"
    async with (
        stack(load_settings(KEY_PREFIX=prefix, **LOCAL), redis_url) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as http,
    ):
        yield Home(url, http)


async def test_every_system_is_imported_once_and_can_be_undone(home: Home, tmp_path: Path) -> None:
    names: list[str] = []
    for system, files in write_all(tmp_path).items():
        dry = await home.move_in(system, files, "--dry-run")
        first = await home.move_in(system, files)
        assert first["problems"] == [], system
        assert first["read"] == dry["read"], system
        assert first["imported"] == first["read"], system
        assert dry["dry_run"]
        names.append(first["name"])
        again = await home.move_in(system, files)
        assert (again["imported"], again["present"], again["problems"]) == ({}, first["imported"], []), system
        assert again["name"] == first["name"]
    assert len(await home.memories()) > 20
    for name in names:
        undone, _ = await home.run("import", "--undo", name)
        assert undone["status"] == "ok", name
        assert undone["counts"]["matched"] > 0, name
    assert await home.memories() == []
    assert (await home.http.get("/v1/working-memory/", params={"limit": 10})).json()["sessions"] == []


async def test_conversations_keep_branch_order_dates_and_users(home: Home, tmp_path: Path) -> None:
    files = write_all(tmp_path)
    report = await home.move_in("chatgpt", files["chatgpt"])
    assert report["left_out"]["a system or tool message"]["count"] == 4
    session = await home.session("conv-1", "gita")
    assert session is not None
    assert [message["content"].split(",")[0] for message in session["messages"]] == [
        "I keep bees in a garden near the river",
        "Bees near a river find plenty of flowers",
        "Soon I will move to Porto",
        "Porto is a rainy town by the sea",
    ]
    assert session["messages"][0]["created_at"].startswith("2025-01-01T11:13:21")
    assert session["data"]["title"] == "Bees conv-1"
    found = await home.http.post("/v1/long-term-memory/search", json={"text": "Where do I move?", "user_id": {"eq": "gita"}, "limit": 3})
    texts = [memory["text"] for memory in found.json()["memories"]]
    assert any("Porto" in text for text in texts)
    assert "Madrid" not in json.dumps(await home.memories(user_id="gita"))
    ordered = sorted(await home.memories(user_id="gita"), key=lambda memory: memory["created_at"])
    assert {memory["session_id"] for memory in ordered[:4]} == {"conv-1"}
    await home.move_in("claude", files["claude"])
    talk = await home.session("talk-1", "clara")
    assert talk is not None
    assert [message["role"] for message in talk["messages"]] == ["user", "assistant", "user"]
    assert "astronaut" not in json.dumps(talk)
    assert "hm" not in [message["content"] for message in talk["messages"]]


async def test_facts_keep_owner_dates_topics_and_validity(home: Home, tmp_path: Path) -> None:
    files = write_all(tmp_path)
    await home.move_in("mem0", files["mem0"], "--namespace", "mem0")
    by_text = {memory["text"]: memory for memory in await home.memories(namespace="mem0")}
    porto = by_text["Ada lives in Porto."]
    assert (porto["id"], porto["user_id"]) == ("f93be0bd-b3b1-41c2-8629-6aa0a2ee0774", "ada")
    assert porto["created_at"].startswith("2026-11-26T18:02:11.450152")
    assert (porto["metadata"]["topic"], porto["source_class"]) == ("home", "import")
    assert by_text["The coach greets everyone by name."].get("user_id") is None
    assert by_text["The coach greets everyone by name."]["agent_id"] == "coach"
    assert (by_text["Bo has a dog named Pixel."]["session_id"], by_text["Bo has a dog named Pixel."]["agent_id"]) == ("r1", "coach")
    await home.move_in("zep", files["zep"])
    lisbon = await home.http.post(
        "/v1/long-term-memory/search", json={"text": "", "user_id": {"eq": "ada"}, "as_of": "2025-03-05T00:00:00Z", "limit": 50}
    )
    assert "Ada lives in Lisbon." in [memory["text"] for memory in lisbon.json()["memories"]]
    assert "Ada lives in Lisbon." not in [memory["text"] for memory in await home.memories(user_id="ada")]
    mapping = ["--map", "text=note", "--map", "user_id=customer", "--map", "created_at=when"]
    await home.move_in("table", [tmp_path / "table.csv"], *mapping)
    (cleo,) = await home.memories(user_id="cleo")
    assert (cleo["text"], cleo["metadata"]["city"]) == ("Cleo, a painter, sells in Lagos.", "Lagos")
    assert cleo["created_at"].startswith("2025-05-05T10:00:00")


async def test_undo_of_an_import_keeps_records_that_changed_since(home: Home, tmp_path: Path) -> None:
    files = write_all(tmp_path)
    for_ada = ["--user", "ada"]
    mem0 = await home.move_in("mem0", files["mem0"])
    talks = await home.move_in("chatgpt", files["chatgpt"])
    own = {"id": "own-1", "text": "Ada repairs clocks.", "user_id": "ada", "memory_type": "semantic"}
    (await home.http.post("/v1/long-term-memory/", json={"memories": [own]})).raise_for_status()
    edited = "758d8796-3e7f-48a2-b891-2bc3dc30ec08"
    patch = {"text": "Bo has a dog named Pixie."}
    (await home.http.patch(f"/v1/long-term-memory/{edited}", json=patch)).raise_for_status()
    more = {"messages": [{"role": "user", "content": "Let us go on about the bees and their honey."}], "user_id": "gita"}
    (await home.http.post("/v1/working-memory/conv-1/messages?wait=searchable", json=more)).raise_for_status()

    dry, _ = await home.run("import", "--undo", mem0["name"], "--dry-run")
    assert (dry["dry_run"], dry["counts"]["matched"]) == (True, 3)
    assert len(await home.memories(user_id="bo")) == 2
    await home.run("import", "--undo", mem0["name"])
    assert [memory["id"] for memory in await home.memories(user_id="bo")] == [edited]
    assert [memory["id"] for memory in await home.memories(user_id="ada")] == ["own-1"]
    assert await home.memories(agent_id="coach") == await home.memories(user_id="bo")

    undone, _ = await home.run("import", "--undo", talks["name"])
    assert (undone["counts"]["sessions"], undone["counts"]["matched"]) == (1, 4)
    kept = await home.session("conv-1", "gita")
    assert kept is not None
    assert len(kept["messages"]) == 5
    assert await home.session("conv-2", "gita") is None
    assert {memory["session_id"] for memory in await home.memories(user_id="gita")} == {"conv-1"}
    # After an undo, the files can be imported again.
    again = await home.move_in("mem0", files["mem0"], *for_ada)
    assert again["problems"] == []


async def test_undo_of_an_import_deletes_unchanged_blocks_only(home: Home, tmp_path: Path) -> None:
    files = write_all(tmp_path)["letta"]
    mine = {"user_id": "lena", "agent_id": "sam"}
    own = {"value": "Lena's own note."}
    (await home.http.put("/v1/blocks/notes", params=mine, json=own)).raise_for_status()
    name = (await home.move_in("letta", files))["name"]
    assert (await home.move_in("letta", files))["present"]["block"] == 2
    (await home.http.patch("/v1/blocks/human", params=mine, json={"operation": "append", "content": "Likes figs."})).raise_for_status()
    assert len(await home.blocks(**mine)) == 3
    dry, _ = await home.run("import", "--undo", name, "--dry-run")
    undone, _ = await home.run("import", "--undo", name)
    assert (dry["counts"]["blocks"], undone["counts"]["blocks"]) == (1, 1)
    left = await home.blocks(**mine)
    assert sorted(left) == ["human", "notes"]
    assert left["human"].endswith("Likes figs.")
    # Also of an agent without a user; a file's record is deleted with its text.
    agents = (await home.run("import", "--from", "letta", *map(str, files)))[0]["name"]
    assert sorted(await home.blocks(agent_id="sam")) == ["human", "persona"]
    await home.run("import", "--undo", agents)
    assert await home.blocks(agent_id="sam") == {}


async def test_undo_of_an_imported_export_deletes_every_unchanged_record(home: Home, tmp_path: Path) -> None:
    where = {"user_id": "fia", "namespace": "n"}

    async def ok(method: str, path: str, **more: Any) -> Any:
        return (await home.http.request(method, path, **more)).raise_for_status().json()

    await ok("POST", "/v1/files", params={"name": "a.txt", **where}, content=b"The attic is full of maps.")

    async def is_read() -> bool:
        return (await ok("GET", "/v1/files", params=where))["files"][0]["state"] == "ready"

    await wait_until(is_read, "the file is read")
    for key in ("kept", "gone"):
        await ok("PUT", "/v1/items", params=where, json={"path": ["maps"], "key": key, "value": {"of": "Porto"}})
        await ok("PUT", f"/v1/blocks/{key}", params=where, json={"value": "Fia has maps."})
        await ok("POST", "/v1/procedures", json={"when_to_use": f"maps are {key}", "steps": ["look"], **where})
        await ok("POST", "/v1/tools/memory", json={"tool": f"look-{key}", "arguments": {}, **where})
    await ok("PUT", "/v1/extraction-rules", params=where, json={"instructions": "Keep maps."})
    before = (await home.http.post("/v1/users/fia/export")).content
    (tmp_path / "fia.jsonl").write_bytes(before)
    words = ["import", str(tmp_path / "fia.jsonl"), "--user", "fio", "--source", "a-copy"]
    for _ in range(2):
        copy, code = await home.run(*words)
        assert (code, copy["problems"]) == (0, [])
    theirs = {"user_id": "fio", "namespace": "n"}
    await ok("PUT", "/v1/items", params=theirs, json={"path": ["maps"], "key": "kept", "value": {"of": "Faro"}})
    await ok("PATCH", "/v1/blocks/kept", params=theirs, json={"operation": "append", "content": "New."})
    procedures = (await ok("GET", "/v1/procedures", params=theirs))["procedures"]
    (kept,) = [each["id"] for each in procedures if each["when_to_use"] == "maps are kept"]
    await ok("PATCH", f"/v1/procedures/{kept}", json={"steps": ["look twice"]})
    await ok("POST", "/v1/tools/memory", json={"tool": "look-kept", "arguments": {}, **theirs})

    expected = {"files": 1, "items": 1, "blocks": 1, "procedures": 1, "tools": 1, "rules": 1}
    for dry in (["--dry-run"], []):
        undone, _ = await home.run("import", "--undo", "a-copy", *dry)
        assert {name: undone["counts"].get(name) for name in expected} == expected
    left = [json.loads(line) for line in (await home.http.post("/v1/users/fio/export")).text.splitlines()]
    assert sorted(line["kind"] for line in left[1:-1]) == ["block", "item", "procedure", "tool_memory"], left
    now = (await home.http.post("/v1/users/fia/export")).text
    first, second = (sorted(json.loads(line)["kind"] for line in text.splitlines()) for text in (before.decode(), now))
    assert first == second, "the data of the copied user stays"


async def test_undo_for_one_user_leaves_the_import_of_the_others(home: Home, tmp_path: Path) -> None:
    files = write_all(tmp_path)["mem0"]
    first = await home.move_in("mem0", files)
    (gone,) = [memory["id"] for memory in await home.memories(user_id="ada")][:1]
    (await home.http.delete("/v1/long-term-memory", params={"memory_ids": [gone]})).raise_for_status()
    ada = {memory["id"] for memory in await home.memories(user_id="ada")}
    await home.run("import", "--undo", first["name"], "--user", "bo")
    assert (await home.memories(user_id="bo"), {memory["id"] for memory in await home.memories(user_id="ada")}) == ([], ada)
    again = await home.move_in("mem0", files)
    assert (again["imported"]["memory"], again["problems"]) == (2, [])
    assert {memory["id"] for memory in await home.memories(user_id="ada")} == ada, "what was deleted here is not restored"
    await home.run("import", "--undo", first["name"])
    assert await home.memories() == []


async def test_repeated_import_does_not_restore_data_deleted_here(home: Home, tmp_path: Path) -> None:
    files = write_all(tmp_path)
    name = (await home.move_in("chatgpt", files["chatgpt"], "--source", "resumed"))["name"]
    first = (await home.move_in("mem0", files["mem0"], "--source", "resumed"))["imported"]
    gone = (await home.memories(user_id="bo"))[0]["id"]
    (await home.http.delete("/v1/long-term-memory", params={"memory_ids": [gone]})).raise_for_status()
    (await home.http.delete("/v1/working-memory/conv-1", params={"user_id": "gita"})).raise_for_status()
    for system in ("mem0", "chatgpt"):
        again = await home.move_in(system, files[system], "--source", "resumed")
        assert (again["imported"], again["problems"]) == ({}, []), system
    assert (await home.move_in("mem0", files["mem0"], "--source", "resumed"))["present"] == first
    assert gone not in {memory["id"] for memory in await home.memories(user_id="bo")}
    assert await home.session("conv-1", "gita") is None
    # Lines of another tenant, user or import are not mistaken for these, and an undo deletes the record of their import.
    other = await home.run("import", "--from", "chatgpt", str(files["chatgpt"][0]), "--user", "gil", "--source", "resumed")
    assert other[0]["imported"]["session"] > 0
    await home.run("import", "--undo", name)
    restored = await home.move_in("mem0", files["mem0"], "--source", "resumed")
    assert restored["imported"] == first
    await home.run("import", "--undo", name)


async def test_repeated_import_of_undated_records_ignores_the_time_of_the_file(home: Home, tmp_path: Path) -> None:
    rows = [{"text": f"Hal keeps {pet}.", "user_id": "hal"} for pet in ("a cat", "a dog")]
    rows += [{**rows[0], "text": f"I keep bees in hive {n} by the river.", "role": "user", "session_id": f"s{n % 2}"} for n in range(4)]
    note = tmp_path / "notes" / "n.md"
    note.parent.mkdir()
    note.write_text("- [pet] Hal keeps a goat.\n")
    table = tmp_path / "rows.jsonl"
    table.write_text("\n".join(map(json.dumps, rows)))
    files = {"table": table, "basic-memory": note.parent}
    for system, file in files.items():
        await home.move_in(system, [file], "--user", "hal")
    assert [len((await home.session(name, "hal") or {})["messages"]) for name in ("s0", "s1")] == [2, 2]
    gone = [memory["id"] for memory in await home.memories(user_id="hal")]
    assert len(gone) == 7
    (await home.http.delete("/v1/long-term-memory", params={"memory_ids": gone[1:]})).raise_for_status()
    for path in (table, note, note.parent):
        os.utime(path, (BASE, BASE))
    for system, file in files.items():
        again = await home.move_in(system, [file], "--user", "hal")
        assert (again["imported"], again["problems"]) == ({}, [])
    assert [memory["id"] for memory in await home.memories(user_id="hal")] == gone[:1]


async def test_later_export_adds_only_new_messages(home: Home, tmp_path: Path) -> None:
    talk = chatgpt_conversation()
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([talk]))
    await home.move_in("chatgpt", [file])
    talk["mapping"]["a2"]["children"] = ["q3"]
    talk["mapping"]["q3"] = node("q3", "a2", "user", "In Porto I will keep goats instead of bees.", BASE + 20)
    file.write_text(json.dumps([talk | {"current_node": "q3"}]))
    report = await home.move_in("chatgpt", [file])
    assert (report["imported"], report["present"], report["problems"]) == ({"memory": 1, "session": 1}, {"memory": 4}, [])
    session = await home.session("conv-1", "gita")
    assert session is not None
    assert [message["content"] for message in session["messages"]][4:] == ["In Porto I will keep goats instead of bees."]
    again = await home.move_in("chatgpt", [file])
    assert (again["imported"], again["problems"]) == ({}, [])


async def test_two_users_can_import_the_same_file_independently(home: Home, tmp_path: Path) -> None:
    files = write_all(tmp_path)["basic-memory"]
    first = (await home.run("import", "--from", "basic-memory", *map(str, files), "--user", "ann"))[0]
    second = (await home.run("import", "--from", "basic-memory", *map(str, files), "--user", "ben"))[0]
    assert first["imported"] == second["imported"]
    assert second["problems"] == []
    await home.run("import", "--undo", first["name"])
    assert await home.memories(user_id="ann") == []
    assert len(await home.memories(user_id="ben")) == 3


async def test_forget_requests_in_imported_messages_delete_nothing(home: Home, tmp_path: Path) -> None:
    own = {"id": "own-2", "text": "Fay lives in Faro.", "user_id": "fay", "memory_type": "semantic"}
    (await home.http.post("/v1/long-term-memory/", json={"memories": [own]})).raise_for_status()
    said = ["I planted an olive tree behind the house.", "Forget that I live in Faro."]
    rows = [{"id": f"q{n}", "text": text, "user_id": "fay", "role": "user", "session_id": "old"} for n, text in enumerate(said)]
    (tmp_path / "old.jsonl").write_text("\n".join(map(json.dumps, rows)))
    report = await home.move_in("table", [tmp_path / "old.jsonl"], "--extract")
    assert report["imported"]["session"] == 1
    status = await home.http.post(
        "/v1/working-memory/later/messages?wait=searchable",
        json={"messages": [{"role": "user", "content": "My olive tree grows."}], "user_id": "fay"},
    )
    status.raise_for_status()
    assert "own-2" in {memory["id"] for memory in await home.memories(user_id="fay")}


async def test_killed_import_is_finished_by_the_same_command(home: Home, tmp_path: Path) -> None:
    import subprocess

    from tests.support.cli import COMMAND, clean_environment

    count = 1_200
    rows = (
        {"id": f"k{n}", "text": f"Crate {n} holds {n * 7} apples.", "user_id": "kit", "created_at": "2025-05-05T10:00:00Z"}
        for n in range(count)
    )
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = [*COMMAND, "import", "--from", "table", str(tmp_path / "many.jsonl"), "--url", home.url]
    process = await asyncio.to_thread(
        subprocess.Popen, words, env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    async def stored() -> int:
        body = {"text": "", "user_id": {"eq": "kit"}, "limit": 1}
        return (await home.http.post("/v1/long-term-memory/search", json=body)).json()["total"]

    async def begun() -> bool:
        return await stored() > 0

    await wait_until(begun, "the first line of the import", seconds=120)
    process.kill()
    await asyncio.to_thread(process.wait)
    report = await home.move_in("table", [tmp_path / "many.jsonl"])
    assert report["imported"].get("memory", 0) + report["present"]["memory"] == count
    assert report["present"]["memory"] > 0
    assert await stored() == count
    await home.run("import", "--undo", report["name"])

    async def gone() -> bool:
        return await stored() == 0

    await wait_until(gone, "the end of the undo", seconds=120)


async def test_unknown_systems_and_wrong_files_are_refused_in_one_line(home: Home, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("hello")
    for line, reason in {
        f"import --from nothing {tmp_path}/x.json": "is unknown",
        f"import --from mem0 {tmp_path}/x.json": "neither JSON nor JSON Lines",
        f"import --from mem0 {tmp_path}/missing.json": "cannot read",
        "import": "name one FILE",
        f"import --from table {tmp_path}/x.json --map wrong=1": "is unknown",
    }.items():
        result = await asyncio.to_thread(CliRunner().invoke, app, [*shlex.split(line), "--url", home.url])
        assert result.exit_code != 0, line
        assert reason in str(result.exception) + result.output, line


def test_migrate_prompt_prints_an_instruction() -> None:
    result = CliRunner().invoke(app, ["migrate-prompt"])
    assert result.exit_code == 0
    for word in ("Mem0", "Zep", "Letta", "Archived server", "agent-memory import --from"):
        assert word in result.stdout
    assert [line for line in result.stdout.splitlines() if len(line) > 100] == []


async def test_mem0_stores_are_imported_from_qdrant_chroma_dump_and_history(home: Home) -> None:
    qdrant = await home.move_in("mem0", [DATA / "mem0_qdrant"])
    assert qdrant["imported"] == {"memory": 4}
    dump = await home.move_in("mem0", [DATA / "mem0.json"])
    assert dump["present"] == {"memory": 4}, "a store and its dump are the same memories"
    chroma = await home.move_in("mem0", [DATA / "mem0_chroma"], "--namespace", "chroma")
    assert chroma["imported"] == {"memory": 4}
    history = await home.move_in("mem0", [DATA / "mem0_history.db"], "--user", "hal")
    assert history["imported"] == {"memory": 4}
    assert "mornings" not in json.dumps(await home.memories(user_id="hal")), "deleted there"
