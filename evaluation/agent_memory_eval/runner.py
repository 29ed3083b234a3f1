"""Store conversations on a server, ask questions about them, and score the responses."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from agent_memory.foundation.core.errors import StartupError
from agent_memory_eval.api import Api, say, wait_for_work
from agent_memory_eval.baselines import Baselines
from agent_memory_eval.metrics import DEEPEST, prompt_scores, recall_scores
from agent_memory_eval.question_sets import Conversation, Question, QuestionSet, Turn

Via = Literal["memories", "sessions"]
"""How turns are stored: as `message` memories, or as session messages, from which the server makes memories."""

SERVER = "server"
PROMPT_TOKENS = 4000
_BATCH = 50
_WAIT_SECONDS = 2 * 3600.0
_SEED = 1


@dataclass(slots=True)
class Row:
    """The results for one question. `prompt` is empty if no prompt was requested."""

    conversation: Conversation
    question: Question
    wants_prompt: bool
    ranked: list[str] = field(default_factory=list[str])
    recall: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    prompt: dict[str, float] = field(default_factory=dict[str, float])


def choose(questions: QuestionSet, most: int | None, prompts: int) -> list[Row]:
    """Select questions and return empty rows for them. The selection is the same for every run.

    At most `most` questions with evidence are selected. Prompts are requested for at most `prompts`
    questions with evidence and at most `prompts` without.
    """
    rng = random.Random(_SEED)
    every = [(conversation, question) for conversation in questions.conversations for question in conversation.questions]
    answerable = [pair for pair in every if pair[1].evidence]
    unknown = [pair for pair in every if not pair[1].evidence]
    sampled = rng.sample(answerable, min(len(answerable) if most is None else most, len(answerable)))
    prompted = {id(question) for pairs in (sampled, unknown) for _, question in rng.sample(pairs, min(prompts, len(pairs)))}
    chosen = {id(question) for _, question in sampled} | prompted
    return [Row(*pair, wants_prompt=id(pair[1]) in prompted) for pair in every if id(pair[1]) in chosen]


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """A run of one set on one server. User ids start with `name` to keep runs separate."""

    api: Api
    name: str
    via: Via = "memories"

    def user_of(self, conversation: Conversation) -> str:
        """Return the user id for a conversation."""
        return f"{self.name}-{conversation.id}"

    def memory_id(self, conversation: Conversation, turn: Turn) -> str:
        """Return the memory or message id for a turn."""
        return f"{self.user_of(conversation)}-{turn.id}"

    async def measure(self, rows: Sequence[Row], baselines: Baselines | None) -> None:
        """Store the conversations, ask the questions, and fill in the rows. Raises StartupError."""
        conversations = list({row.conversation.id: row.conversation for row in rows}.values())
        await self.store(conversations)
        for done, conversation in enumerate(conversations, start=1):
            own = [row for row in rows if row.conversation is conversation]
            for row in own:
                await self._ask(row)
            judged = [row for row in own if row.question.evidence]
            if baselines and judged:
                rankings = await baselines.rank(conversation, [row.question for row in judged])
                for row, by_system in zip(judged, rankings, strict=True):
                    row.recall |= {name: recall_scores(ranked, row.question.evidence) for name, ranked in by_system.items()}
            say(f"{self.name}: asked about {done} of {len(conversations)} users")

    async def store(self, conversations: Sequence[Conversation]) -> None:
        """Store conversations and wait for the server's background work. Raises StartupError."""
        for conversation in conversations:
            for turns in self._batches(conversation):
                if self.via == "memories":
                    await self._create(conversation, turns)
                else:
                    await self._append(conversation, turns)
        say(f"{self.name}: sent {sum(len(one.turns) for one in conversations)} turns of {len(conversations)} users")
        work = await wait_for_work(self.api, _WAIT_SECONDS)
        if dead := {name: kind["dead"] for name, kind in work.items() if kind["dead"]}:
            raise StartupError(f"background work failed: {dead}")

    async def search(self, conversation: Conversation, question: Question) -> list[str]:
        """Search for a question as its user, and return the ids of the turns found, best first."""
        time_asked = {"reference_time": question.time.isoformat()} if question.time else {}
        body = {"text": question.text, "user_id": {"eq": self.user_of(conversation)}, "limit": DEEPEST, **time_asked}
        return self._turns(conversation, (await self.api.call("POST", "/v1/long-term-memory/search", body))["memories"])

    async def _ask(self, row: Row) -> None:
        if row.question.evidence:
            row.ranked = await self.search(row.conversation, row.question)
            row.recall[SERVER] = recall_scores(row.ranked, row.question.evidence)
        if row.wants_prompt:
            user = self.user_of(row.conversation)
            body = {
                "query": row.question.text,
                # This session does not exist, so only long-term memory can answer.
                "session": {"session_id": f"{user}-asks", "user_id": user},
                "long_term_search": True,
                "max_tokens": PROMPT_TOKENS,
            }
            prompt = await self.api.call("POST", "/v1/memory/prompt", body)
            prompt_ids = self._turns(row.conversation, prompt.get("long_term_memories") or [])
            row.prompt = prompt_scores(prompt_ids, row.question.evidence)

    def _turns(self, conversation: Conversation, memories: Sequence[dict[str, Any]]) -> list[str]:
        ids = {self.memory_id(conversation, turn): turn.id for turn in conversation.turns}
        return [ids.get(origin, f"?{origin}") for origin in origins(memories, ids)]

    def _batches(self, conversation: Conversation) -> Iterable[list[Turn]]:
        groups: dict[str, list[Turn]] = defaultdict(list)
        for turn in conversation.turns:
            groups["" if self.via == "memories" else turn.session].append(turn)
        return [turns[start : start + _BATCH] for turns in groups.values() for start in range(0, len(turns), _BATCH)]

    def _session_id(self, conversation: Conversation, turn: Turn) -> str:
        return f"{self.user_of(conversation)}-s{turn.session}".replace("/", "_")

    async def _create(self, conversation: Conversation, turns: Sequence[Turn]) -> None:
        memories = [
            {
                "id": self.memory_id(conversation, turn),
                "text": turn.text,
                "user_id": self.user_of(conversation),
                "session_id": self._session_id(conversation, turn),
                "memory_type": "message",
                "created_at": turn.time.isoformat(),
                "event_date": turn.time.isoformat(),
            }
            for turn in turns
        ]
        await self.api.call("POST", "/v1/long-term-memory/", {"memories": memories, "deduplicate": False})

    async def _append(self, conversation: Conversation, turns: Sequence[Turn]) -> None:
        messages = [
            {
                "id": self.memory_id(conversation, turn),
                "role": turn.role,
                "content": turn.text,
                "created_at": turn.time.isoformat(),
            }
            for turn in turns
        ]
        path = f"/v1/working-memory/{quote(self._session_id(conversation, turns[0]), safe='')}/messages"
        await self.api.call("POST", path, {"messages": messages, "user_id": self.user_of(conversation)})


def origins(memories: Sequence[dict[str, Any]], turn_ids: Container[str]) -> list[str]:
    """Return the unique ids of the memories' source turns, in rank order.

    If a memory's turn is unknown, return the memory's own id.
    """
    ranked_ids: dict[str, None] = {}
    for memory in memories:
        sources = [memory["id"]] if memory["id"] in turn_ids else [one for one in memory.get("extracted_from") or [] if one in turn_ids]
        ranked_ids.update(dict.fromkeys(sources or [memory["id"]]))
    return list(ranked_ids)
