"""Draw the diagrams in the documentation: `python scripts/reference/pictures.py`.

With `--check`, only check that they are up to date. The colors adapt to light and dark mode, and
each diagram has its own background, so that it is readable on any page.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"

_STYLE = """<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1f2328; text-anchor: middle }
text.left { text-anchor: start } text.note { fill: #57606a; font-size: 12px } text.bold { font-weight: 600 }
rect { fill: #f6f8fa; stroke: #d0d7de } rect.page { fill: #fff; stroke: none } rect.frame { fill: none; stroke-dasharray: 4 3 }
rect.store { fill: #ddf4ff; stroke: #54aeff } rect.good { fill: #dafbe1; stroke: #4ac26b } rect.bad { fill: #ffebe9; stroke: #ff8182 }
path { fill: none; stroke: #57606a; stroke-width: 1.5 } marker path { fill: #57606a; stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } text.note { fill: #9198a1 }
rect { fill: #161b22; stroke: #3d444d } rect.page { fill: #0d1117 } rect.frame { fill: none }
rect.store { fill: #0c2d6b; stroke: #1f6feb } rect.good { fill: #12341d; stroke: #2ea043 } rect.bad { fill: #4c1719; stroke: #da3633 }
path { stroke: #9198a1 } marker path { fill: #9198a1 }
}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
<path d="M0 0L8 4L0 8z"/></marker></defs>"""


class Picture:
    """An SVG diagram under construction."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            _STYLE,
            '<rect class="page" width="100%" height="100%" rx="8"/>',
        ]

    def box(self, x: int, y: int, width: int, height: int, *lines: str, kind: str = "") -> None:
        """Add a box with centered lines of text. The first line is bold.

        In a frame, the text is small and at the top.
        """
        self._parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>')
        top = y + (19 if kind == "frame" else height / 2 + 5 - (len(lines) - 1) * 9)
        for number, line in enumerate(lines):
            self.text(x + width / 2, top + number * 18, line, "note" if kind == "frame" else "" if number else "bold")

    def text(self, x: float, y: float, text: str, kind: str = "note") -> None:
        self._parts.append(f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>')

    def arrow(self, path: str, ends: str = "end") -> None:
        """Add a line with arrowheads at `ends`: "start", "end", "start end" or ""."""
        tips = "".join(f' marker-{end}="url(#tip)"' for end in ends.split())
        self._parts.append(f'<path d="{path}"{tips}/>')

    def notes(self, x: float, y: float, *lines: str) -> None:
        """Add centered lines of small text."""
        for number, line in enumerate(lines):
            self.text(x, y + number * 18, line)

    def svg(self) -> str:
        return "\n".join([*self._parts, "</svg>", ""])


def flow() -> Picture:
    picture = Picture(860, 320, "How messages become memories, and return in a prompt")
    picture.box(20, 40, 120, 240, "your agent", "calls HTTP, MCP", "or a client")
    picture.box(210, 60, 150, 66, "append messages", "takes milliseconds")
    picture.box(210, 204, 150, 66, "request a prompt", "one round trip")
    picture.box(420, 16, 180, 288, "Redis", kind="frame")
    stores = (("working memory", "sessions"), ("outbox", "queued work"), ("long-term memory", "text and vectors"))
    for number, lines in enumerate(stores):
        picture.box(435, 44 + number * 88, 150, 66, *lines, kind="store")
    lines = ("turns messages", "into memories,", "embeds memories,", "summarizes sessions,", "extracts facts", "(with a model)")
    picture.box(680, 40, 160, 240, "worker", *lines)
    paths = "M140 93H208 M360 84H433 M510 110V130 M585 165H678 M680 253H587 M680 77H587 M435 253H362 M435 98L362 208"
    for path in re.findall("M[^M]+", paths):
        picture.arrow(path)
    picture.arrow("M208 237H142", "start end")
    picture.text(285, 300, "during the request")
    picture.text(760, 300, "afterwards")
    return picture


def prompt() -> Picture:
    picture = Picture(860, 474, "Sections of a memory prompt, from top to bottom, with their shares of max_tokens")
    y = 36
    for share, names in (
        (10, "blocks, pinned memories *, profile *"),
        (20, "summary of the session"),
        (40, "facts and remembered messages"),
    ):
        picture.box(180, y, 400, share * 35 // 10, names, kind="store")
        picture.text(600, y + share * 35 / 20 + 4, f"{share}%{' or more' if share == 40 else ''}", "left note")
        y += share * 35 // 10
    picture.box(180, y, 400, 35, "procedures *, timeline *", kind="store")
    picture.text(600, y + 21, "10%", "left note")
    picture.box(180, y + 43, 400, 70, "the session's messages", "the newest ones that fit", kind="good")
    picture.text(600, y + 82, "the remaining tokens", "left note")
    picture.box(180, y + 121, 400, 35, "the query")
    picture.text(600, 24, "share of max_tokens", "left note")
    picture.arrow("M168 38H160V313H168", "")
    picture.notes(80, 170, "system message", "(with a format)")
    picture.arrow("M720 38H728V139H720", "")
    picture.notes(792, 74, "rarely changes:", "model providers", "can cache it")
    picture.text(380, 460, "* only if the request asks for it")
    return picture


def machines() -> Picture:
    picture = Picture(860, 292, "Three machines: Redis on one, an API process and a worker on each of the other two")
    picture.box(20, 125, 110, 80, "apps", "and agents")
    picture.box(180, 125, 120, 80, "load balancer", "checks /v1/ready")
    for name, y, height in (("B", 20, 142), ("C", 180, 92)):
        picture.box(360, y, 220, height, f"machine {name}", kind="frame")
        picture.box(376, y + 32, 86, 42, "API")
        picture.box(478, y + 32, 86, 42, "worker")
        picture.arrow(f"M300 {160 if name == 'B' else 170}L374 {y + 53}")
        picture.arrow(f"M580 {y + 53}L666 {130 if name == 'B' else 190}")
    picture.box(478, 110, 86, 36, "replica", kind="store")
    picture.arrow("M668 148L566 130")
    picture.box(652, 84, 188, 148, "machine A", kind="frame")
    picture.box(668, 116, 156, 90, "Redis", "all data", kind="store")
    picture.arrow("M130 165H178")
    return picture


def states() -> Picture:
    picture = Picture(860, 400, "States of a memory")
    picture.box(20, 30, 150, 60, "quarantined", "text looks hostile", kind="bad")
    picture.box(20, 165, 150, 66, "new memory", "from a message", "or a program")
    picture.box(270, 150, 150, 96, "current", "searches and", "prompts find it", kind="good")
    picture.arrow("M170 198H268")
    picture.arrow("M95 165V92")
    picture.arrow("M170 60L300 148")
    picture.text(262, 92, "approved")
    right = (
        ("superseded, merged", "a newer fact, or a duplicate", "undo", "store"),
        ("ended, expired", "valid_to or expires_at passes", "PATCH the time", "store"),
        ("forgotten", "retention policy, or a request", "undo: 30 days or 1 day", "store"),
        ("deleted", "DELETE, erasure or purge", "no undo", "bad"),
    )
    for number, (state, cause, back, kind) in enumerate(right):
        y = 24 + number * 92
        picture.box(680, y, 160, 62, state, kind=kind)
        picture.arrow(f"M420 {168 + number * 20}L470 {y + 31}H678", "end" if back == "no undo" else "start end")
        picture.notes(574, y + 23, cause)
        picture.notes(574, y + 47, back)
    return picture


PICTURES = {
    "flow.svg": flow,
    "images/prompt-sections.svg": prompt,
    "images/three-machines.svg": machines,
    "images/memory-states.svg": states,
}


def main() -> int:
    """Write or check the pictures. Return the exit code."""
    outdated = [name for name, draw in PICTURES.items() if not (DOCS / name).exists() or (DOCS / name).read_text("utf-8") != draw().svg()]
    if "--check" in sys.argv and outdated:
        print(f"not up to date: {', '.join(outdated)}; run python scripts/reference/pictures.py", file=sys.stderr)
        return 1
    for name in outdated:
        (DOCS / name).write_text(PICTURES[name]().svg(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
