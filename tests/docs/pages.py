"""Parse the documentation pages, their fenced blocks and their links."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.cli import ROOT

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "tests" / "README.md",
    ROOT / "client-ts" / "README.md",
]
MARKDOWN = [ROOT / name for name in subprocess.check_output(("git", "ls-files", "*.md"), cwd=ROOT, text=True).splitlines()]
"""All Markdown files of the repository, also those without programs or commands to run."""
BASE_URL = "http://127.0.0.1:8000"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block with its language, text and first line."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    """Return all blocks in these languages."""
    found: list[Block] = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in _FENCE.finditer(text):
            if match[1] in languages:
                found.append(Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2]))
    return found


def commands(block: Block) -> list[str]:
    """Return a shell block's commands, without comments and with continued lines joined."""
    joined = block.text.replace("\\\n", " ")
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def links(page: Path) -> list[str]:
    return _LINK.findall(_FENCE.sub("", page.read_text("utf-8")))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
