"""The prompt that asks a model to rewrite a question in the words of its answer, for a search by meaning."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.text.data_fences import DATA_RULE, fence

_TASK = """You prepare questions for a search by meaning in the long-term memory of an assistant: short notes and messages about its users.

Rewrite the question as the few words that a memory which answers it would probably hold.

Rules:
- Keep every name, number, date, place and term of the question as it is written; add none.
- Leave out question words, politeness and everything that is only about how to answer.
- Write in the language of the question, at most 30 words, no full sentence needed.
- {data_rule}

Answer with a JSON object: {{"query": "the words to search for"}}"""


class RewrittenQuery(BaseModel):
    query: str = Field(description="The words to search for.")


def rewrite_query(query: str, template: str | None = None) -> Sequence[ChatMessage]:
    """Return the messages for one model call. `template` replaces the task; it contains `{query}`."""
    question = f'The question:\n{fence(query, "question")}\n\nNow answer with the words under "query".'
    if template is not None:
        return [ChatMessage("user", template.replace("{query}", query) + '\n\nAnswer with a JSON object: {"query": "the rewritten query"}')]
    return [ChatMessage("system", _TASK.format(data_rule=DATA_RULE)), ChatMessage("user", question)]
