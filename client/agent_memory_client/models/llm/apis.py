"""The supported model APIs, with their paths and functions for requests and replies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_memory_client.models.llm import requests
from agent_memory_client.models.llm.answers import AnswerReader, AnthropicAnswer, ChatAnswer, ResponsesAnswer
from agent_memory_client.models.llm.requests import Body, Message


@dataclass(frozen=True, slots=True)
class ModelApi:
    path: str
    """The end of a request's path."""
    messages: Callable[[Body], list[Message]]
    with_context: Callable[[Body, str], Body]
    """Adds a text for the model to a request that has at least one message."""
    answer: Callable[[], AnswerReader]


CHAT = ModelApi("/chat/completions", requests.chat_messages, requests.with_chat_context, ChatAnswer)
RESPONSES = ModelApi("/responses", requests.responses_messages, requests.with_responses_context, ResponsesAnswer)
ANTHROPIC = ModelApi("/v1/messages", requests.anthropic_messages, requests.with_anthropic_context, AnthropicAnswer)
