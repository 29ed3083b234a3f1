"""Let a language model rewrite a question in the words of its likely answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import BaseModel, Field

from agent_memory.foundation.core.errors import BudgetSpent, ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import ChatMessage, ChatModel
from agent_memory.foundation.text.data_fences import DATA_RULE, fence

log = get_logger(__name__)

_ANSWER_TOKENS = 200
# A query that is several pages long is a text to compare, not a question.
_LONGEST = 4000
# The number of cached rewrites. Later pages in the same search use them.
_MOST_CACHED = 1000

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
    """Build a prompt that asks a model to rewrite a query.

    `template`, which contains `{query}`, replaces the default instructions.
    """
    question = f'The question:\n{fence(query, "question")}\n\nNow answer with the words under "query".'
    if template is not None:
        return [ChatMessage("user", template.replace("{query}", query) + '\n\nAnswer with a JSON object: {"query": "the rewritten query"}')]
    return [ChatMessage("system", _TASK.format(data_rule=DATA_RULE)), ChatMessage("user", question)]


class QueryRewriter:
    """Rewrites queries, or leaves them unchanged if no model is available."""

    def __init__(self, settings: Settings, chat_of: Callable[[str], ChatModel | None]) -> None:
        """Create a rewriter. `chat_of` returns a tenant's model, or None."""
        self._chat_of = chat_of
        self._fast = settings.models.fast_model
        self._settings = settings.search
        self._rewritten_queries: dict[str, str] = {}

    async def rewritten(self, tenant: str, text: str) -> tuple[str, str | None]:
        """Return the rewritten query, or the original query and why rewriting failed."""
        chat = self._chat_of(tenant)
        if chat is None:
            return text, "optimize_query: no language model is configured; searched for the query as it is"
        if len(text) > _LONGEST:
            return text, f"optimize_query: the query is longer than {_LONGEST} characters; searched for it as it is"
        if text in self._rewritten_queries:
            return self._rewritten_queries[text], None
        seconds = self._settings.optimize_seconds
        try:
            messages = rewrite_query(text, self._settings.optimize_template)
            answer = await (chat.with_model(self._fast) if self._fast else chat).structured(
                messages, RewrittenQuery, max_tokens=_ANSWER_TOKENS, timeout=seconds
            )
        except (ModelUnavailable, ModelAnswerInvalid) as error:
            log.warning("query not rewritten", tenant=tenant, error=error)
            reason = f"no answer within {seconds:g} s" if error.data.get("reason") == "timeout" else "the language model gave no answer"
            if isinstance(error, BudgetSpent):
                reason = "the tenant has used up today's model tokens"
            return text, f"optimize_query: {reason}; searched for the query as it is"
        words = " ".join(answer.query.split())
        if len(words) < self._settings.optimize_least or not any(c.isalnum() for c in words):
            return text, "optimize_query: the language model's answer is too short; searched for the query as it is"
        if len(self._rewritten_queries) >= _MOST_CACHED:
            self._rewritten_queries.clear()
        self._rewritten_queries[text] = words
        return words, None
