"""Chat through any OpenAI-compatible server, whatever it supports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import openai

from agent_memory.errors import ModelAnswerInvalid
from agent_memory.llm import ladder, usage
from agent_memory.llm.base import Answer, ChatMessage
from agent_memory.llm.catalog import context_window
from agent_memory.llm.remote import Deadline, ModelServer, RequestRefused
from agent_memory.settings import Settings

_REASONING = ("gpt-5", "o1", "o3", "o4")
_THINKING_TOKENS = 4096  # reasoning counts as answer: without room for it a short answer is cut off before it begins


@dataclass(frozen=True, slots=True)
class _Reply:
    text: str
    cut_off: bool


class OpenAIChat:
    """A ChatModel at an OpenAI-compatible server."""

    def __init__(self, server: ModelServer, model: str, *, window: int, windows: Callable[[str], int] | None = None) -> None:
        """`windows` tells the context windows of other models; without it they have this one's."""
        self._server = server
        self._windows = windows
        self._model = model
        self._window = window
        self._what = f"{model} at {server.shown_url}"

    @classmethod
    async def open(cls, settings: Settings, *, server: ModelServer | None = None) -> OpenAIChat:
        """Opens GENERATION_MODEL; no call is made. Raises StartupError for an address or key that cannot be sent."""

        def windows(model: str) -> int:
            return context_window(model, settings.models)

        return cls(server or chat_server(settings), settings.models.generation_model, window=chat_window(settings), windows=windows)

    def named(self, model: str) -> OpenAIChat:
        """Another model at the same server; close this one only."""
        window = self._windows(model) if self._windows else self._window
        return OpenAIChat(self._server, model, window=window, windows=self._windows)

    @property
    def model(self) -> str:
        """The model's name at its server."""
        return self._model

    @property
    def context_window(self) -> int:
        """Tokens that prompt and answer may have together."""
        return self._window

    async def text(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """See ChatModel.text."""
        try:
            reply = await self._complete(messages, None, max_tokens, Deadline(timeout))
        except RequestRefused as refused:
            raise refused.as_error(self._what) from refused
        if reply.cut_off:
            raise ModelAnswerInvalid(f"{self._what}: the answer was cut off", reason="length")
        text = ladder.without_thinking(reply.text)
        if not text:
            raise ModelAnswerInvalid(f"{self._what}: the answer is empty", reason="empty")
        return text

    async def structured(
        self, messages: Sequence[ChatMessage], answer: type[Answer], *, max_tokens: int | None = None, timeout: float | None = None
    ) -> Answer:
        """See ChatModel.structured. The rung that the server accepted is remembered per server and model."""
        deadline = Deadline(timeout)
        reply = _Reply("", cut_off=False)
        try:
            reply, rung = await self._on_best_rung(messages, answer, max_tokens, deadline)
            try:
                return _read(reply, answer)
            except ladder.Unusable as problem:
                repair = ladder.repair_messages(messages, answer, reply.text, problem)
                longer = 2 * max_tokens if max_tokens and reply.cut_off else max_tokens
                reply = await self._complete(repair, ladder.response_format(rung, answer), longer, deadline)
            value = _read(reply, answer)
        except RequestRefused as refused:
            raise refused.as_error(self._what) from refused
        except ladder.Unusable as problem:
            reason = "length" if reply.cut_off else "unusable"
            raise ModelAnswerInvalid(f"{self._what}: no usable answer even after a repair: {problem}", reason=reason) from problem
        if rung == ladder.JSON_SCHEMA:  # taken and not kept to: from now on the prompt carries the schema
            self._server.rungs[self._model] = ladder.JSON_OBJECT
        return value

    async def close(self) -> None:
        """Closes the connections to the server (of every model that shares it)."""
        await self._server.close()

    async def _on_best_rung(
        self, messages: Sequence[ChatMessage], answer: type[Answer], max_tokens: int | None, deadline: Deadline
    ) -> tuple[_Reply, int]:
        """Asks on the remembered rung, and climbs down while the server refuses the format."""
        rung = self._server.rungs.get(self._model, ladder.JSON_SCHEMA)
        while True:
            prompt, shape = ladder.with_schema(messages, rung, answer), ladder.response_format(rung, answer)
            try:
                reply = await self._complete(prompt, shape, max_tokens, deadline)
            except RequestRefused as refused:
                if rung == ladder.TEXT or refused.too_long or not ladder.may_be_about_format(refused.status, refused.detail):
                    raise
                rung += 1
                continue
            if rung > self._server.rungs.get(self._model, ladder.JSON_SCHEMA):
                self._server.rungs[self._model] = rung
            return reply, rung

    async def _complete(
        self, messages: Sequence[ChatMessage], shape: dict[str, Any] | None, max_tokens: int | None, deadline: Deadline
    ) -> _Reply:
        """One completion; finds out what the server calls the bound of the answer's length."""
        first = "max_completion_tokens" if self._reasons else "max_tokens"
        names: list[str | None] = [first, "max_tokens" if self._reasons else "max_completion_tokens", None]
        known = self._server.token_parameters.get(self._model, first)
        for name in names[names.index(known) :] if max_tokens else [None]:
            try:
                reply = await self._once(messages, shape, name, max_tokens, deadline)
            except RequestRefused as refused:
                if name is None or not ladder.about_token_limit(refused.detail):
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
        body: dict[str, Any] = {"model": self._model, "messages": [{"role": m.role, "content": _sendable(m.content)} for m in messages]}
        if shape is not None:
            body["response_format"] = shape
        if name is not None and max_tokens:
            body[name] = max_tokens + _THINKING_TOKENS if self._reasons else max_tokens

        async def ask(client: openai.AsyncOpenAI) -> _Reply:
            completion: Any = await client.chat.completions.create(**body)
            usage.note(getattr(getattr(completion, "usage", None), "total_tokens", None), chars=_chars(messages, completion))
            return _reply(completion, self._what)

        return await self._server.call(self._what, ask, timeout=deadline.left)


def chat_server(settings: Settings) -> ModelServer:
    """The server of OPENAI_BASE_URL."""
    models = settings.models
    return ModelServer(
        models.openai_base_url, models.openai_api_key, timeout=models.timeout_seconds, max_concurrent_calls=models.max_concurrent_calls
    )


def chat_window(settings: Settings) -> int:
    """The context window of GENERATION_MODEL."""
    return context_window(settings.models.generation_model, settings.models)


def _chars(messages: Sequence[ChatMessage], completion: Any) -> int:
    """The length of what was asked and answered, whatever the answer looks like."""
    choices: Any = getattr(completion, "choices", None) or ()
    return sum(len(message.content) for message in messages) + sum(
        len(str(getattr(getattr(one, "message", None), "content", ""))) for one in choices
    )


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _reply(completion: Any, what: str) -> _Reply:
    """Reads a completion. The SDK does not validate it, so nothing here is certain: what is missing raises and is mapped at the border."""
    choice = completion.choices[0]
    if getattr(choice.message, "refusal", None) or choice.finish_reason == "content_filter":
        raise ModelAnswerInvalid(f"{what}: the model refuses to answer", reason="refusal")
    content = choice.message.content
    if isinstance(content, list):  # some servers answer parts
        content = "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise ModelAnswerInvalid(f"{what}: the answer's content is not text", reason="unreadable")
    return _Reply(content or "", choice.finish_reason == "length")


def _read(reply: _Reply, answer: type[Answer]) -> Answer:
    """Raises Unusable."""
    try:
        return ladder.parse_answer(reply.text, answer)
    except ladder.Unusable as problem:
        if reply.cut_off:
            raise ladder.Unusable("it was cut off at the bound of its length, so answer more briefly") from problem
        raise
