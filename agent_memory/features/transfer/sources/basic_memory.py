"""Read Basic Memory's folders of Markdown notes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import yaml

from agent_memory.features.transfer.sources.model import Fact, Fields, Item, NotUtf8, Unusable, guarded

KEEPS_IDS = False
_OBSERVATION = re.compile(r"^\s*[-*]\s+\[(?P<category>[^\]\[()]{2,60})\]\s+(?P<text>.+)$")
_RELATION = re.compile(r"^\s*[-*]\s+(?P<kind>[\w .'-]{1,60}?)\s*\[\[(?P<target>[^\]]{1,200})\]\]")
_TAG = re.compile(r"#([\w/-]{1,100})")
_MAX_NOTE = 1024 * 1024
_OWN = {"title", "type", "tags", "permalink", "created", "created_at", "modified", "updated", "date"}


def read(path: Path, mapping: Mapping[str, str]) -> Iterator[Item]:
    """Yield facts from each note's observations and remaining text."""
    if not path.exists():
        raise Unusable(f"there is no {path}")
    notes = sorted(path.rglob("*.md")) if path.is_dir() else [path]
    if not notes:
        raise Unusable(f"{path.name} contains no Markdown files")
    for note in notes:
        name = str(note.relative_to(path)) if path.is_dir() else note.name
        if not any(part.startswith(".") for part in Path(name).parts):
            yield from guarded(name, _note(note, name))


def _note(path: Path, name: str) -> Iterator[Item]:
    if path.is_symlink() or path.stat().st_size > _MAX_NOTE:
        raise Unusable(f"is a link or is larger than {_MAX_NOTE >> 20} MiB")
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise NotUtf8() from None
    front, body = _front_matter(text)
    title = front.text("title") or Path(name).stem
    permalink = front.text("permalink") or name.removesuffix(".md")
    tags = front.values.get("tags")
    topics = [tag.strip().lstrip("#") for tag in tags.split(",")] if isinstance(tags, str) else front.texts("tags")
    changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    dated = front.time("created", "created_at", "date")
    created = dated or changed
    common: dict[str, Any] = {"created_at": created, "undated": dated is None, "updated_at": front.time("modified", "updated") or created}
    metadata = {"title": title, "permalink": permalink, "type": front.text("type") or "note"}
    metadata |= {key: value for key, value in front.values.items() if key not in _OWN}
    prose: list[str] = []
    links: list[str] = []
    for line in body.splitlines():
        if (match := _OBSERVATION.match(line)) and match["category"].strip().lower() not in ("x", "-"):
            observation, category = match["text"].strip(), match["category"].strip()
            marks = [*topics, category, *_TAG.findall(observation)]
            fact_text = f"{title}: {_TAG.sub('', observation).strip()}"
            yield Fact(f"{permalink}\n{fact_text}", fact_text, topics=marks, metadata=metadata | {"category": category}, **common)
        elif match := _RELATION.match(line):
            links.append(f"{match['kind'].strip()} {match['target'].strip()}")
        else:
            prose.append(line)
    rest = "\n".join(prose).strip()
    if re.sub(r"^#+ .*$", "", rest, flags=re.MULTILINE).strip():
        yield Fact(permalink, rest, topics=topics, metadata=metadata | ({"relations": links} if links else {}), **common)


def _front_matter(text: str) -> tuple[Fields, str]:
    """Split a note into its front matter and body. Raises Unusable if the YAML is invalid."""
    if not text.startswith("---\n"):
        return Fields({}), text
    front, closed, body = text[4:].partition("\n---")
    if not closed:
        return Fields({}), text
    if "&" in front and "*" in front:  # Aliases of anchors can multiply.
        raise Unusable("its front matter has anchors")
    try:
        values = yaml.safe_load(front)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise Unusable("its front matter is not YAML") from None
    fields = {str(key): _plain(value) for key, value in Fields.of(values or {}, "front matter").values.items()}
    return Fields(fields), body.partition("\n")[2]


def _plain(value: Any) -> Any:
    """Convert a YAML value to a JSON value."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
