"""Requests with hostile ids and filters for every API operation.

The OpenAPI tests and the isolation tests share them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from agent_memory.features.memories.records import message_memory_id
from agent_memory.foundation.core.scope import SessionRef
from tests.registrations import registrations

TIME = "2026-01-01T00:00:00Z"

HOSTILE = [
    *("", " ", "\t", "\n", "*", "a*", "|", "ana|bo", "{}", "{*}", "}", '"', "'", "\\", "(", "-", "~", "%", "$", "#", "?", "[]"),
    *("@t:{*}", "ana}) | (@t:{*", "*) | @u:{*", "..", "../ana", "a/b", "\x00", "ana\x00", "\u202eana", "\ud7ff", "\U0001f600"),
    *("ANA", "Ana", "ana ", " ana", "caf\u00e9", "cafe\u0301", "\u00df", "ss", "\u0130", "A" * 513, "x" * 5000),
    *("None", "null", "0", "-1", "default", "shared", "work"),
]
_TWINS = ["{}*", "*{}", "{}|x", " {}", "{}\x00"]

hostile = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=40),
    st.text(alphabet="*|{}@()~-\"'\\%$:;,.<>=[] \x00\n", min_size=1, max_size=20),
    st.builds(
        str.format,
        st.sampled_from(_TWINS),
        st.sampled_from(["ana", "shared", "work"]),
    ),
)


@dataclass(frozen=True)
class Ids:
    """The four values in a test case, and ids that the server assigned to the other tenant."""

    session: str
    user: str
    namespace: str
    memory: str
    operation: str
    token: str
    procedure: str = "p"
    change: str = "c"
    batch: str = "b"
    made: Mapping[str, str] = field(default_factory=lambda: defaultdict(lambda: "none"))
    """Ids that the server assigned to objects of registered features, by kind."""

    @property
    def s(self) -> str:
        return quote(self.session, safe="")

    @property
    def number(self) -> int:
        """A number for this case, which selects one of many forgeries."""
        return sum(map(ord, self.session + self.user + self.namespace + self.memory))

    @property
    def where(self) -> dict[str, str]:
        return {"user_id": self.user, "namespace": self.namespace}


Case = tuple[str, str, dict[str, Any], Any]


class Sent(dict[str, Any]):
    """Arguments for httpx that replace a JSON body, such as a form and headers."""


def exported(i: Ids, user: str) -> bytes:
    """Return export lines that try to overwrite the victim's memory, changes and session."""
    marks = {"n": "1", "h": "0" * 32, "ra": "1.0"}
    record = {"id": i.memory, "text": "mine", "user_id": "ana", "namespace": "work"}
    lines: list[dict[str, Any]] = [
        {"kind": "header", "format": "agent-memory-user", "version": 1, "user_id": "ana"},
        {"kind": "memory", "id": "m-shared", "state": "current", "now": {"record": record | {"id": "m-shared"}, "marks": marks}},
        {"kind": "memory", "id": i.memory, "state": "current", "now": {"record": record, "marks": marks}, "aliases": [["m-shared", ""]]},
        {"kind": "change", "id": "01HZZZZZZZZZZZZZZZZZZZZZZZ", "what": "update", "state": "applied", "batch": "b", "at": TIME}
        | {"memories": ["m-shared"], "lines": [["e", "m-shared", "abc"], ["m", "m-shared", "-", "1"]]},
        {"kind": "session", "session_id": i.session, "namespace": i.namespace, "messages": []},
        {"kind": "session", "session_id": "shared", "namespace": "work", "messages": []},
        {
            "kind": "session",
            "session_id": f"{i.session}~",
            "namespace": i.namespace,
            "messages": [],
            "memories": [record | {"id": "m-shared"}],
        },
        {"kind": "waiting", "session_id": f"{i.session}~~", "messages": [], "memories": [record, record | {"id": "m-aside"}]},
        {"kind": "rules", "namespace": "work", "rules": {}},
        {"kind": "item", "namespace": "work", "path": ["secrets"], "key": "tea", "value": {"text": "mine"}},
        *(line for one in registrations() for line in one.forged_lines(i, user)),
        {
            "kind": "procedure",
            "procedure": {"id": i.procedure, "when_to_use": "secret tea", "steps": ["mine"], "version": 9, "created_at": TIME}
            | {"updated_at": TIME, "user_id": "ana", "namespace": "work"},
            "history": {"changes": [], "feedback": []},
            "marks": {},
        },
        {
            "kind": "tool_memory",
            "tool": "brew",
            "user_id": "ana",
            "namespace": "work",
            "fields": {"d": '{"tool": "brew"}', "c": "1", "h": "9"},
        },
    ]
    return b"\n".join(json.dumps(line).encode() for line in lines)


ANA = {"user_id": "ana", "namespace": "work"}
COACH = {"agent_id": "coach", **ANA}
"""The victim and her agent."""
# Id of the memory that the victim's message becomes. An attacker who knows both names can compute it.
OF_MESSAGE = message_memory_id(SessionRef("shared", "work", "ana"), "x1")
OWNED = ("m-shared", "m-aside", OF_MESSAGE)
"""Ids of the victim's memories."""


def forged(i: Ids) -> list[dict[str, Any]]:
    """Return memories that try to take over the victim's. Send each in a separate request."""
    names = [{"id": name, "text": "mine"} for name in (i.memory, *OWNED)]
    places: list[dict[str, Any]] = [
        {},
        i.where,
        ANA,
        {"user_id": "ana"},
        {"namespace": "work"},
        {"agent_id": i.user},
        {"agent_id": "robot", **ANA},
    ]
    planted = {"text": "secret tea is planted", "pinned": True, "trust": 1.0, "source_class": "user", "approved": "0" * 24}
    others = {"supersedes": ["m-shared"], "superseded_by": "m-shared", "slot": i.namespace or "slot", "extracted_from": ["x1"]}
    named = [name | place for name in names for place in places]
    return [*named, *(planted | {"id": i.memory} | place for place in places), planted | others | {"id": i.memory, **ANA}]


def bodies(i: Ids) -> list[dict[str, Any]]:
    """Return session bodies, each with a forged memory that depends on the case."""
    some, at = forged(i), i.number
    chosen = [some[(at + 5 * step) % len(some)] for step in range(3)]
    whose = [i.where, {}, ANA]
    return [
        {"messages": [], "memories": [one, {"id": f"{i.memory[:100]}~", "text": "mine"}], **where}
        for one, where in zip(chosen, whose[at % 3 :] + whose[: at % 3], strict=True)
    ]


def said_by(i: Ids) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "mine", "id": "x1", "created_at": TIME}], **i.where}


def filters_of(i: Ids) -> dict[str, Any]:
    return {
        "session_id": {"any": [i.session, "shared"]},
        "user_id": {"eq": i.user},
        "namespace": {"ne": i.namespace},
        "topics": {"any": [i.user]},
        "text": f"secret {i.user} tea",
    }


def _wide(i: Ids) -> dict[str, Any]:
    return {"text": f"secret tea {i.memory}", "namespace": {"startswith": i.namespace}, "limit": 100}


def item_owners(i: Ids) -> list[dict[str, str]]:
    """Return owners for item requests: the case's values, the victim, and similar owners."""
    return [i.where, ANA, {"user_id": "ana"}, {"namespace": "work"}, {}]


def _q(text: str) -> str:
    return quote(text, safe="")


BLOCKS = "/v1/blocks"
CHANGES, ITEMS = "/v1/changes", "/v1/items"
SESSIONS, MEMORIES, TOKENS = "/v1/working-memory/", "/v1/long-term-memory/", "/v1/auth/tokens"
PROCEDURES, TOOL_MEMORY = "/v1/procedures", "/v1/tools/memory"


def owners_of(i: Ids) -> list[dict[str, str]]:
    """Return owners for requests about procedures and tools."""
    return [i.where, {}, ANA, {"user_id": "ana"}, {"agent_id": i.user}, {"agent_id": "robot", **ANA}]


def _of_procedure(i: Ids, method: str, below: str = "", body: Any = None) -> list[Case]:
    return [(method, f"{PROCEDURES}/{_q(name)}{below}", {}, body) for name in (i.memory, i.procedure)]


CASES: dict[str, Callable[[Ids], list[Case]]] = {
    "list_sessions_v1_working_memory__get": lambda i: [("GET", SESSIONS, i.where, None), ("GET", SESSIONS, {}, None)],
    "append_messages_v1_working_memory__session_id__messages_post": lambda i: [("POST", f"{SESSIONS}{i.s}/messages", {}, said_by(i))],
    "update_data_v1_working_memory__session_id__data_patch": lambda i: [
        ("PATCH", f"{SESSIONS}{i.s}/data", i.where, {"data": {"changed": True}}),
        ("PATCH", f"{SESSIONS}shared/data", {}, {"data": {"changed": True}}),
    ],
    "get_working_memory_v1_working_memory__session_id__get": lambda i: [
        ("GET", f"{SESSIONS}{i.s}", i.where, None),
        ("GET", f"{SESSIONS}shared", {"user_id": i.user}, None),
        ("GET", f"{SESSIONS}shared", {}, None),
        ("GET", f"{SESSIONS}shared", {"user_id": "ana", "namespace": "work"}, None),
    ],
    "put_working_memory_v1_working_memory__session_id__put": lambda i: [
        ("PUT", f"{SESSIONS}{i.s}", i.where, said_by(i)),
        *(("PUT", f"{SESSIONS}{i.s}", {}, body) for body in bodies(i)),
        ("PUT", f"{SESSIONS}own~{i.s}", i.where, bodies(i)[0]),
    ],
    "delete_working_memory_v1_working_memory__session_id__delete": lambda i: [
        ("DELETE", f"{SESSIONS}{i.s}", i.where, None),
        ("DELETE", f"{SESSIONS}shared", {"memories": "true"}, None),
    ],
    "memory_prompt_v1_memory_prompt_post": lambda i: [
        (
            "POST",
            "/v1/memory/prompt",
            {},
            {"query": "secret tea", "session": {"session_id": "shared", **i.where}, "long_term_search": _wide(i)},
        ),
        ("POST", "/v1/memory/prompt", {}, {"query": "secret tea", "session": {"session_id": i.session}, "long_term_search": True}),
        *(
            (
                "POST",
                "/v1/memory/prompt",
                {},
                {"query": query, "long_term_search": True, "pinned": {}, "profile": {}, "timeline": {}, "procedures": {}, **whose},
            )
            for query in ("secret tea", "What happened in 2026?")
            for whose in (i.where, ANA, {"agent_id": i.user, **ANA}, {"agent_id": "coach"}, {"agent_id": "coach", **i.where})
        ),
    ],
    "search_long_term_memory_v1_long_term_memory_search_post": lambda i: [
        ("POST", f"{MEMORIES}search", {}, filters_of(i)),
        ("POST", f"{MEMORIES}search", {}, _wide(i)),
        ("POST", f"{MEMORIES}search", {}, {"text": "", "limit": 100}),
    ],
    "explain_long_term_memory": lambda i: [("POST", f"{MEMORIES}explain", {}, {"memory_id": i.memory, "search": _wide(i)})],
    "create_long_term_memory_v1_long_term_memory__post": lambda i: [
        ("POST", MEMORIES, {}, {"memories": [{"id": i.memory, "text": "mine", **i.where}]}),
        *(("POST", MEMORIES, {}, {"memories": body["memories"], "deduplicate": bool(i.number % 2)}) for body in bodies(i)),
        *(("POST", MEMORIES, {}, {"memories": [{"id": name, "text": "mine", **i.where}]}) for name in OWNED),
    ],
    "delete_long_term_memory_v1_long_term_memory_delete": lambda i: [("DELETE", MEMORIES, {"memory_ids": [i.memory, "m-shared"]}, None)],
    "get_long_term_memory_v1_long_term_memory__memory_id__get": lambda i: [
        ("GET", f"{MEMORIES}{_q(i.memory)}", {}, None),
        ("GET", f"{MEMORIES}m-shared", {}, None),
    ],
    "update_long_term_memory_v1_long_term_memory__memory_id__patch": lambda i: [
        ("PATCH", f"{MEMORIES}{_q(i.memory)}", {}, {"text": "changed"}),
        ("PATCH", f"{MEMORIES}m-shared", {}, {"user_id": "eve"}),
        ("PATCH", f"{MEMORIES}{_q(i.memory)}", {}, {"text": "secret tea is planted", **ANA}),
        ("PATCH", f"{MEMORIES}{_q(i.memory)}", {}, {"user_id": i.user, "namespace": "work", "session_id": "shared"}),
    ],
    "get_memory_evidence": lambda i: [("GET", f"{MEMORIES}{_q(name)}/evidence", {}, None) for name in (i.memory, "m-shared")],
    "get_memory_history": lambda i: [("GET", f"{MEMORIES}{_q(name)}/history", {}, None) for name in (i.memory, "m-shared")],
    "list_changes": lambda i: [
        ("GET", CHANGES, {"limit": "100"}, None),
        ("GET", CHANGES, {"memory_id": "m-shared"}, None),
        ("GET", CHANGES, {"batch_id": i.memory, **i.where}, None),
    ],
    "get_change": lambda i: [("GET", f"{CHANGES}/{_q(name)}", {}, None) for name in (i.memory, i.change)],
    **{
        f"{how}_change": lambda i, how=how: [("POST", f"{CHANGES}/{_q(name)}/{how}", {}, None) for name in (i.memory, i.change)]
        for how in ("undo", "approve", "reject")
    },
    "undo_batch": lambda i: [("POST", f"{CHANGES}/batches/{_q(name)}/undo", {}, None) for name in (i.memory, i.batch)],
    "forget_endpoint_v1_long_term_memory_forget_post": lambda i: [
        ("POST", f"{MEMORIES}forget", {**i.where, "dry_run": "false"}, {"policy": {"max_age_days": 0}}),
        ("POST", f"{MEMORIES}forget", {"dry_run": "false"}, {"policy": {"budget": 0}}),
    ],
    "purge_source": lambda i: [
        ("POST", f"{MEMORIES}purge", {**i.where, "dry_run": "false"}, {"source_class": ["client", "user"], "session_id": i.session}),
        ("POST", f"{MEMORIES}purge", {"dry_run": "true"}, {"agent_id": i.user, "import_source": i.memory, "metadata": {i.namespace: "x"}}),
        ("POST", f"{MEMORIES}purge", {"user_id": "ana", "dry_run": "false"}, {"source_class": ["client"]}),
    ],
    "compact_long_term_memories_endpoint_v1_long_term_memory_compact_post": lambda i: [("POST", f"{MEMORIES}compact", i.where, None)],
    "get_extraction_rules_v1_extraction_rules_get": lambda i: [
        ("GET", "/v1/extraction-rules", query, None) for query in (i.where, {}, {"user_id": "ana"})
    ],
    "put_extraction_rules_v1_extraction_rules_put": lambda i: [("PUT", "/v1/extraction-rules", i.where, {})],
    "delete_extraction_rules_v1_extraction_rules_delete": lambda i: [("DELETE", "/v1/extraction-rules", i.where, None)],
    "put_item": lambda i: [
        ("PUT", ITEMS, where, {"path": path, "key": "tea", "value": {"text": "mine"}})
        for where in item_owners(i)
        for path in ([i.memory], ["secrets"])
    ],
    "get_item": lambda i: [
        ("GET", ITEMS, {**where, "path": ["secrets"], "key": key}, None) for where in item_owners(i) for key in ("tea", i.memory)
    ],
    "delete_item": lambda i: [("DELETE", ITEMS, {**where, "path": ["secrets"], "key": "tea"}, None) for where in item_owners(i)],
    "search_items": lambda i: [
        ("POST", f"{ITEMS}/search", where, body)
        for where in item_owners(i)
        for body in (
            {},
            {"query": f"secret tea {i.memory}"[:2000], "limit": 100},
            {"prefix": ["secrets"], "filter": {"text": {"$ne": i.memory}}},
            {"prefix": [i.session], "query": "zebraquartz"},
        )
    ],
    "list_item_namespaces": lambda i: [
        ("POST", f"{ITEMS}/namespaces", where, {"match_conditions": [{"match_type": "prefix", "path": [label]}]})
        for where in item_owners(i)
        for label in ("*", i.session)
    ],
    "run_item_batch": lambda i: [
        (
            "POST",
            f"{ITEMS}/batch",
            where,
            {
                "operations": [
                    {"op": "get", "path": ["secrets"], "key": "tea"},
                    {"op": "search", "query": "secret tea"},
                    {"op": "list_namespaces"},
                    {"op": "put", "path": ["secrets"], "key": "tea", "value": {"text": "mine"}},
                    {"op": "delete", "path": ["secrets"], "key": "tea"},
                ]
            },
        )
        for where in item_owners(i)
    ],
    "list_operations": lambda i: [("GET", "/v1/operations", {"limit": 100}, None)],
    "get_operation": lambda i: [("GET", f"/v1/operations/{_q(i.operation)}", {}, None)],
    "drop_operation": lambda i: [("DELETE", f"/v1/operations/{_q(i.operation)}", {}, None)],
    "replay_operation": lambda i: [("POST", f"/v1/operations/{_q(i.operation)}/replay", {}, None)],
    "flush_working_memory": lambda i: [("POST", f"{SESSIONS}{i.s}/flush", i.where, None)],
    "list_blocks": lambda i: [
        *(("GET", BLOCKS, query, None) for query in (i.where, {"user_id": "ana"}, ANA)),
        *(
            ("GET", BLOCKS, {**query, "shown": "true"}, None)
            for query in (i.where, {"user_id": "ana"}, ANA, {"namespace": "work"}, {"agent_id": "coach"}, {"agent_id": "coach", **i.where})
        ),
    ],
    "get_block": lambda i: [("GET", f"{BLOCKS}/{label}", query, None) for label in (i.s, "human") for query in (i.where, ANA, COACH)],
    "put_block": lambda i: [
        *(("PUT", f"{BLOCKS}/{label}", query, {"value": "secret tea is planted"}) for label in (i.s, "human") for query in (i.where, ANA)),
        ("PUT", f"{BLOCKS}/human", {**ANA, "agent_id": i.memory}, {"value": "secret tea is planted"}),
    ],
    "edit_block": lambda i: [
        ("PATCH", f"{BLOCKS}/human", query, {"operation": "append", "content": "secret tea is planted"}) for query in (i.where, ANA, COACH)
    ],
    "delete_block": lambda i: [("DELETE", f"{BLOCKS}/{label}", query, None) for label in (i.s, "human") for query in (i.where, ANA, COACH)],
    "get_block_history": lambda i: [("GET", f"{BLOCKS}/human/history", query, None) for query in (i.where, ANA, COACH)],
    "undo_block": lambda i: [("POST", f"{BLOCKS}/human/undo", query, {}) for query in (i.where, ANA, COACH)],
    **{
        f"{how}_block": lambda i, how=how: [
            ("POST", f"{BLOCKS}/human/{how}", ANA, {"agent_id": i.memory}),
            ("POST", f"{BLOCKS}/human/{how}", i.where, ANA),
            ("POST", f"{BLOCKS}/human/{how}", ANA, i.where),
            ("POST", f"{BLOCKS}/human/{how}", ANA, {"agent_id": "coach"}),
        ]
        for how in ("attach", "detach")
    },
    "forget_memory": lambda i: [
        ("POST", "/v1/memory/forget", {}, {"text": "secret tea", **i.where}),
        ("POST", "/v1/memory/forget", {}, {"text": "what I said about secret tea", "user_id": "ana"}),
        ("POST", "/v1/memory/forget", {}, {"text": "drinks secret tea", "user_id": "ana", "dry_run": True}),
        ("POST", "/v1/memory/forget", {}, {"ids": [i.memory, "m-shared", "x1"]}),
        ("POST", "/v1/memory/forget", {}, {"ids": ["x1", *OWNED], **ANA}),
        ("POST", "/v1/memory/forget", {}, {"text": "that", "session_id": i.session, **i.where}),
    ],
    "get_forgotten": lambda i: [("GET", f"/v1/memory/forget/{_q(i.memory)}", {}, None)],
    "undo_forget_memory": lambda i: [("POST", f"/v1/memory/forget/{_q(i.memory)}/undo", {}, None)],
    "delete_agent": lambda i: [
        ("DELETE", f"/v1/agents/{_q(i.user)}", {"namespace": i.namespace}, None),
        ("DELETE", "/v1/agents/robot", {}, None),
        ("DELETE", "/v1/agents/coach", {}, None),
    ],
    "delete_user": lambda i: [
        ("DELETE", f"/v1/users/{_q(i.user)}", {"namespace": i.namespace}, None),
        ("DELETE", "/v1/users/ana", {}, None),
    ],
    "export_user": lambda i: [
        ("POST", f"/v1/users/{_q(i.user)}/export", {}, None),
        ("POST", "/v1/users/ana/export", {}, None),
        ("POST", "/v1/users/ana/export", {"namespace": i.namespace}, None),
    ],
    "import_user": lambda i: [("POST", f"/v1/users/{_q(user)}/import", {}, exported(i, user)) for user in (i.user, "ana")],
    "export_agent": lambda i: [
        ("POST", f"/v1/agents/{_q(agent)}/export", where, None)
        for agent in (i.user, "coach", "robot")
        for where in ({}, {"namespace": "work"})
    ],
    "import_agent": lambda i: [
        ("POST", f"/v1/agents/{_q(agent)}/import", {}, exported(i, owner)) for agent in (i.user, "coach") for owner in (i.user, "ana")
    ],
    "list_quarantine": lambda i: [("GET", "/v1/quarantine", query, None) for query in ({}, i.where, {"user_id": "ana"})],
    **{
        f"{how}_quarantined": lambda i, how=how: [
            ("POST", f"/v1/quarantine/{_q(name)}/{how}", {}, None) for name in (i.memory, "m-shared", "m-aside")
        ]
        for how in ("approve", "reject")
    },
    "get_profile_v1_profile_get": lambda i: [
        ("GET", "/v1/profile", query, None) for query in ({**i.where, "q": "secret tea"}, {"user_id": "ana"}, ANA, {**ANA, "as_of": TIME})
    ],
    "list_profile_moves_v1_profile_moves_get": lambda i: [("GET", "/v1/profile/moves", query, None) for query in (i.where, ANA)],
    "rebuild_profile_v1_profile_rebuild_post": lambda i: [("POST", "/v1/profile/rebuild", query, None) for query in (i.where, ANA)],
    "get_profile_schema_v1_profile_schema_get": lambda i: [
        ("GET", "/v1/profile/schema", query, None) for query in ({}, {"namespace": i.namespace}, {"namespace": "work"})
    ],
    "put_profile_schema_v1_profile_schema_put": lambda i: [
        ("PUT", "/v1/profile/schema", {"namespace": namespace}, {"topics": {"mine": {"sub_topics": {"mine": "mine"}}}})
        for namespace in (i.namespace, "work")
    ],
    "delete_profile_schema_v1_profile_schema_delete": lambda i: [
        ("DELETE", "/v1/profile/schema", {"namespace": namespace}, None) for namespace in (i.namespace, "work")
    ],
    "get_timeline_v1_timeline_get": lambda i: [
        ("GET", "/v1/timeline", query, None)
        for query in (
            i.where,
            {**ANA, "from": "2025-01-01", "granularity": "week"},
            {**ANA, "topic": "ana", "known_at": TIME},
            {"user_id": "ana"},
        )
    ],
    "rebuild_timeline_v1_timeline_rebuild_post": lambda i: [("POST", "/v1/timeline/rebuild", query, None) for query in (i.where, ANA)],
    "list_tokens": lambda i: [("GET", TOKENS, {}, None)],
    "create_token": lambda i: [("POST", TOKENS, {}, {"tenant": i.user, "users": [i.user]})],
    "get_token": lambda i: [("GET", f"{TOKENS}/{_q(i.token)}", {}, None)],
    "delete_token": lambda i: [("DELETE", f"{TOKENS}/{_q(i.token)}", {}, None)],
    "rotate_token": lambda i: [("POST", f"{TOKENS}/{_q(i.token)}/rotate", {}, {})],
    "create_procedure_v1_procedures_post": lambda i: [
        ("POST", PROCEDURES, {}, {"when_to_use": "secret tea", "steps": ["mine"], **owner})
        for owner in (i.where, ANA, {"agent_id": i.user})
    ],
    "list_procedures_v1_procedures_get": lambda i: [("GET", PROCEDURES, owner, None) for owner in owners_of(i)],
    "search_procedures_v1_procedures_search_post": lambda i: [
        ("POST", f"{PROCEDURES}/search", {}, {"situation": f"secret tea {i.memory}", "result": None, "limit": 50, **owner})
        for owner in owners_of(i)
    ],
    "get_procedure_v1_procedures__procedure_id__get": lambda i: _of_procedure(i, "GET"),
    "update_procedure_v1_procedures__procedure_id__patch": lambda i: _of_procedure(i, "PATCH", body={"steps": ["mine"]}),
    "delete_procedure_v1_procedures__procedure_id__delete": lambda i: _of_procedure(i, "DELETE"),
    "give_procedure_feedback_v1_procedures__procedure_id__feedback_post": lambda i: _of_procedure(
        i, "POST", "/feedback", {"helped": False}
    ),
    "get_procedure_history_v1_procedures__procedure_id__history_get": lambda i: _of_procedure(i, "GET", "/history"),
    "undo_procedure_change_v1_procedures__procedure_id__undo_post": lambda i: _of_procedure(i, "POST", "/undo"),
    "mark_session_result_v1_working_memory__session_id__result_patch": lambda i: [
        ("PATCH", f"{SESSIONS}{i.s}/result", i.where, {"result": "failure"}),
        ("PATCH", f"{SESSIONS}shared/result", {}, {"result": "failure", "agent_id": i.user}),
        ("PATCH", f"{SESSIONS}shared/result", {"user_id": i.user, "namespace": "work"}, {"result": "failure"}),
    ],
    "get_session_result_v1_session_results__session_id__get": lambda i: [
        ("GET", f"/v1/session-results/{name}", where, None) for name, where in ((i.s, i.where), ("shared", {}), ("shared", ANA))
    ],
    "list_tool_memory_v1_tools_memory_get": lambda i: [
        ("GET", TOOL_MEMORY, owner | more, None) for owner in owners_of(i) for more in ({}, {"tool": "brew"})
    ],
    "count_tool_call_v1_tools_memory_post": lambda i: [
        ("POST", TOOL_MEMORY, {}, {"tool": name, "arguments": {i.user[:20]: 1}, **owner})
        for name in ("brew", i.memory)
        for owner in (i.where, ANA)
    ],
    **{name: cases for one in registrations() for name, cases in one.attacks.items()},
    # These operations have no tenant.
    "get_health_v1_health_get": lambda i: [("GET", "/v1/health", {}, None)],
    "get_ready_v1_ready_get": lambda i: [("GET", "/v1/ready", {}, None)],
    "get_metrics_metrics_get": lambda i: [("GET", "/metrics", {}, None)],
    "get_load_history": lambda i: [("GET", "/v1/metrics/history", {"period": period}, None) for period in ("hour", "day")],
    "get_reembedding": lambda i: [("GET", "/v1/reembed", {}, None)],
    "start_reembedding": lambda i: [("POST", "/v1/reembed", {}, {"model": "use-multilingual-v3", "dry_run": True})],
    "act_on_reembedding": lambda i: [("POST", f"/v1/reembed/{action}", {}, None) for action in ("pause", "confirm", "rollback", "abort")],
}
