"""MkDocs hooks that add pages from outside docs/ and rewrite links.

Links work on the site and in the repository. On the site, links to source files become plain text.
"""

from __future__ import annotations

import os.path
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation, Section
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.api_reference import reference  # noqa: E402
from scripts.reference import commands, key_table, python_client  # noqa: E402

GENERATED = {"api.md": reference, "commands.md": commands.page, "python-client.md": python_client.page}
OTHER_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "tests/README.md": "tests.md",
}
"""Pages of the repository outside docs/, and their names on the site."""

_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/."""
    for source, name in OTHER_PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    for name, make_page in GENERATED.items():
        files.append(File.generated(config, name, content=make_page()))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Resolve menu links to page sections. Raises PluginError if a section does not exist."""
    items = [*nav.items]
    while items:
        item = items.pop()
        if isinstance(item, Section):
            items += item.children
        elif isinstance(item, Link):
            name, _, section = item.url.partition("#")
            file = files.get_file_from_path(name)
            if file is None or section not in _sections(file.content_string):
                raise PluginError(f"mkdocs.yml: {item.url} does not exist")
            item.url = f"{file.url}#{section}"
    return nav


def _sections(markdown: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", markdown), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links for the site. Links to source files become plain text.

    Raises PluginError if a link's target does not exist.
    """
    names = {name: source for source, name in OTHER_PAGES.items()}
    source = names.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    parts = _FENCED.split(markdown.replace("<!-- table of keys -->", key_table.table()))
    return "".join(part if part.startswith("```") else _LINK.sub(lambda match: _link(match, source), part) for part in parts)


def _link(match: re.Match[str], source: str) -> str:
    picture, text, target, anchor = match.groups()
    if not target or "://" in target or source.removeprefix("docs/") in GENERATED:
        return match[0]
    path = os.path.normpath(os.path.join(os.path.dirname(source), target))
    if path.removeprefix("docs/") not in GENERATED and not (ROOT / path).exists():
        raise PluginError(f"{source}: {target} does not exist")
    here = os.path.dirname(source.removeprefix("docs/")) if source.startswith("docs/") else ""
    name = OTHER_PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    if name is None:
        return text
    return f"{picture}[{text}]({os.path.relpath(name, here or '.')}{anchor or ''})"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Raise PluginError if the page loads anything from another host."""
    if (foreign := _LOADED.search(output)) is not None:
        raise PluginError(f"{page.file.src_uri} loads something from another host: {foreign[0]}")
    return output
