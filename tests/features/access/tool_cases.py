"""More hostile calls: MCP tools, resources and prompts, and routes outside the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from agent_memory_client.models.features.prompt_options import PromptOptions
from tests.features.access.hostile import ANA, COACH, OWNED, Case, Ids, Sent, bodies, filters_of, owners_of, said_by


def _tool(name: str, **arguments: Any) -> Case:
    return _mcp("tools/call", name=name, arguments=arguments)


TOOL_CASES: dict[str, Callable[[Ids], list[Case]]] = {
    "get_current_datetime": lambda i: [_tool("get_current_datetime")],
    "create_long_term_memories": lambda i: (
        [
            _tool("create_long_term_memories", memories=[{"id": name, "text": "mine", "memory_type": "semantic", **i.where}])
            for name in (i.memory, *OWNED)
        ]
        + [_tool("create_long_term_memories", memories=body["memories"]) for body in bodies(i)]
    ),
    "search_long_term_memory": lambda i: [
        _tool("search_long_term_memory", **filters_of(i)),
        _tool("search_long_term_memory", text="secret tea", namespace={"startswith": i.namespace}),
    ],
    "memory_prompt": lambda i: [
        _tool("memory_prompt", query="secret tea", session_id={"eq": i.session}, namespace={"eq": i.namespace}),
        _tool("memory_prompt", query="secret tea", session_id={"eq": "shared"}, user_id={"eq": "ana"}),
        _tool("memory_prompt", query="secret tea"),
        _tool(
            "memory_prompt",
            query="What happened?",
            sections={name: {} for name in PromptOptions.model_fields},
            user_id={"eq": "ana"},
            namespace={"eq": "work"},
        ),
    ],
    "set_working_memory": lambda i: [
        _tool("set_working_memory", session_id=i.session, **said_by(i)),
        *(_tool("set_working_memory", session_id=i.session, **body) for body in bodies(i)),
        _tool("set_working_memory", session_id="shared", **bodies(i)[1]),
    ],
    "get_working_memory": lambda i: [
        _tool("get_working_memory", session_id=i.session, **i.where),
        _tool("get_working_memory", session_id="shared", user_id="ana", namespace="work"),
        _tool("get_working_memory", session_id="shared"),
    ],
    "get_profile": lambda i: [_tool("get_profile", query="secret tea", **where) for where in (i.where, ANA, {})],
    "get_timeline": lambda i: [_tool("get_timeline", entity=i.memory, **where) for where in (i.where, ANA, {})],
    "get_long_term_memory": lambda i: [_tool("get_long_term_memory", memory_id=name) for name in (i.memory, "m-shared")],
    "edit_long_term_memory": lambda i: (
        [_tool("edit_long_term_memory", memory_id=name, text="changed") for name in (i.memory, "m-shared")]
        + [_tool("edit_long_term_memory", memory_id=i.memory, text="secret tea is planted", **ANA)]
    ),
    "delete_long_term_memories": lambda i: [_tool("delete_long_term_memories", memory_ids=[i.memory, "m-shared"])],
    "core_memory_append": lambda i: [
        _tool("core_memory_append", label="human", content="secret tea is planted", **whose)
        for whose in (i.where, ANA, COACH, {"agent_id": i.memory}, {"agent_id": "coach"})
    ],
    "core_memory_replace": lambda i: [
        _tool("core_memory_replace", label="human", old_content="secret", new_content="planted", **whose)
        for whose in (i.where, ANA, COACH, {"agent_id": "coach"})
    ],
    "memory_insert": lambda i: [
        _tool("memory_insert", label="human", new_str="secret tea is planted", **whose)
        for whose in (i.where, ANA, COACH, {"agent_id": i.memory}, {"agent_id": "coach"})
    ],
    "memory_replace": lambda i: [
        _tool("memory_replace", label="human", old_str="secret", new_str="planted", **whose)
        for whose in (i.where, ANA, COACH, {"agent_id": "coach"})
    ],
    "memory_rethink": lambda i: [
        _tool("memory_rethink", section="human", new_memory="secret tea is planted", **whose)
        for whose in (i.where, ANA, COACH, {"agent_id": i.memory}, {"agent_id": "coach"})
    ],
    "memory_finish_edits": lambda i: [_tool("memory_finish_edits")],
    "archival_memory_insert": lambda i: [
        _tool("archival_memory_insert", content="secret tea is planted", tags=["ana"], **whose)
        for whose in (i.where, ANA, COACH, {"agent_id": i.memory}, {"agent_id": "coach"})
    ],
    "archival_memory_search": lambda i: [
        _tool("archival_memory_search", query=text, **whose)
        for text in ("secret tea", "")
        for whose in (i.where, ANA, COACH, {"agent_id": "coach"}, {})
    ],
    "conversation_search": lambda i: [
        _tool("conversation_search", query="secret tea", **whose) for whose in (i.where, ANA, COACH, {"agent_id": "coach"}, {})
    ],
    "conversation_search_date": lambda i: [
        _tool("conversation_search_date", start_date="2000-01-01", end_date="2999-12-31", **whose)
        for whose in (i.where, ANA, COACH, {"agent_id": "coach"}, {})
    ],
    "forget_memory": lambda i: [
        _tool("forget_memory", text="secret tea", dry_run=False, **i.where),
        _tool("forget_memory", text="drinks secret tea", user_id="ana", dry_run=False),
        _tool("forget_memory", ids=[i.memory, "m-shared", "x1"], dry_run=False),
    ],
    "search_procedures": lambda i: [_tool("search_procedures", situation="secret tea", limit=50, **owner) for owner in owners_of(i)],
    "save_procedure": lambda i: [_tool("save_procedure", when_to_use="secret tea", steps=["mine"], **whose) for whose in (i.where, ANA)],
    "compact_long_term_memories": lambda i: [_tool("compact_long_term_memories", **i.where, session_id=i.session)],
}


def _mcp(method: str, **params: Any) -> Case:
    return "POST", "/mcp", {}, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _resources(i: Ids, path: str) -> list[Case]:
    paths = {path.replace("{session_id}", quote(session, safe="")) for session in (i.session, "shared", "waiting")}
    return [_mcp("resources/read", uri=f"memory://{quote(user, safe='')}/{end}") for user in (i.user, "ana") for end in sorted(paths)]


RESOURCE_CASES: dict[str, Callable[[Ids], list[Case]]] = {
    **{f"memory://{{user_id}}/{path}": lambda i, path=path: _resources(i, path) for path in ("profile", "blocks", "sessions/{session_id}")},
    "what_do_you_know_about_me": lambda i: [
        _mcp("prompts/get", name="what_do_you_know_about_me", arguments={"user_id": user}) for user in (i.user, "ana")
    ],
}
"""For each template of MCP resources, and for each MCP prompt."""


def _model_calls(i: Ids, path: str) -> list[Case]:
    """Return model calls through the proxy that try to use the victim's memories or session."""
    asked = {"role": "user", "content": "What do I drink? Which secret tea?"}
    body = {"model": "m", ("input" if path.endswith("responses") else "messages"): [asked]}
    headers = [{"x-memory-namespace": namespace, "x-memory-agent": agent} for namespace in (i.namespace, "work") for agent in ("", "coach")]
    names = [{"user": i.user}, {"user": "ana"}, {"user": i.user, "metadata": {"user_id": "ana", "session_id": "shared"}}, {"user": "ana "}]
    calls: list[Case] = [("POST", path, {}, Sent(json=body | {"conversation": i.session} | each, headers=headers[0])) for each in names]
    hers = {"x-memory-user": "ana", "x-memory-session": "shared"}
    return calls + [("POST", path, {}, Sent(json=body, headers=each | hers)) for each in headers]


def _connection(i: Ids) -> dict[str, str]:
    """Return a connection request that impersonates the victim's app."""
    app = {"client_id": i.made["app"], "redirect_uri": "https://evil.example/callback", "resource": "http://127.0.0.1/mcp"}
    return app | {"response_type": "code", "code_challenge": i.session, "code_challenge_method": "S256", "state": i.user, "scope": i.memory}


UNLISTED: dict[str, Callable[[Ids], list[Case]]] = {
    **{path: lambda i, path=path: _model_calls(i, path) for path in ("/proxy/v1/chat/completions", "/proxy/v1/responses")},
    "/register": lambda i: [
        ("POST", "/register", {}, {"client_name": i.user, "client_id": i.made["app"], "redirect_uris": ["https://evil.example/callback"]})
    ],
    "/authorize": lambda i: [("GET", "/authorize", _connection(i), None)],
    "/console/connect": lambda i: [
        ("GET", "/console/connect", _connection(i), None),
        ("POST", "/console/connect", _connection(i), Sent(data={"user": "ana", "allow": "yes"})),
    ],
    "/token": lambda i: [
        (
            "POST",
            "/token",
            {},
            Sent(data={**_connection(i), "grant_type": "authorization_code", "code": i.memory}),
        ),
        ("POST", "/token", {}, Sent(data={**_connection(i), "grant_type": "refresh_token", "refresh_token": i.memory})),
    ],
    "/revoke": lambda i: [("POST", "/revoke", {}, Sent(data={"token": token, **_connection(i)})) for token in (i.token, i.memory)],
}
"""For each route missing from the OpenAPI document: requests with hostile ids."""
