"""Memory for model calls through the Chat Completions, Responses and Anthropic Messages APIs."""

from __future__ import annotations

from agent_memory_client.models.llm.answers import AnswerReader as AnswerReader
from agent_memory_client.models.llm.apis import ANTHROPIC as ANTHROPIC
from agent_memory_client.models.llm.apis import CHAT as CHAT
from agent_memory_client.models.llm.apis import RESPONSES as RESPONSES
from agent_memory_client.models.llm.apis import ModelApi as ModelApi
from agent_memory_client.models.llm.conversation import Conversation as Conversation
from agent_memory_client.models.llm.conversation import last_question as last_question
from agent_memory_client.models.llm.conversation import stored_message as stored_message
from agent_memory_client.models.llm.options import HEADERS as HEADERS
from agent_memory_client.models.llm.options import CallOptions as CallOptions
from agent_memory_client.models.llm.options import memory_headers as memory_headers
from agent_memory_client.models.llm.options import read_options as read_options
