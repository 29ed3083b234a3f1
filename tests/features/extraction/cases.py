"""Run scripted conversations through the real pipeline, and read the resulting memories."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from agent_memory.features.memories.records import READ_FIELDS, StoredMemory, read_row
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.runtime import Runtime
from agent_memory_client import MemoryAPIClient
from agent_memory_client.models import ClientMemoryRecord, ExtractionRules, MemoryMessage, MemoryStrategyConfig, WorkingMemory
from tests.support.lookalike import Lookalike
from tests.support.waiting import wait_until

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parents[2] / "data" / "extraction_cases.yaml").read_text("utf-8"))
SCOPE = scope_of_work("default")


def write_script(lookalike: Lookalike) -> None:
    scripted = lookalike.scripted
    scripted.silent = True
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    for case in CASES:
        for step in case["steps"]:
            said = [text for _, _, text in step.get("say", [])]
            for fact in step.get("facts", []):
                if fact.get("event_date") == "{yesterday}":
                    fact["event_date"] = yesterday
                at = step.get("at") or fact.get("from", said)[0]
                assert fact not in scripted.facts.setdefault(at, []), at
                scripted.facts[at].append(fact)
            for text, decision in step.get("decide", {}).items():
                assert text not in scripted.decisions, text
                scripted.decisions[text] = decision
            if "raw" in step:
                scripted.raw[said[0]] = step["raw"]
            if "raw_decision" in step:
                scripted.raw[step["facts"][0]["text"]] = step["raw_decision"]


@dataclass
class Memory:
    """A user's current memories, history and evidence, as stored in Redis."""

    current: list[StoredMemory] = field(default_factory=list)
    history: list[StoredMemory] = field(default_factory=list)
    evidence: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


async def read_memories(runtime: Runtime, keys: Keys) -> dict[str, Memory]:
    """Return all memories except messages, by user."""
    names = [key.decode() async for key in runtime.client.scan_iter(match=keys.root + "[mh]:*", count=1000)]
    async with runtime.client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.hmget(name, READ_FIELDS)
            pipe.hvals(keys.evidence(name.rsplit(":", 1)[-1]))
        replies = await pipe.execute()
    memories: dict[str, Memory] = defaultdict(Memory)
    for name, row, later in zip(names, replies[::2], replies[1::2], strict=True):
        found = read_row(SCOPE.tenant, name.rsplit(":", 1)[-1], row)
        if found is None or found.record.memory_type.value == "message":
            continue
        memory = memories[found.record.user_id or ""]
        if not name.startswith(f"{keys.root}m:"):
            memory.history.append(found)
            continue
        memory.current.append(found)
        first = [one.model_dump(mode="json", exclude_none=True) for one in found.record.evidence or []]
        memory.evidence[found.mid] = [*first, *map(json.loads, later)]
    return memories


@dataclass
class Conversation:
    """One scripted case, sent over HTTP as a separate user."""

    api: MemoryAPIClient
    runtime: Runtime
    keys: Keys
    case: dict[str, Any]
    said: list[MemoryMessage] = field(default_factory=list)

    @property
    def user(self) -> str:
        return self.case["name"]

    async def run(self) -> None:
        """Run all steps, finishing the background work after each."""
        if "rules" in self.case:
            await self.api.put_extraction_rules(ExtractionRules.model_validate(self.case["rules"]), user_id=self.user)
        if "strategy" in self.case:
            strategy = MemoryStrategyConfig.model_validate(self.case["strategy"])
            session = WorkingMemory(session_id="one", user_id=self.user, messages=[], long_term_memory_strategy=strategy)
            await self.api.put_working_memory("one", session, user_id=self.user)
        for number, step in enumerate(self.case["steps"]):
            last = number == len(self.case["steps"]) - 1
            await self._step(step, fails=last and "fails" in self.case)

    async def _step(self, step: dict[str, Any], *, fails: bool) -> None:
        session = step.get("session", "one")
        if "remember" in step:
            await self.api.create_long_term_memory(
                [ClientMemoryRecord(user_id=self.user, memory_type="semantic", **step["remember"])], wait=True
            )
        if "pin" in step:
            memory = (await read_memories(self.runtime, self.keys))[self.user]
            found = next(one for one in memory.current if one.record.text == step["pin"])
            await self.api.edit_long_term_memory(found.record.id, {"pinned": True})
        messages = [MemoryMessage(role=role, created_at=at, content=text) for role, at, text in step.get("say", [])]
        if "prompt" in step:
            prompt = await self.api.memory_prompt(step["prompt"], session_id=session, user_id=self.user, long_term_search={"limit": 10})
            assert prompt.long_term_memories, "there is something to inject"
            messages = [MemoryMessage(role=one["role"], content=one["content"]) for one in prompt.to_openai()]
        if step.get("again"):
            await self.api.delete_working_memory(session, user_id=self.user)
            messages = self.said
        self.said += [message for message in messages if message not in self.said]
        if messages:
            await self.api.append_messages(session, messages, user_id=self.user)
            await self._worked_off(session, fails=fails)

    async def _worked_off(self, session: str, *, fails: bool) -> None:
        member = self.keys.sid(SCOPE.tenant, SessionRef(session, None, self.user))
        await self.api.flush_working_memory(session, user_id=self.user)

        async def settled() -> bool:
            if fails:
                return member in await self.runtime.outbox.reasons(DueKind.EXTRACTION, 1000)
            pending = [await self.runtime.client.zscore(self.keys.due(kind), member) for kind in (DueKind.SESSION, DueKind.EXTRACTION)]
            return pending == [None, None]

        await wait_until(settled, f"the work on {self.user!r}")

    async def failure(self) -> str:
        """Return the reason why the session's last extraction failed."""
        member = self.keys.sid(SCOPE.tenant, SessionRef("one", None, self.user))
        operation = await self.api.get_operation(f"{DueKind.EXTRACTION}-{member}")
        return (operation and operation.reason) or ""
