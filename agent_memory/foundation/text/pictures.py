"""Find images and named files in messages from any chat API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

# Formats that cannot contain scripts or addresses, unlike SVG.
_MEDIA_TYPE = re.compile(r"image/(?:png|jpe?g|gif|webp)")
_ENCODED = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_DATA_URL = re.compile(rf"data:{_MEDIA_TYPE.pattern};base64,{_ENCODED.pattern}")
_REMOTE_URL = re.compile(r"https?://[^\s\"'<>]+")
# Fields in which chat APIs name a file or describe a picture in words.
_WORDS = ("alt", "alt_text", "caption", "title", "filename", "file_name", "name")
_MOST_WORDS = 500


def pictures_of(parts: Sequence[Any] | None) -> list[str]:
    """Return each image's address, which is a web address or a `data:` URL."""
    return [address for part in _parts(parts) if "image" in _kind(part) and (address := _address(part)) is not None]


def is_data_url(address: str) -> bool:
    """True if `address` is a `data:` URL for an image that is safe to display."""
    return _DATA_URL.fullmatch(address) is not None


def words_of_files(parts: Sequence[Any] | None) -> str:
    """Return lines such as "[file: invoice.pdf]" for images and files with a name or caption."""
    lines = ((part, ", ".join(dict.fromkeys(_words(part)))) for part in _parts(parts) if any(map(_kind(part).count, _FILES)))
    return "\n".join(f"[{'picture' if 'image' in _kind(part) else 'file'}: {words[:_MOST_WORDS]}]" for part, words in lines if words)


_FILES = ("image", "file", "document")


def _parts(parts: Sequence[Any] | None) -> Iterator[Mapping[str, Any]]:
    return (cast("Mapping[str, Any]", part) for part in parts or () if isinstance(part, Mapping))


def _kind(part: Mapping[str, Any]) -> str:
    return str(part.get("type"))


def _address(value: Any) -> str | None:
    if isinstance(value, str):
        return value if _REMOTE_URL.fullmatch(value) or is_data_url(value) else None
    if not isinstance(value, Mapping):
        return None
    values = list(cast("Mapping[str, Any]", value).values())
    texts = [item for item in values if isinstance(item, str)]
    media_type = next(filter(_MEDIA_TYPE.fullmatch, texts), None)
    if media_type is not None and (encoded := max(filter(_ENCODED.fullmatch, texts), key=len, default=None)):
        return f"data:{media_type};base64,{encoded}"
    return next((address for item in values if (address := _address(item)) is not None), None)


def _words(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names and captions in a part and its nested objects."""
    for fields in (part, *_parts(list(part.values()))):
        yield from (" ".join(value.split()) for name in _WORDS if isinstance(value := fields.get(name), str) and value.strip())
