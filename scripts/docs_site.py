"""What mkdocs is told besides mkdocs.yml (its `hooks`): pages of the site that are not in docs/, and links that work in both places.

Links in the repository lead to files; on the site those to pages stay links, and those to sources become the names of files.
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

BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "tests/README.md": "tests.md",
}
"""Pages of the repository outside docs/, and what they are called on the site."""

_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are not in docs/."""
    for source, name in BESIDE.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    files.append(File.generated(config, "api.md", content=reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links to the pages of the site; what is a source in the repository is named instead."""
    names = {name: source for source, name in BESIDE.items()}
    source = names.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    parts = _FENCED.split(markdown.replace("<!-- table of keys -->", table()))
    return "".join(part if part.startswith("```") else _LINK.sub(lambda match: _link(match, source), part) for part in parts)


def _link(match: re.Match[str], source: str) -> str:
    picture, text, target, anchor = match.groups()
    if not target or "://" in target or source == "docs/api.md":
        return match[0]
    path = os.path.normpath(os.path.join(os.path.dirname(source), target))
    here = os.path.dirname(source.removeprefix("docs/")) if source.startswith("docs/") else ""
    name = BESIDE.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    if name is None:
        return text
    return f"{picture}[{text}]({os.path.relpath(name, here or '.')}{anchor or ''})"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuses a page that would load something from another host."""
    if (foreign := _LOADED.search(output)) is not None:
        raise PluginError(f"{page.file.src_uri} loads something from another host: {foreign[0]}")
    return output
