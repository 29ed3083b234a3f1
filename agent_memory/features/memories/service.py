"""Create, read, edit and delete long-term memories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from typing import Any

from ulid import ULID

from agent_memory.features.access.limits import MemoryLimit
from agent_memory.features.memories.annotations import annotate, annotations_of
from agent_memory.features.memories.commit import CLIENT_STATEMENT, ChangeOrigin, MemoryCommits, Update
from agent_memory.features.memories.quarantine.service import rules_of, screen_caller_record, screen_record
from agent_memory.features.memories.records import message_memory_id, one_owner_each
from agent_memory.features.memories.similar_memories import SimilarMemoryStore
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.deletion import MemoryDeletion
from agent_memory.features.memories.upkeep.followers import MemoryFollowers
from agent_memory.features.memories.usage.log import UsageLog
from agent_memory.features.memories.write_decisions import decide_edit, decide_ends, store_settled
from agent_memory.foundation.core.clock import note_unreadable_dates
from agent_memory.foundation.core.errors import Conflict, IdTaken, UnsupportedRequest
from agent_memory.foundation.core.input.work import memories_work
from agent_memory.foundation.core.permissions import permit_writing
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.text.languages.questions import is_bare_question
from agent_memory.foundation.text.normalization import ABOUT_USER, QUESTION, normal_text
from agent_memory.foundation.text.redaction import redact, redact_all
from agent_memory_client.models import (
    ANSWER,
    AckResponse,
    CreateMemoryRecordRequest,
    EditMemoryRecordRequest,
    MemoryMessage,
    MemoryRecord,
    MemoryTypeEnum,
)

_PATCH_TRIES = 64
# A patch with null leaves these fields unchanged.
_NEVER_EMPTY = frozenset({"text", "memory_type", "pinned"})
_VALIDITY = frozenset({"valid_from", "valid_to", "expires_at"})
_SLOT_FIELDS = frozenset({"slot", "namespace", "user_id", "agent_id", *_VALIDITY})


def content_hash(record: MemoryRecord) -> str:
    """Return the archived server's `memory_hash`: SHA-256 of text, scope and type."""
    hashed = {name: getattr(record, name) for name in ("memory_type", "namespace", "session_id", "text", "user_id")}
    return sha256(json.dumps(hashed).encode()).hexdigest()


def message_memory(ref: SessionRef, message: MemoryMessage, text: str) -> MemoryRecord:
    """Create a memory from a message without enforcing size limits. `text` is the part to store."""
    annotations = annotations_of(message)
    marks = {QUESTION: True} if message.role == "user" and is_bare_question(text) else {}
    if annotations is not None and annotations.about_user:
        marks[ABOUT_USER] = True
    record = MemoryRecord.model_validate(
        {
            "id": message_memory_id(ref, message.id),
            "text": text,
            "namespace": ref.namespace,
            "user_id": ref.user_id,
            "session_id": ref.session_id,
            "memory_type": MemoryTypeEnum.MESSAGE,
            "created_at": message.created_at,
            "last_accessed": message.created_at,
            "persisted_at": datetime.now(UTC),
            "extracted_from": [message.id],
            "extraction_strategy": "message",
            "discrete_memory_extracted": "t",
            "metadata": speaker_of(message) | marks,
            "written_by": message.written_by,
        },
        context=ANSWER,
    )
    annotate(record, [annotations])
    record.memory_hash = content_hash(record)
    return record


def speaker_of(message: MemoryMessage) -> dict[str, str]:
    """Return a message's role and, if given, the speaker's name."""
    name = message.own_fields.get("name")
    return {"role": message.role, "name": name} if isinstance(name, str) and name.strip() else {"role": message.role}


def fact_memory_id(ref: SessionRef, text: str, messages: Sequence[str] = ()) -> str:
    """Return a stable id for a fact extracted from these messages."""
    words = " ".join(text.casefold().split())
    parts = "\0".join(part or "" for part in (ref.namespace, ref.user_id, ref.session_id, words, *messages))
    return str(ULID.from_bytes(b"\x01" + blake2b(parts.encode(), digest_size=15).digest()))


def _says_nothing_new(record: MemoryRecord, old: MemoryRecord) -> bool:
    """True if storing `record` would not change `old`."""
    if any(getattr(record, name) not in (None, getattr(old, name)) for name in ("namespace", "user_id", "agent_id")):
        return False
    return normal_text(redact(record.text)) == normal_text(redact(old.text))


class MemoryService:
    def __init__(
        self,
        settings: Settings,
        store: MemoryStore,
        neighbors: SimilarMemoryStore,
        commits: MemoryCommits,
        usage: UsageLog,
        memory_limit: MemoryLimit,
        followers: MemoryFollowers,
        deletion: MemoryDeletion,
    ) -> None:
        self._settings = settings
        self._memory_limit = memory_limit
        self._store = store
        self._neighbors = neighbors
        self._commits = commits
        self._usage = usage
        self._followers = followers
        self._deletion = deletion

    def require(self) -> None:
        """Raise UnsupportedRequest if long-term memory is turned off."""
        if not self._settings.longterm.enabled:
            raise UnsupportedRequest(
                "long-term memory is switched off (LONG_TERM_MEMORY=false)", field="long_term_memory", where="settings"
            )

    async def create(self, scope: Scope, body: CreateMemoryRecordRequest) -> AckResponse:
        """Store memories durably. If this raises Forbidden or IdTaken, nothing is written."""
        self.require()

        def check() -> None:
            permit_writing(scope, body.memories, field="memories")
            one_owner_each(enumerate(body.memories))
            note_unreadable_dates(record.metadata for record in body.memories)

        await run_in_thread(check, memories_work(body.memories))
        await self._memory_limit.room_for(scope.tenant, len(body.memories))
        records: Sequence[MemoryRecord] = body.memories
        while True:
            try:
                await self.store(scope, records, dedupe=body.deduplicate)
                return AckResponse(status="ok")
            except IdTaken as error:
                unchanged = await self._unchanged_ids(scope, records, error.ids)
                if not unchanged.issuperset(error.ids):
                    raise error.of([record.id for record in body.memories]) from None
                records = [record for record in records if record.id not in unchanged]

    async def _unchanged_ids(self, scope: Scope, records: Sequence[MemoryRecord], taken_ids: Sequence[str]) -> set[str]:
        """Return the ids of records that would change nothing.

        Old clients may resend existing memories without an owner.
        """
        repeated = [record for record in records if record.id in taken_ids]
        memories = await self._store.find(scope, [record.id for record in repeated])
        return {
            record.id for record, old in zip(repeated, memories, strict=True) if old is not None and _says_nothing_new(record, old.record)
        }

    async def store(self, scope: Scope, records: Sequence[MemoryRecord], *, dedupe: bool = True) -> None:
        """Redact, screen and store records. If an id occurs more than once, the last record wins.

        With `dedupe`, a repeat becomes evidence for the existing memory. A record with a slot
        supersedes the slot's current fact.
        """
        prepared = await run_in_thread(lambda: self._prepared(records, scope.actor), memories_work(records))
        await store_settled(self._store, self._neighbors, self._commits, scope, prepared, dedupe=dedupe)

    def _prepared(self, records: Sequence[MemoryRecord], writer: str) -> list[MemoryRecord]:
        """Redact, screen and complete records. Return one record for each id."""
        if self._settings.longterm.redact_secrets:
            texts = [record.text for record in records]
            clean = redact_all(texts)
            if clean is not texts:
                pairs = zip(records, clean, strict=True)
                records = [record if text == record.text else record.model_copy(update={"text": text}) for record, text in pairs]
        rules = rules_of(self._settings, records)
        unique = {record.id: screen_caller_record(self._settings, record, rules) for record in records}
        prepared = list(unique.values())
        for record in prepared:
            record.written_by = writer or None
            if not record.memory_hash:
                record.memory_hash = content_hash(record)
            if record.persisted_at is not None:
                record.persisted_at = None
            if record.discrete_memory_extracted != "t":
                # Extraction never runs on a memory that a caller wrote, even if the client's default asks for it.
                record.discrete_memory_extracted = "t"
        return prepared

    async def get(self, scope: Scope, memory_id: str) -> MemoryRecord:
        """Return a memory, and count it as read. Raises NotFound."""
        self.require()
        memory = await self._store.require(scope, memory_id)
        self._usage.note_readings([(memory.mid, memory.record.access_count)])
        # The caller may have used an alias.
        memory.record.id = memory_id
        memory.record.recorded_at = None  # `…/history` shows when each version was recorded.
        return memory.record

    async def patch(
        self,
        scope: Scope,
        memory_id: str,
        body: EditMemoryRecordRequest,
        *,
        shown_as_semantic: bool = False,
        merges_metadata: bool = False,
    ) -> MemoryRecord:
        """Update the given fields and return the memory. Null clears a field.

        A new slot supersedes the slot's current fact. A new `valid_from` also moves the end of the
        facts that ended when this one began.

        - `merges_metadata`: keep `metadata` keys that are not in the request.
        - `shown_as_semantic`: setting `semantic` does not change a procedural type.

        Raises NotFound, Conflict, and UnsupportedRequest if no field is given.
        """
        self.require()
        changes = self._changes_of(body)
        if not changes:
            raise UnsupportedRequest(f"send at least one field to change: {', '.join(EditMemoryRecordRequest.model_fields)}", field="body")
        # If the memory changed in the meantime, read it again. This loses no concurrent change and revives no deleted memory.
        for _ in range(_PATCH_TRIES):
            memory = await self._store.require(scope, memory_id)
            old, update = memory.record, changes
            if shown_as_semantic and old.memory_type is MemoryTypeEnum.PROCEDURAL and body.memory_type is MemoryTypeEnum.SEMANTIC:
                update = {name: value for name, value in changes.items() if name != "memory_type"}
                if not update:
                    return await self.get(scope, memory_id)
            if merges_metadata and "metadata" in update:
                update = {**update, "metadata": {**old.metadata, **update["metadata"]}}
            new = old.model_copy(update={**update, "updated_at": datetime.now(UTC), "recorded_at": None})
            if "text" in changes:
                new.memory_hash, new.written_by = content_hash(new), scope.actor or None
                # An edit does not end a quarantine; only an approval does.
                new = new if old.quarantine is not None else screen_record(self._settings, new)
            ends = await decide_ends(self._store, scope, old, new)
            claims_slot = new.slot is not None and new.quarantine is None and not _SLOT_FIELDS.isdisjoint(changes)
            if claims_slot:
                permit_writing(scope, (old, new))
                decisions = await decide_edit(self._store, self._neighbors, scope, memory, new)
                if decisions is not None:
                    decided = {decision.memory.mid for decision in decisions if isinstance(decision, Update)}
                    decisions += [end for end in ends if end.memory.mid not in decided]
                    if (await self._commits.commit(scope, decisions, CLIENT_STATEMENT)).done:
                        await self._followers.follow([memory.mid])
                        return await self.get(scope, memory_id)
                    continue
            # `written_by` names the writer of a new text, but no field says who changed the validity.
            is_moved = any(getattr(new, name) != getattr(old, name) for name in _VALIDITY)
            origin = ChangeOrigin(scope.actor or CLIENT_STATEMENT.actor) if is_moved else None
            if await self._store.replace_memory(scope, memory, new, settled=not claims_slot, origin=origin, ends=ends):
                await self._followers.follow([memory.mid, *(end.memory.mid for end in ends)])
                return new
        raise Conflict(f"Memory with ID {memory_id} is constantly being changed by other requests: try again")

    def _changes_of(self, body: EditMemoryRecordRequest) -> dict[str, Any]:
        body_fields = {name: getattr(body, name) for name in body.model_fields_set}
        changes = {name: value for name, value in body_fields.items() if value is not None or name not in _NEVER_EMPTY}
        if "metadata" in changes:
            changes["metadata"] = changes["metadata"] or {}
            note_unreadable_dates([changes["metadata"]])
        if body.text and self._settings.longterm.redact_secrets:
            changes["text"] = redact(body.text)
        return {name: None if value == "" else value for name, value in changes.items()}

    async def delete(self, scope: Scope, memory_ids: Sequence[str]) -> AckResponse:
        """Permanently delete memories. Ignore unknown and repeated ids."""
        self.require()
        records = [record for record in await self._store.get(scope, list(dict.fromkeys(memory_ids))) if record is not None]
        deleted = await self._deletion.delete_records(scope, records)
        return AckResponse(status=f"ok, deleted {deleted} memories")
