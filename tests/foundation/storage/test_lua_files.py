"""Test that Redis accepts every `.lua` file.

The tests also check that each file is used, gets its declared arguments, and needs no part from a
higher layer.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from agent_memory.foundation.storage.connection import connect
from agent_memory.foundation.storage.keyspace import Keys, SessionKeys
from agent_memory.foundation.storage.lua_files import Argument, load
from tests.support.rig import MakeRig
from tests.support.shared.lua import LUA_FILES, SCRIPTS, required_parts

ROOT = Path(__file__).parents[3]
OUTBOX = {"due", "tries", "reasons", "dead"}
# Calls of these scripts pass an object with the names of keys.
WITH_KEYS = ("blocks/", "items/", "profile/", "timeline/", "storage/due_")
SESSION = {field.name for field in fields(SessionKeys)}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_redis_accepts_every_script(redis_url: str, name: str) -> None:
    client = connect(redis_url, pool_size=1, command_timeout=30)
    try:
        script = load(name)
        assert await client.script_load(script.source) == client.register_script(script.source).sha
    finally:
        await client.aclose()


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_uses_its_declared_arguments(name: str) -> None:
    script = load(name)
    body = script.source.split("\n", 1 + len(script.keys) + len(script.args))[-1]
    words = set(_words(body))
    unused = {argument.name for argument in (*script.keys, *script.args) if not {argument.name, f"{argument.name}_at"} & words}
    # A key only determines the slot in which the script runs. The same call deletes profiles and timelines.
    assert unused <= {"any", "config"} | ({"rebuilds"} if name == "timeline/timeline_clear" else set())


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()


def test_every_lua_file_is_used() -> None:
    run = {name for name, _, _ in _calls()} | _named()
    assert run == set(SCRIPTS)
    used: set[str] = set()
    waiting = list(SCRIPTS)
    while waiting:
        parts = [part for part in required_parts(waiting.pop()) if part not in used]
        used |= set(parts)
        waiting += parts
    assert used == set(LUA_FILES) - set(SCRIPTS)


def test_every_script_call_passes_the_declared_arguments() -> None:
    seen: set[str] = set()
    for name, passed, complete in _calls():
        script = load(name)
        declared = {argument.name for argument in (*script.keys, *script.args)}
        assert passed <= declared, name
        if complete and not name.startswith(WITH_KEYS):
            assert passed == declared, name
            seen.add(name)
    # The other calls pass mappings or objects, whose contents the source does not show. Missing arguments raise TypeError at the call.
    assert len(seen) >= len(SCRIPTS) // 3


def _trees() -> Iterator[ast.Module]:
    for path in sorted((ROOT / "agent_memory").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "Script(" in text or "load(" in text:
            yield ast.parse(text)


def _script_of(node: ast.expr) -> str | None:
    """Return the script name in `Script(client, "a/b")` or `load("a/b")`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Script", "load"):
        return next((arg.value for arg in node.args if isinstance(arg, ast.Constant) and arg.value in LUA_FILES), None)
    return None


def _named() -> set[str]:
    return {name for tree in _trees() for node in ast.walk(tree) if isinstance(node, ast.expr) and (name := _script_of(node))}


def _calls() -> Iterator[tuple[str, set[str], bool]]:
    """Yield each script call's script, argument names, and whether those are complete."""
    for tree in _trees():
        names: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and (name := _script_of(node.value)):
                names[ast.unparse(node.targets[0])] = name
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            name = _script_of(node.func) or names.get(called) or names.get(called.rpartition(".")[0])
            if name is None:
                continue
            pairs: list[tuple[str | None, ast.expr]] = [(keyword.arg, keyword.value) for keyword in node.keywords]
            for mapping in (found for arg in node.args for found in ast.walk(arg) if isinstance(found, ast.Dict)):
                for key, value in zip(mapping.keys, mapping.values, strict=True):
                    pairs.append((key.value if isinstance(key, ast.Constant) else None, value))
            mappings = [ast.unparse(value) for key, value in pairs if key is None]
            outbox = [text for text in mappings if text.startswith(("outbox_keys(", "self._outbox"))]
            passed = {key for key, _ in pairs if key is not None} | (OUTBOX if outbox else set())
            if any(ast.unparse(arg) == "k" for arg in node.args):
                passed |= SESSION & set(load(name).names)
            # An object whose attributes are arguments: a call with missing ones raises at run time.
            holds = any(isinstance(arg, (ast.Name, ast.Call)) and "keys" in ast.unparse(arg) for arg in node.args)
            yield name, passed, len(outbox) == len(mappings) and not holds


def test_lua_parts_are_required_only_from_lower_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = [
        layer
        for level in ("interfaces", "extensions", "features", "foundation")
        for contract in contracts
        if contract["id"] == level
        for layer in contract["layers"]
    ]
    floor = {module: position for position, layer in enumerate(reversed(layers)) for module in layer.split(" | ")}
    for name in LUA_FILES:
        for part in required_parts(name):
            assert floor[part.partition("/")[0]] <= floor[name.partition("/")[0]], f"{name} requires {part}"


@pytest.mark.parametrize(("given", "named"), [({}, "members"), ({"members": [], "lease": 1}, "lease")])
def test_script_call_with_a_missing_or_extra_argument_is_refused(given: dict[str, object], named: str) -> None:
    arguments = {"due": "d", "tries": "t", "reasons": "r", "dead": "x", "lease_ms": 5, "max_attempts": 8, "never_ended": ""}
    with pytest.raises(TypeError, match=rf"due_begin\.lua .*{named}"):
        load("storage/due_begin").command("EVALSHA", "x", None, arguments | given)


def test_script_arguments_are_passed_in_declaration_order() -> None:
    arguments = {
        "members": ["m", 7],
        "never_ended": "",
        "max_attempts": 8,
        "lease_ms": 5,
        "dead": "x",
        "reasons": "r",
        "tries": "t",
        "due": "d",
    }
    call = load("storage/due_begin").command("EVALSHA", "x", None, arguments)
    assert call == ["EVALSHA", "x", 4, "d", "t", "r", "x", 5, 8, "", "m", 7]
    session = Keys().session("s")
    call = load("sessions/session_data").command("EVALSHA", "x", session, {"guard": {"root": "r"}, "if_match": None, "json": "{}"})
    assert call == ["EVALSHA", "x", 1, session.meta, b'{"root":"r"}', "\0", "{}"]


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        (Argument("limit", "number", ""), "local limit = tonumber(ARGV[3])"),
        (Argument("merge", "flag", ""), "local merge = ARGV[3] == '1'"),
        (Argument("fence", "json", "?"), "local fence = ARGV[3] ~= '\\0' and cjson.decode(ARGV[3]) or nil"),
        (Argument("values", "", "..."), "local values_at = 3"),
    ],
)
def test_declared_argument_becomes_a_lua_local(argument: Argument, line: str) -> None:
    assert argument.local("ARGV", 3) == line


def test_lua_part_cannot_be_loaded_as_a_script() -> None:
    with pytest.raises(ValueError, match=r"storage/clock\.lua is not a script"):
        load("storage/clock")


async def test_flushed_script_is_sent_again(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        await rig.append("s", "before")
        await rig.rt.client.script_flush()
        await rig.append("s", "after")
        assert await rig.contents("s") == ["before", "after"]
