"""Hooks for mkdocs. They add the pages that are not in docs/, and make the repository's links work on the site.

A link to a page becomes a link to its address on the site. A link to a source file becomes the name of the file.
"""

from __future__ import annotations

import os.path
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.api_reference import reference  # noqa: E402
from scripts.reference.key_table import table  # noqa: E402

OTHER_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "tests/README.md": "tests.md",
}
"""Pages outside docs/, and their names on the site."""

_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for source, name in OTHER_PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    files.append(File.generated(config, "api.md", content=reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Insert the table of keys, and convert the links of a page."""
    names = {name: source for source, name in OTHER_PAGES.items()}
    source = names.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    parts = _FENCED.split(markdown.replace("<!-- table of keys -->", table()))
    return "".join(part if part.startswith("```") else _LINK.sub(lambda match: _link(match, source), part) for part in parts)


def _link(match: re.Match[str], source: str) -> str:
    picture, text, target, anchor = match.groups()
    if not target or "://" in target or source == "docs/api.md":
        return match[0]
    path = os.path.normpath(os.path.join(os.path.dirname(source), target))
    here = os.path.dirname(source.removeprefix("docs/")) if source.startswith("docs/") else ""
    name = OTHER_PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    if name is None:
        return text
    return f"{picture}[{text}]({os.path.relpath(name, here or '.')}{anchor or ''})"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Raise PluginError if a page loads a file from another host."""
    if (foreign := _LOADED.search(output)) is not None:
        raise PluginError(f"{page.file.src_uri} loads a file from another host: {foreign[0]}")
    return output
