"""Test import sources with hostile and huge files, but no server.

Each bad record is reported, and none stops the import.
"""

from __future__ import annotations

import json
import pickle
import resource
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from agent_memory.features.transfer.sources.moving import Moving
from agent_memory.features.transfer.sources.order import SOURCES, MoveIn
from agent_memory.foundation.core.errors import StartupError
from tests.features.transfer.exports import chatgpt_conversation, claude_conversation, letta_agent, write_all


def moved(source: str, *files: Path, **options: Any) -> tuple[dict[str, int], dict[str, int], list[dict[str, Any]]]:
    """Read a source. Return counts by kind, counts of skipped records by reason, and all lines."""
    with Moving(MoveIn(source, files, **{"user_id": "u", **options})) as moving:
        for _ in moving.read():
            pass
        lines = [json.loads(line) for owner in moving.owners for line in moving.lines(owner)]
        return dict(moving.counts), dict(moving.left_out.counts), lines


def written(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


WRONG: list[Any] = [None, True, 0, -1.5, 10**400, "", "x", "\ud800", "\x00", [], [[]], {}, {"a": None}, [None], "9" * 70_000]


def broken(value: Any) -> Iterator[Any]:
    """Yield copies of a value in which one part, at any depth, is wrong or missing."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield {other: kept for other, kept in value.items() if other != key}
            yield from ({**value, key: wrong} for wrong in (*WRONG, *broken(part)))
    elif isinstance(value, list):
        for at, part in enumerate(value[:3]):
            yield from ([*value[:at], wrong, *value[at + 1 :]] for wrong in (*WRONG, *broken(part)))


@pytest.mark.parametrize("source", [name for name in SOURCES if name not in ("basic-memory", "letta")])
def test_broken_records_are_reported_and_the_rest_is_kept(source: str, tmp_path: Path) -> None:
    whole = {"chatgpt": chatgpt_conversation(), "claude": claude_conversation()}.get(source)
    if whole is None:
        first = next(path for path in write_all(tmp_path)[source] if path.exists())
        if source == "langgraph":
            first = first.with_suffix(".json")
        text = first.read_text()
        loaded = json.loads(text) if source != "table" else [json.loads(text.splitlines()[0])]
        whole = next(iter(loaded.values()))[0] if isinstance(loaded, dict) else loaded[0]
    records = [*broken(whole), *WRONG]
    good = json.dumps(whole)
    path = tmp_path / "hostile.jsonl"
    with path.open("w") as file:
        for record in records:
            try:
                file.write(json.dumps(record) + "\n")
            except ValueError:  # The number has too many digits.
                continue
        file.write('{"deep": ' + "[" * 5_000 + "]" * 5_000 + "}\n{broken\n\n" + good + "\n")
    first_line = '{"id": "first", "uuid": "first", "text": "first", "memory": "first"}'
    path.write_text(first_line + "\n" + path.read_text())
    counts, left_out, lines = moved(source, path)
    assert sum(left_out.values()) > 50
    assert counts.get("memory", 0) > 0
    assert "is not JSON" in left_out
    assert all(len(json.dumps(line)) < 2_000_000 for line in lines)


def test_broken_letta_files_are_refused_or_reported(tmp_path: Path) -> None:
    for number, value in enumerate(broken(letta_agent())):
        try:
            text = json.dumps(value)
        except ValueError:
            continue
        if number % 7:
            continue
        with suppress(StartupError):  # A file without agents is refused.
            moved("letta", written(tmp_path / "x.af", text))


def test_chatgpt_conversations_with_cycles_or_missing_parents_are_reported(tmp_path: Path) -> None:
    circle, orphan, lost = chatgpt_conversation("c1"), chatgpt_conversation("c2"), chatgpt_conversation("c3")
    circle["mapping"]["root"]["parent"] = "a2"
    orphan["mapping"]["a1"]["parent"] = "nowhere"
    lost["current_node"] = "nowhere"
    counts, left_out, lines = moved("chatgpt", written(tmp_path / "conversations.json", [circle, orphan, lost]))
    assert left_out["its messages form a circle"] == 1
    assert left_out["a message of the current branch is missing"] == 1
    assert counts["session"] == 1, "without a current node, the newest branch is taken"
    assert "Porto" in json.dumps(lines)


@pytest.mark.parametrize("position", ["--1", "²", "last", "-"])
def test_non_numeric_user_position_is_refused(position: str, tmp_path: Path) -> None:
    path = written(tmp_path / "store.json", [{"namespace": ["app", "ana"], "key": "k", "value": {"text": "Ana rows"}}])
    with pytest.raises(StartupError, match="position in the namespace"):
        moved("langgraph", path, mapping={"user": position})


def test_message_with_only_a_speakers_name_keeps_its_text(tmp_path: Path) -> None:
    _, _, lines = moved("zep", written(tmp_path / "episodes.json", [{"uuid": "e1", "source": "message", "content": "User:"}]))
    assert "User:" in json.dumps(lines)


def test_truncated_file_keeps_the_records_before_the_break(tmp_path: Path) -> None:
    text = json.dumps([chatgpt_conversation(f"c{n}") for n in range(3)])
    counts, left_out, _ = moved("chatgpt", written(tmp_path / "conversations.json", text[: len(text) * 5 // 6]))
    assert counts["session"] == 2
    assert left_out["the file is not valid JSON from here on"] == 1


def test_zip_bombs_and_broken_archives_are_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("conversations.json", "w") as member:
        for _ in range(64):
            member.write(b" " * 1024 * 1024)
    with pytest.raises(StartupError, match="packed more than 100-fold"):
        moved("chatgpt", bomb)
    many = tmp_path / "many.zip"
    with zipfile.ZipFile(many, "w") as archive:
        for number in range(1_001):
            archive.writestr(f"conversations-{number}.json", "[]")
    with pytest.raises(StartupError, match="more than 1000 files"):
        moved("claude", many)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("users.json", "[]")
    with pytest.raises(StartupError, match="contains no file conversations"):
        moved("claude", tmp_path / "other.zip")


def test_endless_record_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_memory.features.transfer.sources.reading.MAX_RECORD", 100_000)
    monkeypatch.setattr("agent_memory.features.transfer.sources.reading._FIRST_LINE", 50)
    good, endless = json.dumps({"id": "1", "memory": "Good to know."}), json.dumps({"id": "2", "memory": "x" * 900_000})
    counts, left_out, _ = moved("mem0", written(tmp_path / "a.json", f"[{good}, {endless}, {good}]"))
    assert counts == {"memory": 1}
    assert any("the rest of the file was not read" in reason for reason in left_out)
    lines = written(tmp_path / "a.jsonl", "\n".join([good, endless, good.replace("1", "3")]))
    monkeypatch.setattr("agent_memory.features.transfer.sources.reading._FIRST_LINE", 1_000)
    counts, left_out, _ = moved("mem0", lines)
    assert counts == {"memory": 2}
    assert len(left_out) == 1


class _Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Path.touch, (Path("/tmp/am-import-was-run"),)


def test_pickles_in_a_qdrant_folder_run_no_code(tmp_path: Path) -> None:
    folder = tmp_path / "collection" / "mem0"
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "storage.sqlite") as database:
        database.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        points = [pickle.dumps(_Evil()), pickle.dumps([1]), b"junk", pickle.dumps(subprocess.Popen)]
        database.executemany("INSERT INTO points VALUES (?, ?)", enumerate(points))
    database.close()
    counts, left_out, _ = moved("mem0", tmp_path)
    assert (counts, left_out) == ({}, {"is not a point of a Qdrant store": 4})
    assert not Path("/tmp/am-import-was-run").exists()


def test_notes_outside_the_folder_or_with_yaml_anchors_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("A secret of the machine.")
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "link.md").symlink_to(tmp_path / "secret.md")
    (notes / "bomb.md").write_text("---\na: &a [x]\nb: [*a, *a]\n---\nText of a bomb.")
    (notes / "wrong.md").write_text("---\n: : :\n- [\n---\nText of a wrong note.")
    (notes / "good.md").write_text("---\ntags: a, b\ncreated: 2025-01-01\n---\nAda keeps sheep on the hill.")
    counts, left_out, lines = moved("basic-memory", notes)
    assert counts == {"memory": 1}
    assert sum(left_out.values()) == 3
    assert "secret" not in json.dumps(lines)


def test_huge_export_takes_little_memory(tmp_path: Path) -> None:
    """A separate process reads 120 MB. Its memory grows by less than the file size."""
    path = tmp_path / "conversations.json"
    one = json.dumps(chatgpt_conversation("NAME") | {"padding": "x" * 100_000})
    with path.open("w") as file:
        file.write("[" + ",".join(one.replace("NAME", f"c{n}") for n in range(1_200)) + "]")
    assert path.stat().st_size > 120_000_000
    program = (
        "import resource, sys; from pathlib import Path\n"
        "from agent_memory.features.transfer.sources.moving import Moving\n"
        "from agent_memory.features.transfer.sources.order import MoveIn\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "with Moving(MoveIn('chatgpt', [Path(sys.argv[1])], 'u')) as moving:\n"
        "    for _ in moving.read(): pass\n"
        "    print(moving.counts['session'], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    sessions, grown = map(int, done.stdout.split())
    assert sessions == 1_200
    assert grown < 60_000, f"{grown} KB"
    assert resource.RUSAGE_SELF == 0


def test_interrupted_import_closes_its_lines_without_an_error(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("text\nAda keeps bees.\nAda sails.\n")
    with Moving(MoveIn("table", [tmp_path / "table.csv"], "u")) as moving:
        list(moving.read())
        lines = moving.lines(moving.owners[0])
        assert moving.size > len(next(lines) + next(lines)) / 2
    lines.close()  # pyright: ignore[reportAttributeAccessIssue]


def test_large_conversations_become_several_sessions(tmp_path: Path) -> None:
    rows = [{"id": f"m{n}", "text": f"Word {n} of a long talk.", "role": "user", "session_id": "a/b", "user_id": "u"} for n in range(1_100)]
    counts, left_out, lines = moved("table", written(tmp_path / "t.jsonl", "\n".join(map(json.dumps, rows))))
    assert (counts["session"], left_out) == (3, {})
    sessions = [line for line in lines if line["kind"] == "session"]
    assert [session["session_id"] for session in sessions] == ["a:b", "a:b~2", "a:b~3"]
    assert [len(session["messages"]) for session in sessions] == [500, 500, 100]


def test_import_lines_are_deterministic_and_ordered_by_time(tmp_path: Path) -> None:
    for source, files in write_all(tmp_path).items():
        first, second = (moved(source, *files)[2] for _ in range(2))
        for line in (*first, *second):
            line.get("now", {}).get("marks", {}).pop("ra", None)
        assert first == second, source
        dated = [line["now"]["record"]["created_at"] for line in first if line["kind"] == "memory"]
        assert dated == sorted(dated), source


def test_one_line_file_with_nested_lists_is_read_like_an_indented_one(tmp_path: Path) -> None:
    profile = {"id": "p1", "content": "Ada", "attributes": {"topic": "basic_info", "sub_topic": "name"}}
    event = {"id": "e1", "event_data": {"event_tip": "Ada moved to Porto."}}
    answer = {"data": {"profiles": [profile], "events": [event]}, "errno": 0}
    one_line = moved("memobase", written(tmp_path / "a.json", json.dumps(answer) + "\n"))
    assert one_line[:2] == moved("memobase", written(tmp_path / "b.json", json.dumps(answer, indent=1)))[:2] == ({"memory": 2}, {})


@pytest.mark.parametrize("source", ["table", "zep"])
def test_messages_listed_newest_first_become_a_conversation_with_the_oldest_first(source: str, tmp_path: Path) -> None:
    days = [4, 3, 3, 1]  # Messages with the same time keep the order in which they were said.
    key, talk = ("text", "session_id") if source == "table" else ("content", "thread_id")
    texts = [f"Message {n} of a talk." for n in (4, 3, 2, 1)]
    common = {"role": "user", "user_id": "u", talk: "s"}
    rows = [
        {key: text, "id": text, "uuid": text, "created_at": f"2026-01-0{day}T00:00:00Z", **common}
        for text, day in zip(texts, days, strict=True)
    ]

    def session(messages: list[dict[str, Any]]) -> dict[str, Any]:
        lines = moved(source, written(tmp_path / "t.json", {"messages" if source == "zep" else "items": messages}))[2]
        return next(line for line in lines if line["kind"] == "session")

    newest_first = session(rows)
    assert [message["content"] for message in newest_first["messages"]] == texts[::-1]
    assert newest_first["created_at"][:10] == "2026-01-01"
    assert session(rows[::-1]) == newest_first
    undated = session([*rows[:2], {**rows[2], "created_at": None}, rows[3]])
    assert [message["content"] for message in undated["messages"]] == texts, "without all times, the file's order is kept"


def test_spoken_chatgpt_messages_keep_their_transcription(tmp_path: Path) -> None:
    spoken = [
        {"content_type": "audio_transcription", "text": "My sister is called Ana.", "direction": "in"},
        {"content_type": "real_time_user_audio_video_asset_pointer", "audio_asset_pointer": {"asset_pointer": "x"}},
    ]
    conversation = chatgpt_conversation()
    conversation["mapping"]["q1"]["message"]["content"] = {"content_type": "multimodal_text", "parts": [*spoken, "And I keep bees."]}
    conversation["mapping"]["a1"]["message"]["content"] = {"content_type": "multimodal_text", "parts": spoken[1:]}
    _, left_out, lines = moved("chatgpt", written(tmp_path / "conversations.json", [conversation]))
    (session,) = [line for line in lines if line["kind"] == "session"]
    assert session["messages"][0]["content"] == "My sister is called Ana.\n\nAnd I keep bees."
    assert left_out["a picture or file without text"] == 1


LATIN = "café".encode("latin-1")


@pytest.mark.parametrize(
    ("source", "name", "raw"),
    [
        ("table", "t.csv", b"id,text\n1," + LATIN + b"\n"),
        ("table", "t.jsonl", b'{"text": "bees"}\n{"text": "' + LATIN + b'"}\n'),
        ("table", "t.json", b'[{"text": "' + LATIN + b'"}]'),
        ("table", "t.json", json.dumps([{"text": "bees"}]).encode("utf-16")),
        ("letta", "x.af", b'{"agents": "' + LATIN + b'"}'),
    ],
)
def test_file_that_is_not_utf8_is_refused(source: str, name: str, raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(raw)
    with pytest.raises(StartupError, match=f"{name} is not UTF-8: save it as UTF-8"):
        moved(source, path)


def test_key_with_half_a_character_does_not_refuse_the_file(tmp_path: Path) -> None:
    counts, left_out, _ = moved("table", written(tmp_path / "t.json", '[{"text": "bees"}, {"\\udc00": 1}]'))
    assert (counts, left_out) == ({"memory": 1}, {"the file is not valid JSON from here on": 1})


def test_note_that_is_not_utf8_is_left_out_and_others_are_kept(tmp_path: Path) -> None:
    (tmp_path / "latin.md").write_bytes(b"Ada likes the " + LATIN)
    (tmp_path / "marked.md").write_text("Ada likes the café", "utf-8-sig")
    counts, left_out, lines = moved("basic-memory", tmp_path)
    assert (counts, left_out) == ({"memory": 1}, {"is not UTF-8: save it as UTF-8": 1})
    assert "the café" in lines[1]["now"]["record"]["text"]


def test_database_with_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = langgraph_store(tmp_path / "store.sqlite", ("k", b'{"text":"ok"}', None))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE store SET prefix = CAST(? AS TEXT)", (b"memories." + LATIN,))
    with pytest.raises(StartupError, match=r"store\.sqlite contains text that is not UTF-8"):
        moved("langgraph", path)


def langgraph_store(path: Path, *items: tuple[str, bytes, str | None]) -> Path:
    """Write a LangGraph store whose items have a key, a value and an expiry time."""
    columns = "prefix text, key text, value text, created_at TIMESTAMP, updated_at TIMESTAMP, expires_at TIMESTAMP, ttl_minutes REAL"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"CREATE TABLE store ({columns})")
        at = "2026-01-01 10:00:00"
        rows = [("memories.ada", key, value, at, at, expires, 60) for key, value, expires in items]
        database.executemany("INSERT INTO store VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    return path


def test_expired_langgraph_items_are_left_out_and_others_keep_their_expiry(tmp_path: Path) -> None:
    items = [
        ("k1", b'{"text":"Ada keeps bees"}', None),
        ("k2", b'{"text":"Ada has a short-lived PIN"}', "2026-01-01 11:00:00"),
        ("k3", b'{"text":"Ada has a long-lived PIN"}', "2999-01-01 11:00:00"),
    ]
    _, left_out, lines = moved("langgraph", langgraph_store(tmp_path / "store.sqlite", *items))
    records = {line["now"]["record"]["text"]: line["now"]["record"].get("expires_at") for line in lines[1:]}
    assert records == {"Ada keeps bees": None, "Ada has a long-lived PIN": "2999-01-01T11:00:00+00:00"}
    assert left_out == {"expired": 1}


def test_langgraph_store_without_an_expiry_column_is_read(tmp_path: Path) -> None:
    path = langgraph_store(tmp_path / "store.sqlite", ("k1", b'{"text":"Ada keeps bees"}', None))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("ALTER TABLE store DROP COLUMN expires_at")
    assert moved("langgraph", path)[:2] == ({"memory": 1}, {})


def test_supermemory_entries_keep_the_time_when_they_are_forgotten(tmp_path: Path) -> None:
    entries = [
        {"id": "1", "memory": "Ada's exam is over", "forgetAfter": "2026-01-01T00:00:00Z"},
        {"id": "2", "memory": "Ada rents a boat", "forgetAfter": "2999-01-01T00:00:00Z"},
    ]
    _, left_out, lines = moved("supermemory", written(tmp_path / "m.json", {"memoryEntries": entries}))
    assert [line["now"]["record"]["expires_at"][:4] for line in lines[1:]] == ["2999"]
    assert left_out == {"expired": 1}
