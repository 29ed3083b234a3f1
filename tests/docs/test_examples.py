"""Test that programs in `examples/` report in one sentence which package is missing and how to install it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    shown = [block.text for block in blocks("text") if block.page.name == "extending.md" and "pip install" not in block.text]
    assert len(shown) > 5
    assert [text for text in shown if text not in package] == []
