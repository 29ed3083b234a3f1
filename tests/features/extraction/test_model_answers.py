"""Test responses from weak and slow models.

A bad fact does not affect the others, and slow responses shrink the prompts.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest

from agent_memory.features.jobs.operations import OperationService
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.llm.model_context import ModelContext
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory_client.models import OperationRecord
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig, record

OFF = {"INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY": "false", "EXTRACTION_DEBOUNCE_SECONDS": "0"}
SAID = [f"In year {1900 + number} our shop in Lisbon sold {number} violins to the orchestra of Porto" for number in range(40)]


async def facts(rig: Rig) -> list[str]:
    return sorted(one.text for one in await rig.stored() if one.memory_type != "message")


async def extraction_of(rig: Rig, session_id: str) -> OperationRecord:
    operations = rig.rt[OperationService]
    (sid,) = {mark.member for mark in operations.session_marks(SCOPE, SessionRef(session_id, None, None))}
    return await operations.get_operation(SCOPE, f"extraction-{sid}")


async def test_bad_facts_are_skipped_and_reported_while_good_ones_are_stored(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    text = "I live in Porto, and I play the viola in an orchestra"
    good = [{"text": fact, "messages": [1]} for fact in ("User lives in Porto", "User plays the viola in an orchestra")]
    bad = [
        {"text": "User lives in Porto \ud83d", "messages": [1]},
        {"text": ["User plays in Porto"], "messages": [1]},
        {"text": "User lives in Porto " * 400, "messages": [1]},
    ]
    lookalike.scripted.raw[text] = json.dumps({"memories": [good[0], *bad, good[1]]})
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", text)
        await rig.work()
        assert await facts(rig) == sorted(fact["text"] for fact in good)
        assert lookalike.calls["chat"] == 1  # no repair: the good facts are accepted
        (notice,) = (await extraction_of(rig, "s")).notices
        assert notice.startswith("3 facts")
        assert "4000 characters" in notice


@pytest.mark.parametrize(
    "decisions",
    [
        [],
        [{"n": 1, "action": "ADD", "of": []}],
        [{"n": 1, "action": "ADD"}, {"n": 2, "action": "KEEP", "of": []}, "none"],
        [{"n": 1, "action": "ADD"}, {"n": 2, "action": "SUPERSEDE", "of": [99]}, {"n": 2, "action": "NONE", "of": []}],
    ],
)
async def test_facts_without_a_valid_decision_are_added(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, decisions: list[object]
) -> None:
    known = "User keeps two brown goats in Porto"
    new = ["User keeps two brown goats and a dog in Porto", "User sold two brown goats in Porto"]
    lookalike.scripted.raw["I moved the goats"] = json.dumps({"memories": [{"text": text, "messages": [1]} for text in new]})
    lookalike.scripted.raw['"near"'] = json.dumps({"decisions": decisions})
    async with make_rig(chat, **OFF) as rig:
        await rig.remember(record(known, user_id=None))
        await rig.append("s", "I moved the goats: I keep two brown goats and a dog in Porto, and sold two brown goats in Porto")
        await rig.work()
        assert await facts(rig) == sorted([known, *new])


async def test_timeouts_shrink_the_prompts_of_every_worker(
    make_rig: MakeRig, make_chat: Callable[..., Awaitable[OpenAIChat]], lookalike: Lookalike
) -> None:
    # The first token takes two seconds for a prompt with forty messages, and 1.3 seconds for half of them.
    lookalike.read_seconds_per_token = 0.0006
    first, second = await make_chat(MODEL_TIMEOUT_SECONDS=1.8), await make_chat(MODEL_TIMEOUT_SECONDS=1.8)
    async with make_rig(first, **OFF) as rig:
        await rig.append("s", *SAID)
        await rig.work()
        assert len(await facts(rig)) == len(SAID)
        asked = first.context.request_limit
        assert asked is not None
        operation = await extraction_of(rig, "s")
        assert (operation.stages["extracted"], operation.stages["messages"]) == (len(SAID), len(SAID))
        assert operation.messages_per_minute is not None
        assert operation.messages_per_minute > 0
        async with make_rig(second, KEY_PREFIX=rig.settings.redis.key_prefix, **OFF) as other:
            await other.append("t", *(f"{text}, in autumn" for text in SAID[:3]))
            await other.work()
            assert len(await facts(other)) == len(SAID) + 3
    assert second.context.request_limit == asked


async def test_prompts_grow_again_once_a_model_is_fast(
    make_rig: MakeRig, make_chat: Callable[..., Awaitable[OpenAIChat]], lookalike: Lookalike
) -> None:
    chat = await make_chat()
    chat.context.learn_timeout(600)
    async with make_rig(chat, **OFF) as rig:
        await rig.append("s", *(f"{text}, in autumn {turn}" for turn in range(4) for text in SAID))
        await rig.work()
        assert (chat.context.request_limit or 0) > 600
        asked = [len(body["messages"][-1]["content"]) for body in lookalike.bodies("chat")]
        assert max(asked) > 1.5 * asked[0]


def test_model_that_stays_slow_is_tried_ever_less_often() -> None:
    context = ModelContext("http://slow", "model", assumed=8_000)
    timeouts = 0
    for _ in range(600):
        asked = min(context.request_limit or 4_000, 4_000)
        if asked > 1_000:
            timeouts += 1
            context.learn_timeout(asked)
        else:
            context.learn_answer(asked)
    assert 4 < timeouts < 20
