"""A run: conversations go into a server through its public API, questions are asked, and what comes back is noted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import httpx

from agent_memory.core.errors import StartupError
from agent_memory.llm.tokens import TokenCounter
from agent_memory_eval.datasets import Conversation, ConversationTurn, Question, sessions_of

Entrance = Literal["memories", "sessions"]
Mode = Literal["default", "semantic", "keyword", "hybrid"]
Progress = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done, and how much there is (0: unknown)."""

PROMPT_TOKENS = 4000
_BATCH = 50
_POLL_SECONDS = 0.2
# Shorter evidence ("Yes!") would be found in any prompt.
_TELLING_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class Options:
    """How to run. `run` begins every id and user name, so that runs do not see each other; `max_tokens` None leaves the prompt's size to
    the server; `parallel` conversations are stored at a time."""

    url: str
    run: str
    entrance: Entrance = "memories"
    mode: Mode = "default"
    limit: int = 50
    prompt: bool = True
    max_tokens: int | None = None
    wait_seconds: float = 900.0
    ingest: bool = True
    parallel: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one question: the turns in rank order (one that is not known keeps its place), the time in milliseconds.

    `prompt_tokens` and `in_prompt` (is the text of an evidence turn in the prompt's first tokens) are None when no prompt was asked for.
    """

    conversation: str
    question: Question
    ranked: list[str]
    sessions: list[str]
    search_ms: float
    prompt_tokens: int | None = None
    in_prompt: bool | None = None
    prompt_ms: float | None = None


@dataclass
class EvaluationRun:
    """Everything that a run found out. `errors` holds a line for every question that was not answered."""

    options: Options
    turns: int = 0
    ingest_seconds: float = 0.0
    answers: list[Answer] = field(default_factory=list[Answer])
    errors: list[str] = field(default_factory=list[str])
    models: str = ""


class Api:
    """The calls of the public API that a run needs. Raises StartupError for a server that is not there or refuses."""

    def __init__(self, url: str) -> None:
        # A proxy of the environment is for servers elsewhere.
        local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
        self._url = url
        self._client = httpx.AsyncClient(base_url=url.rstrip("/"), timeout=120, trust_env=not local)

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.aclose()

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """The parsed answer."""
        status, answer = await self.exchange(method, path, body)
        if status >= 300:
            raise StartupError(f"the server at {self._url} answers {method} {path} with {status}: {str(answer)[:300]}")
        return answer

    async def exchange(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the parsed answer, also of a refusal."""
        try:
            response = await self._client.request(method, path, json=body)
            answer: Any = response.json() if response.content else None
        except httpx.InvalidURL as error:
            raise StartupError(f"{self._url} is not the URL of a server") from error
        except (httpx.HTTPError, ValueError) as error:
            raise StartupError(f"the server at {self._url} does not answer {method} {path}: {error or type(error).__name__}") from error
        return response.status_code, answer


async def run(options: Options, conversations: Sequence[Conversation], counter: TokenCounter, progress: Progress) -> EvaluationRun:
    """Ingests (unless told not to), waits until the server's background work is done, and asks. Raises StartupError."""
    result = EvaluationRun(options)
    async with Api(options.url) as api:
        result.models = str((await api.call("GET", "/v1/ready"))["checks"].get("models", ""))
        if options.ingest:
            started = time.monotonic()
            result.turns = await _ingest(api, options, conversations, progress)
            await _settle(api, options, progress)
            result.ingest_seconds = time.monotonic() - started
        total, done = sum(len(conversation.questions) for conversation in conversations), 0
        for conversation in conversations:
            turns = {message_id(options, conversation, turn): turn for turn in conversation.turns}
            for question in conversation.questions:
                try:
                    result.answers.append(await _ask(api, options, conversation, question, turns, counter))
                except StartupError as error:
                    result.errors.append(f"{conversation.id}: {question.text}: {error.message}")
                done += 1
                progress("asking", done, total)
    return result


def user_of(options: Options, conversation: Conversation) -> str:
    """The user that a conversation becomes."""
    return f"{options.run}-{conversation.id}"


def message_id(options: Options, conversation: Conversation, turn: ConversationTurn) -> str:
    """The id of the memory, or of the message, that a turn becomes."""
    return f"{user_of(options, conversation)}-{turn.id}"


def _session_id(options: Options, conversation: Conversation, session: str) -> str:
    return f"{user_of(options, conversation)}-s{session}".replace("/", "_")


async def _ingest(api: Api, options: Options, conversations: Sequence[Conversation], progress: Progress) -> int:
    total, done = sum(len(conversation.turns) for conversation in conversations), 0
    slots = asyncio.Semaphore(options.parallel)

    async def store(conversation: Conversation) -> None:
        nonlocal done
        if options.entrance == "memories":
            parts = [list(conversation.turns[start : start + _BATCH]) for start in range(0, len(conversation.turns), _BATCH)]
        else:
            sessions = sessions_of(conversation.turns).values()
            parts = [turns[start : start + _BATCH] for turns in sessions for start in range(0, len(turns), _BATCH)]
        async with slots:
            for turns in parts:
                await (_create if options.entrance == "memories" else _append)(api, options, conversation, turns)
                done += len(turns)
                progress("storing", done, total)

    try:
        async with asyncio.TaskGroup() as group:
            for conversation in conversations:
                group.create_task(store(conversation))
    except* StartupError as failed:
        first = failed.exceptions[0]
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    return done


async def _create(api: Api, options: Options, conversation: Conversation, turns: Sequence[ConversationTurn]) -> None:
    """Turns as `message` memories, each with its session and date."""
    memories = [
        {
            "id": message_id(options, conversation, turn),
            "text": turn.text,
            "user_id": user_of(options, conversation),
            "session_id": _session_id(options, conversation, turn.session),
            "memory_type": "message",
            "created_at": turn.when.isoformat(),
            "event_date": turn.when.isoformat(),
        }
        for turn in turns
    ]
    await api.call("POST", "/v1/long-term-memory/", {"memories": memories, "deduplicate": False})


async def _append(api: Api, options: Options, conversation: Conversation, turns: Sequence[ConversationTurn]) -> None:
    """Turns of one session as its messages, which the server turns into memories by itself."""
    messages = [
        {
            "id": message_id(options, conversation, turn),
            "role": turn.role,
            "content": turn.text,
            "created_at": turn.when.isoformat(),
        }
        for turn in turns
    ]
    path = f"/v1/working-memory/{quote(_session_id(options, conversation, turns[0].session), safe='')}/messages"
    await api.call("POST", path, {"messages": messages, "user_id": user_of(options, conversation)})


async def _settle(api: Api, options: Options, progress: Progress) -> None:
    """Waits until nothing is pending. Raises StartupError when that takes too long, or when the server gave work up."""
    deadline = time.monotonic() + options.wait_seconds
    most = 0
    while True:
        work: dict[str, dict[str, Any]] = (await api.call("GET", "/v1/ready"))["checks"].get("work", {})
        pending = sum(kind["pending"] for kind in work.values())
        most = max(most, pending)
        progress("indexing", most - pending, most)
        if not pending:
            break
        if time.monotonic() > deadline:
            raise StartupError(f"{pending} pieces of the server's background work are still pending after {options.wait_seconds:.0f} s")
        await asyncio.sleep(_POLL_SECONDS)
    if any(kind["dead"] for kind in work.values()):
        raise StartupError(f"the server gave background work up: { {name: kind['dead'] for name, kind in work.items()} }")


async def _ask(
    api: Api, options: Options, conversation: Conversation, question: Question, turns: dict[str, ConversationTurn], counter: TokenCounter
) -> Answer:
    user = user_of(options, conversation)
    when = {} if question.asked is None else {"reference_time": question.asked.isoformat()}
    body: dict[str, Any] = {"text": question.text, "user_id": {"eq": user}, "limit": options.limit, **when}
    if options.mode != "default":
        body["search_mode"] = options.mode
    started = time.perf_counter()
    memories: list[dict[str, Any]] = (await api.call("POST", "/v1/long-term-memory/search", body))["memories"]
    search_ms = (time.perf_counter() - started) * 1000
    names = origin_turns(memories, turns.keys())
    ranked = [turns[name].id if name in turns else f"?{name}" for name in names]
    sessions = list(dict.fromkeys(turns[name].session if name in turns else f"?{name}" for name in names))
    if not options.prompt:
        return Answer(conversation.id, question, ranked, sessions, search_ms)
    # A session that does not exist yet: only long-term memory can answer.
    search: Any = {**when, "user_id": {"eq": user}} if when else True
    asked: dict[str, Any] = {"query": question.text, "session": {"session_id": f"{user}-asks", "user_id": user}, "long_term_search": search}
    if options.max_tokens is not None:
        asked["max_tokens"] = options.max_tokens
    started = time.perf_counter()
    prompt = await api.call("POST", "/v1/memory/prompt", asked)
    prompt_ms = (time.perf_counter() - started) * 1000
    texts = [text_of(message["content"]) for message in prompt["messages"]]
    evidence = [turn.text for turn in turns.values() if turn.id in question.turns]
    in_prompt = holds(counter.truncate("\n".join(texts), options.max_tokens or PROMPT_TOKENS), evidence)
    return Answer(conversation.id, question, ranked, sessions, search_ms, sum(map(counter.count, texts)), in_prompt, prompt_ms)


def origin_turns(memories: Sequence[dict[str, Any]], turn_ids: Any) -> list[str]:
    """The turns that memories are or come from, in rank order, each once.

    A memory that comes from several turns takes a rank for each of them; one of unknown origin keeps its rank.
    """
    names: dict[str, None] = {}
    for memory in memories:
        if memory["id"] in turn_ids:
            names.setdefault(memory["id"])
        else:
            origins = [origin for origin in memory.get("extracted_from") or [] if origin in turn_ids]
            names.update(dict.fromkeys(name for name in origins or [memory["id"]] if name not in names))
    return list(names)


def text_of(content: Any) -> str:
    """The text of a prompt message's content."""
    return content if isinstance(content, str) else str(content.get("text") or "")


def holds(prompt: str, texts: Sequence[str]) -> bool:
    """Whether a prompt holds one of these texts, however it is quoted; texts too short to tell are passed over."""
    plain = _plain(prompt)
    return any(len(wanted) >= _TELLING_CHARACTERS and wanted in plain for wanted in map(_plain, texts))


def _plain(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
