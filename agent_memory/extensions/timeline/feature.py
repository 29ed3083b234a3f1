"""The timelines feature: a user's dated events, updated whenever a memory changes."""

from __future__ import annotations

from agent_memory.extensions.profile.history import ProfileHistory
from agent_memory.extensions.timeline.follower import TimelineFollower
from agent_memory.extensions.timeline.history import TimelineHistory
from agent_memory.extensions.timeline.section import TimelineSection
from agent_memory.extensions.timeline.service import SUMMARIZE, TimelineService
from agent_memory.extensions.timeline.store import TimelineStore
from agent_memory.extensions.timeline.summaries.store import SummaryStore
from agent_memory.extensions.timeline.summaries.summarizer import PeriodSummarizer
from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import MemoryScan
from agent_memory.foundation.core.feature import Feature, KeySpace, PeriodicJob, Services, while_enabled
from agent_memory.foundation.foundation import Foundation


def open_timelines(foundation: Foundation, services: Services) -> None:
    client, keys, statements = foundation.client, foundation.keys, not foundation.extracts
    store = TimelineStore(client, keys)
    history = TimelineHistory(client, services[ProfileHistory], services[MemoryStore])
    follower = TimelineFollower(store, services[RuleStore], services[MemoryScan], history, statements=statements)
    service = TimelineService(store, follower, history, statements=statements)
    summaries = SummaryStore(client, keys)
    limits = services[ContextLimits] if foundation.extracts else None
    summarizer = PeriodSummarizer(summaries, services[TenantModels], limits, foundation.counter)
    services.add(store, history, follower, service, summaries, summarizer, TimelineSection(store, foundation.counter))


_DERIVED = "an import rebuilds it from the memories"

FEATURE = Feature(
    name="timeline",
    open=open_timelines,
    routes=("agent_memory.extensions.timeline.routes:router",),
    examples="agent_memory.extensions.timeline.examples:EXAMPLES",
    keys=(
        KeySpace(
            "tl:<owner>", "hash", "a user's timeline in a namespace: memories `m<mid>`, events `e…`", "until erased", not_exported=_DERIVED
        ),
        KeySpace("tl:<owner>:b", "zset", "events by first day: all, and per topic or entity", "as the timeline", not_exported=_DERIVED),
        KeySpace("tl:<owner>:e", "zset", "multi-day events, by last day", "as the timeline", not_exported=_DERIVED),
        KeySpace("tl:<owner>:s", "hash", "summaries of days, weeks and months", "as the timeline", not_exported=_DERIVED),
        KeySpace("tl:<owner>:p", "zset", "periods awaiting a summary, by due time (s)", "as the timeline", not_exported=_DERIVED),
        KeySpace("tlp", "zset", "timelines with such periods, by earliest due time (s)", "until their summaries are made", personal=False),
        KeySpace("tlo:<mid>", "string", "the timeline that contains a memory", "as the memory's events", not_exported=_DERIVED),
        KeySpace("tlu:<user>", "hash", "a user's timelines, each with its namespace", "while they contain events", not_exported=_DERIVED),
    ),
    jobs={"rebuild-timeline": "agent_memory_worker.timeline:rebuild_timeline", SUMMARIZE: "agent_memory_worker.timeline:summarize_periods"},
    schedule={"timeline": PeriodicJob("agent_memory_worker.timeline:order_summaries", while_enabled(5.0))},
    eraser=TimelineFollower,
    follower=TimelineFollower,
    section=TimelineSection,
    tools=("agent_memory.extensions.timeline.tools:TOOLS",),
)
