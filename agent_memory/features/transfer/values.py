"""Convert individual values from other systems. Every change adds a note. No I/O."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from ulid import ULID

from agent_memory_client.models import MemoryTypeEnum

_CONTROLS = dict.fromkeys((*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20)), "\ufffd")
_MAX_TAGS, _MAX_TAG_CHARS = 64, 256
_MAX_DEPTH = 30
_END_OF_TIME = 253_402_300_800
"""The year 10000, in seconds since 1970."""
_DATETIME = TypeAdapter(datetime)


def decode_text(raw: bytes, notes: list[str], name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        notes.append(f"{name} was not UTF-8: unreadable bytes were replaced")
        return raw.decode("utf-8", "replace")


def clean_text(value: Any, notes: list[str], name: str) -> str:
    """Return the text, with control characters and lone surrogates replaced."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else str(value)
    clean = text.translate(_CONTROLS).encode("utf-8", "replace").decode()
    if clean != text:
        notes.append(f"{name} contained invalid characters, which were replaced")
    return clean


def cleaned_json(value: Any, notes: list[str]) -> dict[str, Any] | None:
    """Clean a JSON object by replacing values that cannot be stored."""
    if value is None:
        return None
    if not isinstance(value, dict):
        notes.append("a value that should be an object is kept under 'value'")
        return cleaned_json({"value": value}, notes) if value else {}
    changed = False

    def walk(node: Any, depth: int) -> Any:
        nonlocal changed
        if isinstance(node, str):
            clean = node.encode("utf-8", "replace").decode()
            changed = changed or clean != node
            return clean
        if isinstance(node, float) and not math.isfinite(node):
            changed = True
            return None
        if isinstance(node, dict | list) and depth >= _MAX_DEPTH:
            changed = True
            return to_json(node).encode("utf-8", "replace").decode()
        if isinstance(node, dict):
            return {walk(key, depth): walk(entry, depth + 1) for key, entry in cast("dict[str, Any]", node).items()}
        if isinstance(node, list):
            return [walk(entry, depth + 1) for entry in cast("list[Any]", node)]
        return node

    clean = walk(value, 0)
    if changed:
        notes.append("values that JSON cannot represent, or that were nested too deeply, were replaced")
    return clean


def json_object(value: str | None, name: str, notes: list[str]) -> dict[str, Any]:
    if not value:
        return {}
    try:
        parsed: Any = json.loads(value)
    except (ValueError, RecursionError):
        notes.append(f"{name} is not JSON: its text is kept under 'unreadable'")
        return {"unreadable": value.translate(_CONTROLS)}
    return cleaned_json(parsed, notes) or {}


def split_tags(value: Any) -> list[str] | None:
    """Parse tags from a list, or from a string separated by commas or `|`."""
    if value is None or value == "":
        return None
    if isinstance(value, list):
        return [str(tag) for tag in cast("list[Any]", value) if tag is not None]
    text = str(value)
    return [part.strip() for part in text.split("|" if "|" in text and "," not in text else ",") if part.strip()]


def tags_of(values: list[str] | None, name: str, notes: list[str]) -> list[str] | None:
    """Return topics or entities, limited to the allowed number and length."""
    if values is None:
        return None
    clean = [" ".join(clean_text(value, notes, name).split()).replace(",", " ") for value in values]
    tags = [value[:_MAX_TAG_CHARS] for value in dict.fromkeys(clean) if value][:_MAX_TAGS]
    if len(tags) < len({value for value in clean if value}) or any(len(value) > _MAX_TAG_CHARS for value in clean):
        notes.append(f"{name}: at most {_MAX_TAGS} of {_MAX_TAG_CHARS} characters are kept")
    return tags or None


def count_of(value: Any, notes: list[str]) -> int:
    """Parse a count, clamped to 0 to 2**53 - 1. Invalid values become 0."""
    try:
        return min(max(int(float(value or 0)), 0), 2**53 - 1)
    except (TypeError, ValueError, OverflowError):
        notes.append("a count that is not a number became 0")
        return 0


def memory_type_of(value: Any, notes: list[str]) -> str:
    word = str(value or "").strip().lower()
    if word in list(MemoryTypeEnum):
        return word
    notes.append(f"the memory type {word[:40]!r} is unknown: semantic was used")
    return MemoryTypeEnum.SEMANTIC.value


def number_or_text(value: Any) -> Any:
    """Parse a number. Return other text as is, or None if the value is empty."""
    try:
        return None if value is None or value == "" else float(value)
    except ValueError:
        return value


def instant(value: Any, name: str, notes: list[str]) -> datetime | None:
    """Parse epoch seconds or ISO 8601 (default zone UTC). Return None if invalid."""
    if value is None or value == "":
        return None
    try:
        # Refuse large numbers, because pydantic would read them as milliseconds.
        if isinstance(value, bool) or (isinstance(value, int | float) and not abs(value) < _END_OF_TIME):
            raise ValueError("out of range")
        moment = datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else _DATETIME.validate_python(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValidationError, ValueError, OverflowError, OSError):
        notes.append(f"{name} is not a date and was omitted")
        return None


def ulid_time(name: str) -> datetime | None:
    try:
        return ULID.from_str(name).datetime
    except (ValueError, OverflowError):
        return None


def made_id(*parts: Any) -> str:
    """Derive an id from the parts. The same parts always produce the same id."""
    text = "\0".join(str(part) for part in parts)
    return str(ULID.from_bytes(b"\x01" + blake2b(text.encode("utf-8", "replace"), digest_size=15).digest()))


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
