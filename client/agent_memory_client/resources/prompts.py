"""Build memory prompts: messages that are ready for a chat model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, cast

from pydantic import BaseModel

from agent_memory_client._wire.answers import PromptAnswer, parse_prompt
from agent_memory_client._wire.requests import Call, as_body, omit_none, query, search_body, within
from agent_memory_client.models import PromptFormat, SearchModeEnum, SearchRequest
from agent_memory_client.models.features.prompt_options import PromptOptionArguments, PromptOptions
from agent_memory_client.models.prompt import ShownMessages
from agent_memory_client.resources.base import Resource


class Prompts(Resource):
    """Build prompts from a session and matching long-term memories."""

    async def render(
        self,
        query: str,
        session_id: str | None = None,
        namespace: str | None = None,
        model_name: str | None = None,
        context_window_max: int | None = None,
        long_term_search: dict[str, Any] | SearchRequest | bool | None = None,
        user_id: str | None = None,
        optimize_query: bool = False,
        *,
        max_tokens: int | None = None,
        format: PromptFormat | None = None,
        include_ids: bool = True,
        agent_id: str | None = None,
        timezone: str | None = None,
        shown_messages: Mapping[str, Any] | ShownMessages | None = None,
        **options: Unpack[PromptOptionArguments],
    ) -> PromptAnswer:
        """Return messages for a chat model, with a session and the memories that match `query`.

        Pass a session, a search, or both. `user_id` and `namespace` identify their owner. The
        result is a dict with properties. For chat completion APIs, use its `to_openai()`. `format`
        selects the target API: "openai" (`messages`), "anthropic" (`system` and `messages`) or
        "text" (`text`). `relevant` is True if memory added anything. `agent_id` adds the agent's
        memory blocks, and is not needed if it was set when the session was stored. `timezone` (an
        IANA name) sets the time zone for dates. The default is the user's time zone.

        If there is no session, `shown_messages` (`session_id`, `message_ids`) lists messages that
        you show to the model yourself. The prompt omits memories derived only from these messages.

        `options` adds more sections, each a model or mapping. See `models.features.prompt_options`.
        """
        values = omit_none(
            max_tokens=max_tokens, format=format, agent_id=agent_id, timezone=timezone, include_ids=None if include_ids else False
        )
        body: dict[str, Any] = {"query": query, **values, **_bodies_of(options)}
        if shown_messages is not None:
            body["shown_messages"] = as_body(shown_messages)
        scope = self._scope(namespace, user_id)
        if session_id is None:
            body |= omit_none(**scope)
        else:
            body["session"] = {"session_id": session_id, **omit_none(**scope), **self._window(model_name, context_window_max)}
        if isinstance(long_term_search, bool):
            body["long_term_search"] = long_term_search
        elif long_term_search is not None:
            body["long_term_search"] = within(as_body(long_term_search), scope["namespace"])
        return await self._render(body, optimize_query)

    async def render_memories(
        self,
        query: str,
        session_id: dict[str, Any] | None = None,
        namespace: dict[str, Any] | None = None,
        topics: dict[str, Any] | None = None,
        entities: dict[str, Any] | None = None,
        created_at: dict[str, Any] | None = None,
        last_accessed: dict[str, Any] | None = None,
        user_id: dict[str, Any] | None = None,
        distance_threshold: float | None = None,
        memory_type: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        optimize_query: bool = False,
        search_mode: SearchModeEnum | str | None = None,
        hybrid_alpha: float | None = None,
        text_scorer: str | None = None,
        event_date: dict[str, Any] | None = None,
        recency_boost: bool | None = None,
        recency_semantic_weight: float | None = None,
        recency_recency_weight: float | None = None,
        recency_freshness_weight: float | None = None,
        recency_novelty_weight: float | None = None,
        recency_half_life_last_access_days: float | None = None,
        recency_half_life_created_days: float | None = None,
        server_side_recency: bool | None = None,
        *,
        min_relevance: float | None = None,
    ) -> PromptAnswer:
        """Return a prompt with only the long-term memories that match `query` and the filters."""
        search = search_body(
            self._config.default_namespace,
            session_id=session_id,
            namespace=namespace,
            topics=topics,
            entities=entities,
            created_at=created_at,
            last_accessed=last_accessed,
            user_id=user_id,
            memory_type=memory_type,
            event_date=event_date,
            recency_boost=recency_boost,
            recency_semantic_weight=recency_semantic_weight,
            recency_recency_weight=recency_recency_weight,
            recency_freshness_weight=recency_freshness_weight,
            recency_novelty_weight=recency_novelty_weight,
            recency_half_life_last_access_days=recency_half_life_last_access_days,
            recency_half_life_created_days=recency_half_life_created_days,
            server_side_recency=server_side_recency,
            limit=limit,
            offset=offset,
            search_mode=search_mode,
            hybrid_alpha=hybrid_alpha,
            text_scorer=text_scorer,
            distance_threshold=distance_threshold,
            min_relevance=min_relevance,
        )
        return await self._render({"query": query, "long_term_search": search}, optimize_query)

    async def _render(self, body: dict[str, Any], optimize_query: bool) -> PromptAnswer:
        call = Call("POST", "/v1/memory/prompt", query(optimize_query=optimize_query), body)
        return parse_prompt(await self._send(call))


def _bodies_of(options: PromptOptionArguments) -> dict[str, Any]:
    """Convert the given options to request fields. Raises TypeError for an unknown option."""
    sections = cast("Mapping[str, BaseModel | Mapping[str, Any] | None]", options)
    for name in sections:
        if name not in PromptOptions.model_fields:
            raise TypeError(f"Prompts.render() got an unexpected keyword argument {name!r}")
    return {name: as_body(option) for name, option in sections.items() if option is not None}
