"""Test that default model vectors classify messages that the rules do not recognize."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.text.languages.filler import is_filler
from agent_memory.foundation.text.languages.memory_requests import memory_request
from agent_memory.foundation.text.languages.message_kinds import MODEL
from agent_memory.foundation.text.normalization import QUESTION
from tests.support.rig import SCOPE, MakeRig, Rig
from tests.support.shared.models import shared_embedder

FILLER = "I'll give it a go, thanks again for being so patient"
FACTS = ["my daughter Mia plays the oboe", "I moved to Porto in May"]
ASKS = "how long do you boil an egg for soft but not runny"
ANSWERS = "is it fewer or less people"
REQUEST = "that thing about the oboe, get rid of it"


@pytest.fixture(scope="session")
async def e5() -> EmbeddingModel:
    """Return the default model, because the weights are fitted to its vectors."""
    return await shared_embedder(load_settings(LOCAL_MODEL=MODEL))


async def _proposals(rig: Rig) -> list[Any]:
    return (await rig.rt[HistoryService].read_changes(SCOPE, {"st": "proposed"}, None, 0, 10)).changes


async def test_filler_unknown_to_the_rules_is_not_remembered(make_rig: MakeRig, e5: EmbeddingModel) -> None:
    assert not is_filler(FILLER)
    async with make_rig(embedder=e5) as rig:
        await rig.append("s", FACTS[0], FILLER, FACTS[1], user_id="ana")
        await rig.work()
        assert {record.text for record in await rig.stored()} == set(FACTS)


async def test_short_answer_to_a_question_is_remembered(make_rig: MakeRig, e5: EmbeddingModel) -> None:
    async with make_rig(embedder=e5) as rig:
        await rig.append("s", "Do you eat meat?", role="assistant", user_id="ana")
        await rig.append("s", "nope", user_id="ana")
        await rig.work()
        assert {record.text for record in await rig.stored()} == {"Do you eat meat?", "nope"}


async def test_questions_without_a_mark_are_marked_but_not_the_assistants(make_rig: MakeRig, e5: EmbeddingModel) -> None:
    async with make_rig(embedder=e5) as rig:
        await rig.append("s", FACTS[0], ASKS, user_id="ana")
        await rig.append("s", ANSWERS, role="assistant", user_id="ana")
        await rig.work()
        marked = {record.text: QUESTION in record.metadata for record in await rig.stored()}
        assert marked == {FACTS[0]: False, ASKS: True, ANSWERS: False}


@pytest.mark.parametrize("policy", ["propose", "auto", "off"])
async def test_an_unusual_request_to_forget_only_becomes_a_proposal(make_rig: MakeRig, e5: EmbeddingModel, policy: str) -> None:
    request = memory_request(REQUEST)
    assert request is None or request.kind != "forget"
    async with make_rig(embedder=e5, FORGET_IN_CONVERSATION=policy) as rig:
        await rig.append("s", *FACTS, user_id="ana")
        await rig.append("s", REQUEST, user_id="ana")
        await rig.work()
        proposals = await _proposals(rig)
        assert len(proposals) == (policy != "off")
        assert {record.text for record in await rig.stored()} >= set(FACTS)
        for change in proposals:
            await rig.rt[HistoryService].approve_proposal(SCOPE, change.id)
            assert [record.text for record in await rig.stored()] == FACTS[1:]


async def test_filler_unknown_to_the_rules_is_remembered_with_another_model(rig: Rig) -> None:
    if rig.rt.embedder.model != MODEL:
        await rig.append("s", FILLER, user_id="ana")
        await rig.work()
        assert [record.text for record in await rig.stored()] == [FILLER]
