"""Test that the walkthroughs on the architecture page are short and name existing functions."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.support.cli import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
STEP = re.compile(r"^\d+\. `([\w.]+)`\s+\(`((?:features|foundation|interfaces|extensions|agent_memory_worker)/[\w/]+)\.py`\)", re.MULTILINE)
# Maximum number of functions and modules in a walk.
LIMITS = {"a created memory": (20, 10), "from an appended message to its memory": (30, 12), "a prompt's query": (25, 12)}


def walk(name: str) -> list[tuple[str, str]]:
    section = PAGE.partition(f"## Walk: {name}\n")[2].partition("\n## ")[0]
    return [(module, function) for function, module in STEP.findall(section)]


@pytest.mark.parametrize("name", LIMITS)
def test_every_step_of_a_walk_exists(name: str) -> None:
    steps = walk(name)
    assert len(steps) >= 9
    for module, function in steps:
        package = module if module.startswith("agent_memory_worker") else f"agent_memory/{module}"
        found = import_module(package.replace("/", "."))
        for part in function.split("."):
            found = getattr(found, part)
        assert callable(found), function


@pytest.mark.parametrize("name", LIMITS)
def test_walks_of_the_architecture_page_are_short(name: str) -> None:
    functions, modules = LIMITS[name]
    steps = walk(name)
    assert len(set(steps)) <= functions
    assert len({module for module, _ in steps}) <= modules


def test_architecture_page_fits_on_two_screens() -> None:
    assert len(PAGE.split()) <= 900
