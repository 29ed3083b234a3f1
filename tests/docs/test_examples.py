"""Test that `examples/` programs report missing packages and that the extension checks access."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from runpy import run_path

import pytest

from agent_memory.features.jobs.order_store import OrderStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import Forbidden
from agent_memory.foundation.storage.connection import connect
from agent_memory.foundation.storage.erasures import ErasureGuard
from agent_memory.foundation.storage.keyspace import Keys
from tests.docs.pages import blocks
from tests.support.cli import ROOT, clean_environment

PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
README = (ROOT / "examples" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_example_names_its_install_line_when_a_package_is_missing(program: Path) -> None:
    tree = ast.parse(program.read_text("utf-8"))
    first = next(node for node in tree.body if isinstance(node, ast.Try)).body[0]
    name = first.names[0].name if isinstance(first, ast.Import) else getattr(first, "module", "")
    package = name.partition(".")[0]
    code = f"import runpy, sys; sys.modules[{package!r}] = None; runpy.run_path({str(program)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=clean_environment())
    said = re.fullmatch(rf"{package}\S* is missing: (pip install \S.*)\n", done.stderr)
    assert (done.returncode, said is not None) == (1, True), done.stderr
    assert said is not None
    assert said[1] in (ast.get_docstring(tree) or ""), "its first lines name it as well"
    assert said[1] in README


def test_extension_page_shows_parts_of_the_example() -> None:
    package = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "examples" / "extension").glob("*.*")))
    parts = ("[project.", "FEATURE = ")
    shown = [block.text for block in blocks("text") if block.page.name == "extending.md" and block.text.startswith(parts)]
    assert len(shown) == 3
    assert [text for text in shown if text not in package] == []


async def test_extension_stores_nothing_for_a_caller_that_may_not_order_its_job(redis_url: str) -> None:
    example = run_path(str(ROOT / "examples" / "extension" / "nickname.py"))
    client, keys, scope = connect(redis_url, pool_size=2, command_timeout=30), Keys("nicknames"), scope_of_work("default")
    nicknames = example["Nicknames"](client, keys.root, ErasureGuard(client, keys), 80)
    services = {example["Nicknames"]: nicknames, OrderStore: OrderStore(client, keys)}
    with pytest.raises(Forbidden):
        await example["put_nickname"](services, replace(scope, agents=frozenset({"a"})), "Ann", "ana", None)
    assert await nicknames.load(scope, None, "ana") is None
    await example["put_nickname"](services, scope, "Ann", "ana", None)
    assert await nicknames.load(scope, None, "ana") == "Ann"
    await client.aclose()
