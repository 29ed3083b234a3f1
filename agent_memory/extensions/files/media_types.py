"""Check the media types of uploads."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import PurePosixPath
from types import MappingProxyType

from agent_memory.foundation.api.errors import UnsupportedMedia
from agent_memory.foundation.core.errors import BadInput, TooLarge, UnsupportedRequest, how_to_install

MAX_FILE_BYTES = 8 * 1024 * 1024
TEXT, MARKDOWN, HTML, PDF = "text/plain", "text/markdown", "text/html", "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_BY_SUFFIX = MappingProxyType(
    {".txt": TEXT, ".md": MARKDOWN, ".markdown": MARKDOWN, ".html": HTML, ".htm": HTML, ".pdf": PDF, ".docx": DOCX}
)
SENT_TYPES = tuple(dict.fromkeys(_BY_SUFFIX.values()))
_BEGINNINGS = MappingProxyType({PDF: b"%PDF-", DOCX: b"PK\x03\x04"})
_LIBRARIES = MappingProxyType({PDF: "pypdf", DOCX: "docx"})
# Programs send these types when they do not know the file's type.
_UNDECLARED = frozenset({"", "application/octet-stream", "application/x-www-form-urlencoded"})
_MAGIC_BYTES = 1024  # A PDF may begin with other bytes.


def media_type_of(declared: str, name: str, data: bytes) -> str:
    """Return the media type of an upload. Raises TooLarge, UnsupportedMedia, BadInput or UnsupportedRequest."""
    if len(data) > MAX_FILE_BYTES:
        raise TooLarge(f"a file has at most {MAX_FILE_BYTES} bytes: split it", field="body", limit=MAX_FILE_BYTES)
    if not data:
        raise BadInput("must not be empty: send the file's bytes", field="body")
    declared_type = declared.partition(";")[0].strip().lower()
    media_type = _BY_SUFFIX.get(PurePosixPath(name).suffix.lower(), "") if declared_type in _UNDECLARED else declared_type
    if media_type not in SENT_TYPES:
        message = f"send a text, Markdown, HTML, PDF or DOCX file: a Content-Type of {', '.join(SENT_TYPES)}"
        raise UnsupportedMedia(f"{message}, or a name that ends in {', '.join(_BY_SUFFIX)}", field="content-type", where="header")
    beginning = data[:_MAGIC_BYTES]
    if media_type in _BEGINNINGS:
        if _BEGINNINGS[media_type] not in beginning:
            raise BadInput(f"is not a file of the type {media_type}: send its real type", field="body")
        if find_spec(_LIBRARIES[media_type]) is None:
            message = f"this server cannot read the format: send text, or add its libraries: {how_to_install('files')}"
            raise UnsupportedRequest(message, field="content-type", where="header")
    elif any(beginning.startswith(magic) for magic in _BEGINNINGS.values()):
        raise BadInput(f"is not a file of the type {media_type}: send its real type", field="body")
    return media_type
