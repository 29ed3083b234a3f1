"""Test that requests, `prompts.render` and type checkers use the same prompt options."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any, Unpack, get_type_hints

import httpx
import pytest

from agent_memory_client import MemoryAPIClient, MemoryClient, MemoryClientConfig, SyncMemoryAPIClient, SyncMemoryClient
from agent_memory_client.models import MemoryPromptRequest, prompt
from agent_memory_client.models.features.pinned import PinnedInPrompt
from agent_memory_client.models.features.procedures import ProcedurePromptOptions
from agent_memory_client.models.features.prompt_options import PromptOptionArguments, PromptOptions
from agent_memory_client.resources.prompts import Prompts

CONFIG = MemoryClientConfig(base_url="http://memory")
RENDERS: list[Callable[[httpx.MockTransport], Any]] = [
    lambda transport: MemoryClient(CONFIG, transport=transport).prompts.render,
    lambda transport: MemoryAPIClient(CONFIG, transport=transport).memory_prompt,
    lambda transport: SyncMemoryClient(CONFIG, transport=transport).prompts.render,
    lambda transport: SyncMemoryAPIClient(CONFIG, transport=transport).memory_prompt,
]


async def rendered(client: Callable[[httpx.MockTransport], Any], **options: Any) -> list[dict[str, Any]]:
    """Return the request bodies that a call sends."""
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json={"messages": [], "long_term_memories": None})

    asked = client(httpx.MockTransport(answer))("q", long_term_search=True, **options)
    if inspect.isawaitable(asked):
        await asked
    return bodies


def test_each_prompt_option_is_a_field_and_a_keyword() -> None:
    assert list(PromptOptions.model_fields) == list(PromptOptionArguments.__annotations__)
    assert not PromptOptionArguments.__required_keys__
    for name, hint in get_type_hints(PromptOptionArguments).items():
        assert hint == dict[str, Any] | PromptOptions.model_fields[name].annotation, name


def test_option_names_do_not_collide_with_other_parameters() -> None:
    own = {*prompt.PromptQuestion.model_fields, *inspect.signature(Prompts.render).parameters}
    assert not own & PromptOptions.model_fields.keys()
    assert MemoryPromptRequest.model_fields.keys() == prompt.PromptQuestion.model_fields.keys() | PromptOptions.model_fields.keys()


def test_each_option_is_optional_and_described() -> None:
    for name, field in PromptOptions.model_fields.items():
        assert field.default is None, name
        assert field.description, name


def test_render_keywords_are_typed() -> None:
    assert get_type_hints(Prompts.render)["options"] == Unpack[PromptOptionArguments]


@pytest.mark.parametrize("client", RENDERS)
async def test_options_are_sent_as_given(client: Callable[[httpx.MockTransport], Any]) -> None:
    mapping: Any = {"tokens": 100}
    (sent,) = await rendered(client, profile=mapping, pinned=PinnedInPrompt(tokens=50), procedures=ProcedurePromptOptions(), timeline=None)
    assert sent == {
        "query": "q",
        "long_term_search": True,
        "profile": {"tokens": 100},
        "pinned": {"tokens": 50},
        "procedures": {"limit": 3, "tokens": 300},
    }


@pytest.mark.parametrize("client", RENDERS)
async def test_prompt_scope_is_sent_with_and_without_a_session(client: Callable[[httpx.MockTransport], Any]) -> None:
    whose = {"user_id": "ada", "namespace": "work"}
    (sent,) = await rendered(client, **whose)
    assert sent == {"query": "q", "long_term_search": True, **whose}
    (sent,) = await rendered(client, session_id="s", **whose)
    assert sent == {"query": "q", "long_term_search": True, "session": {"session_id": "s", **whose}}


@pytest.mark.parametrize("client", RENDERS)
async def test_unknown_option_raises_type_error(client: Callable[[httpx.MockTransport], Any]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'profil'"):
        await rendered(client, profil={"tokens": 100})
