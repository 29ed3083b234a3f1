"""Count tokens with the cl100k_base encoding, which needs no download."""

from __future__ import annotations

import asyncio
import lzma
import math
import re
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import resources
from typing import TypeVar

import tiktoken

from agent_memory.foundation.llm.threads import giving_way
from agent_memory.foundation.text.chat_messages import counted
from agent_memory_client.models import MemoryMessage

T = TypeVar("T")

_PATTERN = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
# For ASCII, Python's own regular expressions take a third of the time.
_ASCII = re.compile(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\nA-Za-z0-9]?+[A-Za-z]++|[0-9]{1,3}+| ?[^\sA-Za-z0-9]++[\r\n]*+|\s++\Z|\s*[\r\n]|\s+(?!\S)|\s", re.ASCII
)
_SPECIAL = {
    "<|endoftext|>": 100257,
    "<|fim_prefix|>": 100258,
    "<|fim_middle|>": 100259,
    "<|fim_suffix|>": 100260,
    "<|endofprompt|>": 100276,
}
_CHUNK = 20_000  # characters; merging takes more than linear time in the length of a run of letters
_AT_ONCE = 20_000  # characters counted in the event loop; a longer text would block it for milliseconds
_RUN = 2_000  # characters; a longer run without a space is cut anyway
_LONGEST_CACHED_PIECE = 24  # characters; longer pieces rarely repeat, so they are not cached
_MOST_PIECES = 32768
_GAP_TOKENS = 2  # tokens of the " … " in a shortened text


def first_fitting(items: Iterable[T], tokens: int, count: Callable[[T], int]) -> list[T]:
    """Return as many leading items as fit into `tokens`, but at least one."""
    fitting: list[T] = []
    for item in items:
        tokens -= count(item)
        if fitting and tokens < 0:
            break
        fitting.append(item)
    return fitting


class _PieceTokens(dict[str, int]):
    """Caches token counts for pieces that match `_PATTERN`."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        super().__init__()
        self._encoding = encoding

    def __missing__(self, piece: str) -> int:
        tokens = len(self._encoding.encode_ordinary(piece))
        if len(piece) <= _LONGEST_CACHED_PIECE:
            if len(self) >= _MOST_PIECES:
                self.clear()
            self[piece] = tokens
        return tokens


class TokenCounter:
    """Counts tokens and truncates texts.

    If there is no encoding, it assumes four characters per token.
    """

    def __init__(self, encoding: tiktoken.Encoding | None = None) -> None:
        self._encoding = encoding
        self._tokens_of = None if encoding is None else _PieceTokens(encoding).__getitem__
        self._executor = giving_way("count")  # its thread starts on first use

    @classmethod
    async def open(cls) -> TokenCounter:
        """Open a counter. Load the encoding in a thread (0.4 s)."""
        return cls(await asyncio.to_thread(load_encoding))

    def count(self, text: str, enough: int | None = None) -> int:
        """Return the number of tokens. Special tokens count as text.

        Stop counting above `enough`.
        """
        if self._encoding is None or self._tokens_of is None:
            return math.ceil(len(text) / 4)
        if len(text) <= _RUN:
            return sum(map(self._tokens_of, _ASCII.findall(text))) if text.isascii() else len(self._encoding.encode_ordinary(text))
        tokens = 0
        for chunk in _chunks(text):
            tokens += len(self._encoding.encode_ordinary(chunk))
            if enough is not None and tokens > enough:
                break
        return tokens

    async def count_in_thread(self, text: str) -> int:
        """Return `count(text)`. Long texts are counted in a thread."""
        if len(text) <= _AT_ONCE:
            return self.count(text)
        return await asyncio.get_running_loop().run_in_executor(self._executor, self.count, text)

    def count_message(self, role: str, content: str) -> int:
        """Return the number of tokens in `role: content`, but at least 1."""
        return max(1, self.count(f"{role}: {content}"))

    def count_chat(self, message: MemoryMessage) -> int:
        """Return the number of tokens in a message, including all fields."""
        text, more = counted(message)
        return self.count_message(message.role, text) + more

    async def count_messages(self, messages: Sequence[tuple[str, str]]) -> list[int]:
        """Return the result of `count_message` for each (role, content) pair."""
        runs: list[list[tuple[str, str]]] = []
        room = 0
        for message in messages:
            if not runs or room < len(message[1]):
                runs.append([])
                room = _AT_ONCE
            runs[-1].append(message)
            room -= len(message[1])

        def counted(run: list[tuple[str, str]]) -> list[int]:
            return [self.count_message(role, content) for role, content in run]

        if len(runs) == 1 and room >= 0:
            return counted(runs[0])
        loop = asyncio.get_running_loop()
        # Count one run at a time, so that other requests do not wait for a whole long session.
        return [tokens for run in runs for tokens in await loop.run_in_executor(self._executor, counted, run)]

    def truncate(self, text: str, tokens: int) -> str:
        """Return the longest prefix of `text` that has about `tokens` tokens."""
        if tokens <= 0:
            return ""
        if self._encoding is None:
            return text[: 4 * tokens]
        left, length = tokens, 0
        for chunk in _chunks(text):
            ids = self._encoding.encode_ordinary(chunk)
            if len(ids) > left:
                # A token may end inside a character, which is dropped. Only the length is used, since decoding replaces
                # surrogates.
                part = len(self._encoding.decode(ids[:left], errors="ignore"))
                while part and len(self._encoding.encode_ordinary(chunk[:part])) > left:
                    part -= 1
                return text[: length + part]
            left -= len(ids)
            length += len(chunk)
        return text

    def shorten(self, text: str, tokens: int) -> str:
        """Cut out the middle of `text` if it has more than `tokens` tokens.

        Two thirds of the result come from the beginning, and one third from the end.
        """
        total = self.count(text)
        if total <= tokens:
            return text
        most = max(tokens - _GAP_TOKENS, 1)
        head, last = self.truncate(text, most - most // 3), most // 3
        # Estimate where the end starts by its share of the text. A denser end takes another try or two.
        size = len(text) * last // max(total, 1)
        while size and self.count(text[-size:]) > last:
            size = size * 4 // 5
        return f"{head.rstrip()} … {text[-size:].lstrip()}" if size else head


def load_encoding() -> tiktoken.Encoding:
    packed = resources.files("agent_memory.foundation.llm").joinpath("data", "cl100k_base.tiktoken.xz").read_bytes()
    words = lzma.decompress(packed).split()
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    return tiktoken.Encoding("cl100k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens=_SPECIAL)


def _chunks(text: str) -> Iterator[str]:
    """Yield chunks of at most `_CHUNK` characters, split at spaces.

    Token counts are exact except for long runs with no spaces.
    """
    start = 0
    while start < len(text):
        end = min(start + _CHUNK, len(text))
        if end < len(text):
            space = text.rfind(" ", start + 1, end)
            end = space if space > start else start + _RUN
        yield from _without_long_runs(text[start:end])
        start = end


def _without_long_runs(chunk: str) -> Iterator[str]:
    if len(chunk) <= _RUN or max(map(len, chunk.split(" "))) <= _RUN:
        yield chunk
        return
    for start in range(0, len(chunk), _RUN):
        yield chunk[start : start + _RUN]
