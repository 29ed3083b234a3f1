"""`agent-memory explain`: why a search or a prompt of a running server did not return a memory, over its REST API."""

from __future__ import annotations

import json
from typing import Any

import typer

from agent_memory.cli.commands.jobs import Server, call
from agent_memory.cli.target import base_of, say_server

_WORDS = {
    "returned": "it is in the answer, at place {rank}",
    "not_found": "there is no such memory",
    "quarantined": "it reads like an instruction to a model and waits for a review",
    "filtered": "these filters exclude it: {filters}",
    "not_ranked": "it is not near to the query and shares no word with it",
    "below_threshold": "it is not near enough to the query",
    "beyond_limit": "it stands at place {rank}; a limit of {rank} would show it",
    "collapsed": "memory {by} says the same and stands before it",
    "already_shown": "it is one of the session's messages, which the prompt shows",
    "over_budget": "there is no room: memories may take {tokens_available} tokens, with it they would take {tokens_needed}",
}


def explain(memory_id: str, search: dict[str, Any], prompt: bool, max_tokens: int | None, server: Server, form: str) -> bool:
    """Asks and prints; returns whether the memory is in the answer. Raises StartupError in one line."""
    text = search.pop("text")
    body: dict[str, Any] = {"memory_id": memory_id}
    if prompt:
        budget = {} if max_tokens is None else {"max_tokens": max_tokens}
        body["prompt"] = {"query": text, "long_term_search": search or True, **budget}
    else:
        body["search"] = {"text": text, **search}
    answer: dict[str, Any] = call("POST", server, "/v1/long-term-memory/explain", body=body)
    say_server(base_of(server.url))
    if form == "json":
        typer.echo(json.dumps(answer, ensure_ascii=False))
        return answer["returned"]
    named = {**answer, "filters": ", ".join(answer["filters"])}
    typer.echo(f"{answer['reason']}: {_WORDS.get(answer['reason'], '').format(**named)}")
    for name, value in (answer["explanation"] or {}).items():
        if value not in (None, False):
            typer.echo(f"  {name}: {value:.4g}" if isinstance(value, float) else f"  {name}: {value}")
    return answer["returned"]
