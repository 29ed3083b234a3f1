r"""Escape stored text that imitates a prompt's memory lines or headings. Pure functions, no I/O.

Memory lines look like `- [date; type] text (ID: id)`. A backslash is added to each imitation:
`(ID\: …)`, `; semantic\]`, `\## Long term memories …`. Escaped text gets another backslash, so no
information is lost. Look-alike characters are treated like the characters they resemble.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

from agent_memory.foundation.text.cleaning.control_characters import plain_text
from agent_memory.foundation.text.prompt_marks import HASHES, UNSEEN

_TYPES = frozenset({"episodic", "semantic", "message", "procedural"})
# Possessive quantifiers keep matching linear in the text's length.
_OPEN = r"(\uff08\ufe59\u207d\u208d\u2768\u276a\u27ee\u2985\ufe35"
_COLON = r":\uff1a\ufe55\u2236\ua789\u02d0\u02f8\u05c3\ufe13\ufe30\u0589\u0703\u0704"
_SEMICOLON = r";\uff1b\ufe54\u037e\u204f\ufe14"
_BRACKET = r"\]\uff3d\u2046\u27e7\u3011\u3015\u2773\ufe48"
_ID = re.compile(rf"[{_OPEN}][{UNSEEN}]*+([^{UNSEEN}])[{UNSEEN}]*+([^{UNSEEN}])[{UNSEEN}\\]*+(?=[{_COLON}])")
_TYPE = re.compile(rf"[{_SEMICOLON}]([^{_SEMICOLON}{_BRACKET}]*+)(?=[{_BRACKET}])")
_HEADS = "A summary of the conversation|Long term memories|From memory:"
_HEAD = re.compile(rf"(?=[{HASHES}]{{2}}[{UNSEEN}]*+(?:{_HEADS}))", re.IGNORECASE)
_FRAMES = re.compile(rf"[{_OPEN}{_SEMICOLON}{HASHES}]")
_INVISIBLE = re.compile(rf"[{UNSEEN}]+")
# Look-alike letters that Unicode normalization does not map.
_LOOKS_LIKE = str.maketrans(
    "аеорсԁіӏјѕһхугтмпυսⅼıɩιΙІӀαεορϲɡɑᴀᴅᴇɢɪᴍɴᴏᴘʀᴛᴜꜱʟᴄᎠᗞ∣ǀ",
    "aeopcdiljshxyrtmnuuliiiiilaeopcgaadegimnoprtuslcddll",
)
_MOST_CACHED = 2000
_LONG = 32
_EASILY_I = frozenset("l|1\u04cf\u2223\u01c0\u2502")


def escape_frames(text: str) -> str:
    """Remove control characters, and escape text that imitates prompt lines or headings."""
    text = plain_text(text)
    positions = _escape_positions(text)
    if not positions:
        return text
    return "\\".join(text[start:end] for start, end in pairwise([0, *positions, len(text)]))


def one_line(text: str) -> str:
    """Join the text into one line, and escape text that imitates prompt lines or headings."""
    return _short_line(text) if len(text) <= _MOST_CACHED else _line(text)


def _line(text: str) -> str:
    return escape_frames(" ".join(plain_text(text).split()))


# Cached, because the prompts in successive turns show nearly the same memories.
_short_line = lru_cache(maxsize=2048)(_line)


def shown_id(memory_id: str) -> str:
    """Return an id as shown in a prompt line.

    An id that is unprintable or could break out of `(ID: …)` is encoded as ASCII JSON.
    """
    if memory_id.isascii() and memory_id.replace("-", "").isalnum():
        return memory_id
    plain = memory_id.isprintable() and memory_id == " ".join(memory_id.split()) and memory_id[:1] != '"'
    if plain and _balanced(memory_id) and not _escape_positions(memory_id):
        return memory_id
    return re.sub(r"[()\[\]:;#]", lambda mark: f"\\u{ord(mark[0]):04x}", json.dumps(memory_id))


def _escape_positions(text: str) -> list[int]:
    # Looking for the ASCII character first is ten times as fast as searching by pattern.
    plain, positions = text.isascii(), list[int]()
    if not plain and _FRAMES.search(text) is None:
        return positions
    if not plain or "(" in text:
        positions += [match.end() for match in _ID.finditer(text) if _is_id(match[1], match[2])]
    if not plain or ";" in text:
        positions += [match.end() for match in _TYPE.finditer(text) if _skeleton(match[1].rstrip("\\")) in _TYPES]
    if not plain or "#" in text:
        positions += [match.start() for match in _HEAD.finditer(text)]
    return sorted(positions)


def _is_id(first: str, second: str) -> bool:
    if _skeleton(second) != "d":
        return False
    # Before a lowercase "d", a "1" or "l" means itself: "(1d: rain)".
    return _skeleton(first) == "i" or (first in _EASILY_I and second != "d")


def _skeleton(text: str) -> str:
    """Map look-alike characters to lowercase Latin letters. Return "" for long texts."""
    visible = _INVISIBLE.sub("", text)
    if len(visible) > _LONG:
        return ""
    if not visible.isascii():
        visible = "".join(letter for letter in unicodedata.normalize("NFKD", visible) if not unicodedata.combining(letter))
    return visible.translate(_LOOKS_LIKE).casefold().translate(_LOOKS_LIKE)


def _balanced(text: str) -> bool:
    depth = 0
    for mark in text:
        depth += (mark == "(") - (mark == ")")
        if depth < 0:
            return False
    return depth == 0
