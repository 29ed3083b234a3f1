"""Build Ada's timeline in a rig, and read it directly or from prompts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from agent_memory.extensions.timeline.service import TimelineService
from agent_memory.extensions.timeline.store import TimelineOwner
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.recall.service import RecallService
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import MemoryPromptRequest
from agent_memory_client.models.features.timeline import TimelinePeriod, TimelineQuery
from agent_memory_worker.timeline import order_summaries
from tests.support.rig import SCOPE, Rig, record

OWNER = TimelineOwner(SCOPE.tenant, None, "ada")
TRIP = [
    ("rome", "Ada flew to Rome on 3 March 2024"),
    ("forum", "Ada saw the Forum on 4 March 2024"),
    ("home", "Ada flew home on 9 March 2024"),
    ("tooth", "Ada lost a tooth on 9 March 2024"),
    ("quiet", "Ada had a quiet March 2024"),
]


async def store(rig: Rig, *events: tuple[str, str], **more: Any) -> None:
    """Store events for Ada and run the follow-up work."""
    fields = {"user_id": "ada", "memory_type": "episodic", **more}
    told = datetime.now(UTC) - timedelta(days=1)
    # Each a second after the one before: this is their order within a day.
    records = [record(text, name, created_at=told + timedelta(seconds=n), **fields) for n, (name, text) in enumerate(events)]
    await rig.rt[MemoryStore].write(SCOPE, records)
    await follow(rig)


async def follow(rig: Rig) -> None:
    await rig.make_due(DueKind.FOLLOW)
    await rig.work(DueKind.FOLLOW)


async def close_periods(rig: Rig) -> None:
    """Run the periodic summary job as a worker would."""
    await order_summaries(rig.rt)
    await rig.make_due(DueKind.ORDER)
    await rig.work(DueKind.ORDER)


async def periods(rig: Rig, granularity: str = "month", **query: Any) -> dict[str, TimelinePeriod]:
    """Return Ada's periods by name."""
    asked = TimelineQuery.model_validate({"user_id": "ada", "granularity": granularity, **query})
    return {period.name: period for period in (await rig.rt[TimelineService].read(SCOPE, asked)).periods or ()}


async def text_of(rig: Rig, name: str = "2024-03", granularity: str = "month", **query: Any) -> str:
    """Return a period's current summary."""
    period = (await periods(rig, granularity, **query))[name]
    assert (period.state, period.summary is not None) == ("current", True), period
    assert period.summary is not None
    return period.summary.text


async def stored_bytes(rig: Rig) -> str:
    client, texts = rig.rt.client, list[str]()
    for key in await rig.raw_keys():
        if key.startswith("tl"):
            kind, name = await client.type(rig.keys.root + key), rig.keys.root + key
            values = {b"hash": client.hgetall, b"string": client.get}.get(kind)
            texts.append(f"{key} {await values(name) if values else await client.zrange(name, 0, -1)}")
    return "\n".join(texts)


async def prompt(rig: Rig, query: str, tokens: int = 300, *, scope: Scope = SCOPE, **more: Any) -> str:
    """Return the timeline section of a prompt for Ada."""
    asked = {"query": query, "user_id": "ada", "timeline": {"tokens": tokens}, "long_term_search": True, "format": "text", **more}
    body = MemoryPromptRequest.model_validate(asked)
    answer = await rig.rt[RecallService].build_prompt(scope, body)
    text = str(answer.prompt_values().get("text"))
    return text.partition("## From memory: what happened to the user")[2].partition("\n(The memories")[0].partition("\n")[2]
