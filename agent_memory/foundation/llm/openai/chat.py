"""Chat with models on any OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import openai
from pydantic import BaseModel

from agent_memory.foundation.core.errors import ContextExceeded, ModelAnswerInvalid
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm import token_usage
from agent_memory.foundation.llm.base import Answer, ChatMessage
from agent_memory.foundation.llm.catalog import model_context
from agent_memory.foundation.llm.model_context import ModelContext, fingerprint
from agent_memory.foundation.llm.openai import served_context, structured
from agent_memory.foundation.llm.openai.server import Deadline, ModelServer, RequestRefused
from agent_memory.foundation.llm.openai.streaming import Streaming, complete
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.text.chat_messages import MEDIA_TOKENS
from agent_memory.foundation.text.redaction import redact

log = get_logger(__name__)

_REASONING = ("gpt-5", "o1", "o3", "o4")
_THINKING_TOKENS = 4096  # reasoning counts toward the answer; without room for it, a short answer is cut off before it begins
# Tokens that a server's template adds to a message and to a request.
_MESSAGE_TOKENS = 8
_REQUEST_TOKENS = 16
# If a cut-off answer used this share of the context, the context was full.
_FULL = 0.98
_MOST_MODELS = 1000


@dataclass(frozen=True, slots=True)
class _Reply:
    """A model's answer. `cut_off` means it is incomplete. `full` means the context is full."""

    text: str
    cut_off: bool
    full: bool = False


class OpenAIChat:
    def __init__(self, server: ModelServer, model: str, settings: Settings, counter: TokenCounter | None = None) -> None:
        """Create a client. If `counter` is None, token counts are estimates."""
        self._server = server
        self._settings = settings
        self._counter = counter or TokenCounter()
        self._model = model
        if len(server.contexts) >= _MOST_MODELS:  # summary views may name any model
            server.contexts.clear()
        self._context = server.contexts.setdefault(model, model_context(server.shown_url, model, settings.models))
        self._description = f"{model} at {server.shown_url}"

    @classmethod
    async def open(cls, settings: Settings, *, server: ModelServer | None = None, counter: TokenCounter | None = None) -> OpenAIChat:
        """Create a client without calling the model. Raises StartupError."""
        return cls(server or chat_server(settings), settings.models.generation_model, settings, counter)

    def with_model(self, model: str) -> OpenAIChat:
        """Return a client for another model. Only close the original client."""
        return OpenAIChat(self._server, model, self._settings, self._counter)

    @property
    def model(self) -> str:
        return self._model

    @property
    def context(self) -> ModelContext:
        return self._context

    async def ask_context(self) -> None:
        if not self._context.wants_asking:
            return
        if not served_context.tells(self._server.url):
            self._context.postpone_asking()
            return
        self._context.note_limit(None)  # so that other calls do not ask in the meantime
        served = await served_context.ask(self._server.look, self._server.url, self._model)
        if served is not None:
            self._context.note_limit(served.tokens, guess=served.guess)

    def room(self, prompt: Sequence[ChatMessage], answer: type[BaseModel] | None = None) -> int:
        rung = self._server.rungs.get(self._model, structured.JSON_SCHEMA)
        return self._context.window - self._tokens(prompt if answer is None else structured.with_schema(prompt, rung, answer))

    async def text(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        try:
            reply = await self._complete(messages, None, max_tokens, Deadline(timeout))
        except RequestRefused as refused:
            raise refused.as_error(self._description) from refused
        if reply.full:
            raise self._no_room()
        if reply.cut_off:
            raise ModelAnswerInvalid(f"{self._description}: the answer was cut off", reason="length")
        text = structured.without_thinking(reply.text)
        if not text:
            raise ModelAnswerInvalid(f"{self._description}: the answer is empty", reason="empty")
        return text

    async def structured(
        self, messages: Sequence[ChatMessage], answer: type[Answer], *, max_tokens: int | None = None, timeout: float | None = None
    ) -> Answer:
        """Return a validated `answer`, and remember which response format (rung) works."""
        deadline = Deadline(timeout)
        reply = _Reply("", cut_off=False)
        try:
            reply, rung = await self._on_best_rung(messages, answer, max_tokens, deadline)
            try:
                return _read(reply, answer)
            except structured.UnusableAnswer as problem:
                if reply.full:  # a repair would be longer than the request that did not fit
                    raise self._no_room() from problem
                repair = structured.repair_messages(messages, answer, reply.text, problem)
                longer = 2 * max_tokens if max_tokens and reply.cut_off else max_tokens
                reply = await self._complete(repair, structured.response_format(rung, answer), longer, deadline)
            value = _read(reply, answer)
        except RequestRefused as refused:
            raise refused.as_error(self._description) from refused
        except structured.UnusableAnswer as problem:
            if reply.full:
                raise self._no_room() from problem
            reason = "length" if reply.cut_off else "unusable"
            error = ModelAnswerInvalid(f"{self._description}: no usable answer even after a repair: {problem}", reason=reason)
            error.cut_off = reply.text if reply.cut_off else ""
            raise error from problem
        if rung == structured.JSON_SCHEMA:  # accepted but not followed: from now on the prompt carries the schema
            self._server.rungs[self._model] = structured.JSON_OBJECT
        return value

    async def close(self) -> None:
        """Close the connections that all models on this server share."""
        await self._server.close()

    async def _on_best_rung(
        self, messages: Sequence[ChatMessage], answer: type[Answer], max_tokens: int | None, deadline: Deadline
    ) -> tuple[_Reply, int]:
        """Use the remembered response format (rung), or fall back to a simpler one if rejected."""
        rung = self._server.rungs.get(self._model, structured.JSON_SCHEMA)
        while True:
            prompt, shape = structured.with_schema(messages, rung, answer), structured.response_format(rung, answer)
            try:
                reply = await self._complete(prompt, shape, max_tokens, deadline)
            except RequestRefused as refused:
                if rung == structured.TEXT or refused.too_long or not structured.may_be_about_format(refused.status, refused.detail):
                    raise
                rung += 1
                continue
            if rung > self._server.rungs.get(self._model, structured.JSON_SCHEMA):
                self._server.rungs[self._model] = rung
            return reply, rung

    async def _complete(
        self, messages: Sequence[ChatMessage], shape: dict[str, Any] | None, max_tokens: int | None, deadline: Deadline
    ) -> _Reply:
        first = "max_completion_tokens" if self._reasons else "max_tokens"
        names: list[str | None] = [first, "max_tokens" if self._reasons else "max_completion_tokens", None]
        accepted = self._server.token_parameters.get(self._model, first)
        for name in names[names.index(accepted) :] if max_tokens else [None]:
            try:
                reply = await self._once(messages, shape, name, max_tokens, deadline)
            except RequestRefused as refused:
                if name is None or refused.overflow is not None or not structured.about_token_limit(refused.detail):
                    raise
                continue
            if max_tokens:
                self._server.token_parameters[self._model] = name
            return reply
        raise AssertionError("the last name is None, which returns or raises")

    @property
    def _reasons(self) -> bool:
        return self._model.rsplit("/", 1)[-1].lower().startswith(_REASONING)

    async def _once(
        self, messages: Sequence[ChatMessage], shape: dict[str, Any] | None, name: str | None, max_tokens: int | None, deadline: Deadline
    ) -> _Reply:
        body: dict[str, Any] = {"model": self._model}
        if shape is not None:
            body["response_format"] = shape
        if name is not None and max_tokens:
            body[name] = max_tokens + _THINKING_TOKENS if self._reasons else max_tokens

        def read_prompt() -> tuple[list[dict[str, Any]], int, bytes]:
            prompt = [replace(m, content=self._sendable(m.content)) for m in messages]
            parts = (part for m in prompt for part in (m.role, m.content, *m.pictures))
            request = fingerprint(self._model, str(body.get(name or "")), *parts)
            return [{"role": m.role, "content": _content(m)} for m in prompt], self._tokens(prompt), request

        body["messages"], ours, request = await run_in_thread(read_prompt, sum(len(message.content) for message in messages))
        if self._context.refuses(request):
            raise ContextExceeded(f"{self._description}: the server has already refused this request as too large", reason="too_long")

        streaming = self._server.streaming.get(self._model, Streaming.WITH_USAGE) if deadline.seconds_left is None else Streaming.NONE

        async def ask(client: openai.AsyncOpenAI, alive: Callable[[], None]) -> _Reply:
            completion = await complete(client, body, streaming, alive)
            counted = getattr(completion, "usage", None)
            token_usage.note(getattr(counted, "total_tokens", None), chars=_chars(messages, completion))
            reply = _reply(completion, self._description)
            self._context.learn_acceptance(token_usage.number(getattr(counted, "prompt_tokens", 0)), ours)
            limit = self._context.limit
            full = reply.cut_off and limit.certain and token_usage.number(getattr(counted, "total_tokens", 0)) >= _FULL * limit.tokens
            return _Reply(reply.text, reply.cut_off, full)

        try:
            if deadline.seconds_left is None:
                return await self._server.stream(self._description, ask)
            return await self._server.call(self._description, lambda client: ask(client, _nothing), timeout=deadline.seconds_left)
        except RequestRefused as refused:
            if refused.overflow is None and (less := streaming.less(refused.detail)) is not None:
                self._server.streaming[self._model] = less
                return await self._once(messages, shape, name, max_tokens, deadline)
            if refused.overflow is not None:
                self._context.learn_refusal(refused.overflow, ours, answer=max_tokens or 0)
                self._context.remember_refused(request)
                limit, url = self._context.limit, self._server.shown_url
                log.info("model has a smaller context than assumed", model=self._model, url=url, tokens=limit.tokens, source=limit.source)
            raise

    def _tokens(self, messages: Sequence[ChatMessage]) -> int:
        sizes = (self._counter.count(m.content) + _MESSAGE_TOKENS + MEDIA_TOKENS * len(m.pictures) for m in messages)
        return _REQUEST_TOKENS + sum(sizes)

    def _sendable(self, text: str) -> str:
        return (redact(text) if self._settings.longterm.redact_secrets else text).encode("utf-8", "replace").decode("utf-8")

    def _no_room(self) -> ContextExceeded:
        limit = self._context.limit
        return ContextExceeded(
            f"{self._description}: no room for the answer within {limit.tokens} tokens ({limit.source})", reason="length"
        )


def chat_server(settings: Settings) -> ModelServer:
    """Return the server at OPENAI_BASE_URL."""
    return ModelServer(settings.models.openai_base_url, settings.models.openai_api_key, settings.models)


def _chars(messages: Sequence[ChatMessage], completion: Any) -> int:
    choices: Any = getattr(completion, "choices", None) or ()
    return sum(len(message.content) for message in messages) + sum(
        len(str(getattr(getattr(choice, "message", None), "content", ""))) for choice in choices
    )


def _content(message: ChatMessage) -> str | list[dict[str, Any]]:
    if not message.pictures:
        return message.content
    pictures = [{"type": "image_url", "image_url": {"url": address}} for address in message.pictures]
    return [{"type": "text", "text": message.content}, *pictures]


def _nothing() -> None: ...


def _reply(completion: Any, description: str) -> _Reply:
    """Parse a completion. `server.py` translates the error if a part is missing."""
    choice = completion.choices[0]
    if getattr(choice.message, "refusal", None) or choice.finish_reason == "content_filter":
        raise ModelAnswerInvalid(f"{description}: the model refuses to answer", reason="refusal")
    content = choice.message.content
    if isinstance(content, list):  # some servers return a list of parts
        content = "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise ModelAnswerInvalid(f"{description}: the answer's content is not text", reason="unreadable")
    return _Reply(content or "", choice.finish_reason == "length")


def _read(reply: _Reply, answer: type[Answer]) -> Answer:
    try:
        return structured.parse_answer(reply.text, answer)
    except structured.UnusableAnswer as problem:
        if reply.cut_off:
            raise structured.UnusableAnswer("it was cut off at the length limit, so answer more briefly") from problem
        raise
