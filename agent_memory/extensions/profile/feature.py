"""The profiles feature: stable and current facts about a user."""

from __future__ import annotations

from agent_memory.extensions.profile.follower import ProfileFollower
from agent_memory.extensions.profile.history import ProfileHistory
from agent_memory.extensions.profile.section import ProfileSection
from agent_memory.extensions.profile.service import ProfileService
from agent_memory.extensions.profile.store import ProfileStore
from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import MemoryScan
from agent_memory.foundation.core.feature import Feature, KeySpace, PeriodicJob, Services, while_enabled
from agent_memory.foundation.foundation import Foundation


def open_profiles(foundation: Foundation, services: Services) -> None:
    client, keys, statements = foundation.client, foundation.keys, not foundation.extracts
    store = ProfileStore(client, keys)
    follower = ProfileFollower(store, services[RuleStore], services[MemoryScan], statements=statements)
    history = ProfileHistory(client, keys, foundation.spec, services[MemoryStore])
    service = ProfileService(store, follower, history, services[SearchService], statements=statements)
    services.add(store, follower, history, service, ProfileSection(store, foundation.counter))


_DERIVED = "an import rebuilds it from the memories"

FEATURE = Feature(
    name="profile",
    open=open_profiles,
    routes=("agent_memory.extensions.profile.routes:router",),
    examples="agent_memory.extensions.profile.examples:EXAMPLES",
    keys=(
        KeySpace(
            "pf:<owner>",
            "hash",
            "a user's profile in a namespace: memories `m<mid>`, their entries `e<mid>` or `x<mid>`, groups `u…`, slots `s…`",
            "until it is erased",
            not_exported=_DERIVED,
        ),
        KeySpace("pf:<owner>:g", "zset", "recurring statements: their memories and days", "as the profile", not_exported=_DERIVED),
        KeySpace("pf:<owner>:s", "zset", "static memories, by the time (s) they become dynamic", "as the profile", not_exported=_DERIVED),
        KeySpace(
            "pf:<owner>:d", "zset", "dynamic memories, by the time (s) they were last stated", "as the profile", not_exported=_DERIVED
        ),
        KeySpace("pf:<owner>:l", "zset", "slots, by the time (s) their values were last stated", "as the profile", not_exported=_DERIVED),
        KeySpace("pf:<owner>:r", "hash", "the pages that requests read, with their versions", "as the profile", not_exported=_DERIVED),
        KeySpace("pf:<owner>:h", "list", "the latest moves of memories within the profile", "as the profile", not_exported=_DERIVED),
        KeySpace(
            "pf:<owner>:b", "hash", "the memories' places before a rebuild", "until the rebuild ends, at most a day", not_exported=_DERIVED
        ),
        KeySpace("pfl", "zset", "profiles, by the time (s) their next entry ages", "as the profiles", not_exported=_DERIVED),
        KeySpace("pfo:<mid>", "string", "the profile that contains a memory", "as the memory's entry", not_exported=_DERIVED),
        KeySpace("pfu:<user>", "hash", "a user's profiles, each with its namespace", "until they are erased", not_exported=_DERIVED),
        KeySpace("pfx:<tenant>", "hash", "profile schemas, by namespace", "until deleted", personal=False),
    ),
    jobs={"rebuild-profile": "agent_memory_worker.profile:rebuild_profile"},
    schedule={"profile": PeriodicJob("agent_memory_worker.profile:note_lapses", while_enabled(60.0))},
    eraser=ProfileFollower,
    follower=ProfileFollower,
    guide=ProfileService,
    section=ProfileSection,
    tools=("agent_memory.extensions.profile.tools:TOOLS",),
)
