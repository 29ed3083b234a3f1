"""Show memory blocks at the top of a prompt. The text stays byte-identical until one changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent_memory.extensions.blocks.codec import StoredBlock
from agent_memory.extensions.blocks.store import BlockStore, ShownBlock, choose_blocks
from agent_memory.foundation.core.clock import from_micros
from agent_memory.foundation.core.prompt_sections import PER_MESSAGE, FittedText, PromptAsk, SectionKind, SessionMessages, fit_lines
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import memory_index_name
from agent_memory.foundation.storage.search.queries import name_query, queue_search
from agent_memory.foundation.storage.search.results import parse_hits
from agent_memory.foundation.storage.search.syntax import all_of
from agent_memory.foundation.text.prompt_marks import escape_headings, part_heading
from agent_memory_client.models import SearchRequest
from agent_memory_client.models.features.archive import ARCHIVED_TYPES, MESSAGE_TYPES, archive_of, conversation_of

_HEAD = part_heading("blocks") + "Always keep these in mind. Each label shows how full its block is."
_COUNTS = (
    "In the archive are {archived} memories (archival_memory_search), of conversations {message_count} messages (conversation_search)."
)


class BlocksSection:
    kind = SectionKind.ALWAYS

    def __init__(self, store: BlockStore, keys: Keys, counter: TokenCounter) -> None:
        self._store = store
        self._keys = keys
        self._index = memory_index_name(keys)
        self._counter = counter

    async def open_section(self, ask: PromptAsk) -> BlockReads | None:
        """Return the reads, or None if the request has neither a reader nor a session."""
        if ask.session is None and not any(ask.reader):
            return None
        # If the request names no agent, the script takes the agent from the session.
        asks_session = ask.session is not None and ask.reader.agent_id is None
        session = self._keys.session(self._keys.sid(ask.scope.tenant, ask.session)).meta if asks_session and ask.session else None
        return BlockReads(self._store, self._counter, ask, session, self._index, _counted(ask))


def _counted(ask: PromptAsk) -> Sequence[str]:
    """Return queries that count archive entries and messages, if requested."""
    reader, options = ask.reader, ask.body.blocks
    if options is None or not options.counts or (reader.user_id is None and reader.agent_id is None):
        return ()
    namespace = {} if reader.namespace is None else {"namespace": {"eq": reader.namespace}}
    current = filters.in_time(None, None, history=False, now=datetime.now(UTC))[0]
    filters_by_kind = (
        {"memory_type": ARCHIVED_TYPES, **archive_of(reader.user_id, reader.agent_id)},
        {"memory_type": MESSAGE_TYPES, **conversation_of(reader.user_id, reader.agent_id)},
    )
    return [all_of(filters.where(ask.scope, SearchRequest.model_validate(each | namespace)), current) for each in filters_by_kind]


@dataclass(slots=True)
class BlockReads:
    store: BlockStore
    counter: TokenCounter
    ask: PromptAsk
    session: str | None
    index: str
    counted: Sequence[str] = ()
    blocks: Sequence[ShownBlock] = ()
    head: str = _HEAD

    def queue_section(self, pipe: Pipe) -> int:
        """Queue the reads. Return the number of replies."""
        self.store.queue_shown(pipe, self.ask.scope, self.ask.reader, self.session)
        for clause in self.counted:
            queue_search(pipe, self.index, name_query(clause, 0, 0))
        return 1 + len(self.counted)

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> BlockReads:
        self.blocks = choose_blocks(self.store.parse_shown(self.ask.scope, self.ask.reader, replies[0]))
        if self.counted and self.blocks:
            archived, message_count = (parse_hits(reply).total for reply in replies[1:])
            edited = from_micros(max(block.block.updated for block in self.blocks)).isoformat(timespec="seconds").replace("+00:00", "Z")
            self.head += f"\nLast edit: {edited}. {_COUNTS.format(archived=f'{archived:,}', message_count=f'{message_count:,}')}"
        return self

    def fit_section(self, tokens: int | None) -> FittedText:
        """Keep the most specific blocks that fit. Never truncate a block."""
        count = self.counter.count
        texts = {shown_block.block.label: block_text(shown_block.block, count) for shown_block in self.blocks}
        omitted_labels: list[str] = []
        # A token has at least one byte, so a text never has more tokens than bytes.
        if tokens is not None and sum(len(text.encode()) for text in (self.head, *texts.values())) + PER_MESSAGE > tokens:
            labels = [each.block.label for each in sorted(self.blocks, key=lambda each: -each.names.bit_count())]
            fitting, _ = fit_lines(labels, tokens - PER_MESSAGE - count(self.head), lambda label: count(texts[label]))
            omitted_labels = sorted(set(labels).difference(fitting))
            texts = {label: text for label, text in texts.items() if label in fitting}
        notices = [f"the memory block {label!r} has no room in max_tokens: it was left out" for label in omitted_labels]
        return FittedText("\n\n".join([self.head, *texts.values()]) if texts else "", count, notices, PER_MESSAGE)


def block_text(block: StoredBlock, count: Callable[[str], int]) -> str:
    marks = f"{len(block.value):,} of {block.limit:,} characters"
    marks += f", {count(block.value) if block.value else 0:,} of {block.limit_tokens:,} tokens" if block.limit_tokens else ""
    lines = [f"### {' '.join(block.label.split())} ({marks}{'; read-only' if block.read_only else ''})"]
    if block.description:
        lines.append(f"({' '.join(block.description.split())})")
    return "\n".join([*lines, escape_headings(block.value)])
