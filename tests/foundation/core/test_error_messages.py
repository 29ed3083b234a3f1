"""Test that 403, 404 and validation errors identify the field and the fix."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import agent_memory
from agent_memory.features.reembed.store import wrong_phase
from agent_memory.foundation.core.errors import Forbidden, NotFound
from agent_memory.foundation.core.permissions import permit_session, permit_writing
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory_client._wire.problems import problem_line
from agent_memory_client.models import MemoryPromptRequest, MemoryRecord, SearchRequest

_SOURCE = Path(agent_memory.__file__).parent


class _Switch(BaseModel):
    wait: bool | float = False
    size: int = 1


@pytest.mark.parametrize(
    ("model", "fields", "line"),
    [
        (SearchRequest, {"user_id": {"equals": "ada"}}, "user_id.equals: is not a known key: use eq, ne, not_eq, any, "),
        (SearchRequest, {"limit": "many"}, "limit: must be a whole number"),
        (SearchRequest, {"limit": 0}, "limit: must be at least 1"),
        (SearchRequest, {"text": 3}, "text: must be a string"),
        (SearchRequest, {"search_mode": "x"}, "search_mode: must be 'semantic', 'keyword' or 'hybrid'"),
        (SearchRequest, {"topics": {"any": []}}, "topics.any: must have at least 1 item, not 0"),
        (SearchRequest, {"created_at": {"gte": "soon"}}, "created_at.gte: must be a time in ISO 8601, such as "),
        (MemoryRecord, {"id": "m"}, "text: is required: add it"),
        (MemoryPromptRequest, {"query": "x", "long_term_search": {"limit": -1}}, "long_term_search.limit: must be at least 1"),
        (MemoryPromptRequest, {"query": "x", "long_term_search": 3}, "long_term_search: must be an object, or true or false"),
        (_Switch, {"wait": "later"}, "wait: must be true or false, or a number"),
        (_Switch, {"wait": "later", "size": 1.5}, "wait: must be true or false, or a number; size: must be a whole number"),
    ],
)
def test_invalid_values_are_described_by_what_they_must_be(model: type[BaseModel], fields: dict[str, Any], line: str) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(fields)
    assert problem_line(caught.value).startswith(line)


def test_invalid_field_of_an_alternative_is_the_only_problem() -> None:
    with pytest.raises(ValidationError) as caught:
        MemoryPromptRequest.model_validate({"query": "x", "long_term_search": {"limit": -1}})
    assert problem_line(caught.value) == "long_term_search.limit: must be at least 1"


@pytest.mark.parametrize(
    ("phase", "phases", "part"),
    [
        ("", ["swapped"], "no change of the embedding model is running: start one with POST /v1/reembed"),
        ("filling", ["swapped"], "in phase filling, but this action needs swapped: wait"),
        ("filling", [""], "already running (phase filling): confirm, roll back or abort it first"),
    ],
)
def test_wrong_phase_of_a_model_change_has_a_way_out(phase: str, phases: list[str], part: str) -> None:
    assert part in wrong_phase(phase, phases)


def test_refused_owner_is_named_with_a_way_out() -> None:
    scope = Scope(tenant="t", users=frozenset({"ada"}))
    with pytest.raises(Forbidden, match="the user_id of this session: use credentials that do, or another user_id") as refused:
        permit_session(scope, SessionRef("s", None, "bob"), write=False)
    assert refused.value.data == {"field": "user_id"}
    with pytest.raises(Forbidden, match="the user_id of a memory: use ") as refused:
        permit_writing(scope, [MemoryRecord(id="m", text="x", user_id="bob")], field="memories")
    assert refused.value.data == {"field": "memories.0.user_id"}


def test_missing_object_has_a_hint_beside_the_message_of_the_archived_server() -> None:
    error = NotFound("Session s1 not found", field="session_id")
    assert (error.message, error.data["field"]) == ("Session s1 not found", "session_id")
    assert error.advice.startswith("Session s1 not found: check session_id, ")


def _calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    for path in _SOURCE.rglob("*.py"):
        if f"{name}(" in (text := path.read_text()):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                    yield f"{path.relative_to(_SOURCE)}:{node.lineno}", node


@pytest.mark.parametrize("name", ["Forbidden", "NotFound"])
def test_every_refusal_names_a_field_or_a_fix(name: str) -> None:
    """In these messages, a fix follows a colon or a semicolon."""
    lacking = [
        place
        for place, call in _calls(name)
        if isinstance(message := call.args[0], ast.Constant | ast.JoinedStr)
        and not any(keyword.arg == "field" for keyword in call.keywords)
        and not any(sign in ast.unparse(message) for sign in (": ", "; "))
    ]
    assert lacking == []
