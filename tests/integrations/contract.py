"""Define the contract tests that each framework's test file implements."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from agent_memory_client import ClientMemoryRecord, MemoryClient
from agent_memory_client.errors import MemoryClientError, MemoryUnavailableError
from tests.integrations.conftest import NOBODY

HOSTILE = ["a/b", "a%2Fb", "a%252Fb", "*", "{}", "@t:{*}", "a|b", " ", "é", "\U0001f600", "%2F", "'\"\\", "a-b.c:d"]
ODD_TEXTS = ["\x1b[31mFAILED\x1b[0m", "page 1\x0cpage 2", "a\x00b", "\x00", "\u200b", "  ", "x" * 70_000]
HALF_AN_EMOJI = "half \ud83d"
REFUSED = ["", "..", "\x00", "x" * 2000]


def new_id() -> str:
    return f"s-{uuid4()}"


class HistoryContract(ABC):
    """Tests that a history returns all messages unchanged, even if other programs write to it."""

    messages: ClassVar[Sequence[Any]]
    """Messages of the framework, including tool calls and their results."""
    refused: ClassVar[Sequence[str]] = REFUSED
    unavailable: type[Exception] = MemoryUnavailableError

    @abstractmethod
    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        """Create a history."""

    @abstractmethod
    async def add(self, history: Any, messages: Sequence[Any]) -> None: ...

    @abstractmethod
    async def get(self, history: Any) -> list[Any]: ...

    @abstractmethod
    async def clear(self, history: Any) -> None: ...

    @abstractmethod
    def say(self, text: str) -> Any:
        """Return a user message."""

    def shown(self, messages: Sequence[Any]) -> Any:
        """Return the fields to compare."""
        return list(messages)

    async def test_history_returns_every_message_until_cleared(self, client: MemoryClient) -> None:
        session, user = new_id(), new_id()
        history = self.make(client, session, user)
        assert await self.get(history) == []
        middle = len(self.messages) // 2
        await self.add(history, self.messages[:middle])
        await self.add(history, self.messages[middle:])
        assert self.shown(await self.get(self.make(client, session, user))) == self.shown(self.messages)
        await self.clear(history)
        assert await self.get(history) == []
        await self.add(history, self.messages[:1])
        assert self.shown(await self.get(history)) == self.shown(self.messages[:1])

    async def test_history_returns_any_text_unchanged(self, client: MemoryClient) -> None:
        history = self.make(client, new_id(), new_id())
        messages = [self.say(text) for text in ODD_TEXTS]
        await self.add(history, messages)
        assert self.shown(await self.get(history)) == self.shown(messages)
        await self.add(history, [self.say(HALF_AN_EMOJI)])
        assert len(await self.get(history)) == len(messages) + 1

    async def test_histories_of_different_users_are_separate(self, client: MemoryClient) -> None:
        session, ada, bo = new_id(), new_id(), new_id()
        await self.add(self.make(client, session, ada), self.messages[:2])
        assert await self.get(self.make(client, session, bo)) == []
        await self.add(self.make(client, session, bo), self.messages[:1])
        await self.clear(self.make(client, session, bo))
        assert self.shown(await self.get(self.make(client, session, ada))) == self.shown(self.messages[:2])

    @pytest.mark.parametrize("name", HOSTILE)
    async def test_hostile_ids_are_stored_unchanged(self, client: MemoryClient, name: str) -> None:
        user = new_id()
        mine, other = self.make(client, name + user, name + user), self.make(client, user, user)
        await self.add(mine, self.messages[:1])
        assert self.shown(await self.get(mine)) == self.shown(self.messages[:1])
        assert await self.get(other) == []

    async def test_invalid_ids_are_refused(self, client: MemoryClient) -> None:
        for bad in self.refused:
            with pytest.raises((MemoryClientError, ValueError)):
                await self.add(self.make(client, bad, new_id()), self.messages[:1])
        for bad in ("", "x" * 2000):
            with pytest.raises((MemoryClientError, ValueError)):
                await self.add(self.make(client, new_id(), bad), self.messages[:1])

    async def test_unreachable_server_raises_at_once(self) -> None:
        began = time.monotonic()
        async with MemoryClient(NOBODY) as nobody:
            history = self.make(nobody, new_id(), new_id())
            with pytest.raises(self.unavailable):
                await self.get(history)
            with pytest.raises(self.unavailable):
                await self.add(history, self.messages[:1])
        assert time.monotonic() - began < 30


class RecallContract(ABC):
    """Tests that the model sees the user's own memories and no one else's."""

    raises_without_a_server = False

    @abstractmethod
    async def recall(self, client: MemoryClient, user_id: str, question: str) -> str:
        """Return the memories that the framework shows to the model for a question."""

    async def test_memories_of_a_user_are_shown_to_that_user_only(self, client: MemoryClient) -> None:
        ada, bo = new_id(), new_id()
        texts = {"Ada is allergic to peanuts.": ada, "Bo eats peanuts.": bo}
        await client.memories.create([ClientMemoryRecord(text=text, user_id=user) for text, user in texts.items()])
        question = "Who may eat peanuts?"
        shown = {user: await self.recall(client, user, question) for user in (ada, bo, new_id())}
        for text, user in texts.items():
            assert [other for other in shown if text in shown[other]] == [user]

    async def test_unreachable_server_gives_no_memories_or_an_error(self) -> None:
        began = time.monotonic()
        async with MemoryClient(NOBODY) as nobody:
            if self.raises_without_a_server:
                with pytest.raises(MemoryUnavailableError):
                    await self.recall(nobody, new_id(), "peanuts")
            else:
                assert await self.recall(nobody, new_id(), "peanuts") == ""
        assert time.monotonic() - began < 30


async def in_thread(call: Any, *arguments: Any) -> Any:
    """Run a blocking call in a thread that has no event loop."""
    return await asyncio.to_thread(call, *arguments)
