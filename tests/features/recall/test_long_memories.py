"""Whoever may write can leave megabytes where each prompt of the user finds them: they are read aside, and counted no further than fits."""

from __future__ import annotations

from agent_memory.recall.service import RecallService
from agent_memory.sessions.service import SessionService
from agent_memory_client.models import AppendMessagesRequest, MemoryPromptRequest
from tests.support.heartbeat import heartbeat
from tests.support.rig import SCOPE, Rig

# Seconds of CPU in one piece. All of it at once, in the event loop, takes one to two.
_MOST = 0.5
_PARTS = ("from may to ", "in 2020 and ", "(((( ", "last ", "on the 1st of ", "my brother's ")
_CHARACTERS = 1_000_000


async def test_what_is_long_is_remembered_and_recalled_without_keeping_anybody_waiting(rig: Rig) -> None:
    for part in _PARTS:
        said = {"role": "user", "content": part * (_CHARACTERS // len(part))}
        await rig.rt[SessionService].append(SCOPE, "s", AppendMessagesRequest.model_validate({"user_id": "long", "messages": [said]}))
    async with heartbeat() as working:
        await rig.work()
    body = {"query": "on the 1st of my brother's from may to", "user_id": "long", "long_term_search": True}
    async with heartbeat() as recalling:
        prompt = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))
        assert prompt.messages
    longest = {"working": working.longest, "recalling": recalling.longest}
    assert max(longest.values()) < _MOST, longest
