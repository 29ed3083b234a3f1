"""Measure how often forget proposals match the intent, with no language model.

The author of the scenes had not seen the code. The rules have since been tuned on them, so the
figures no longer measure unseen scenes. The score counts entire messages: a message is forgotten
with all its statements.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.privacy.forget.matching import requested
from agent_memory.features.privacy.forget.requests import ForgetRequests
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.text.languages.message_kinds import MODEL
from agent_memory_client.models import AppendMessagesRequest, MemoryMessage
from tests.support.rig import SCOPE, MakeRig, Rig
from tests.support.shared.models import shared_embedder

SCENES: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parents[2] / "data/unseen/forget_scenes.jsonl").read_text().splitlines()
]


@dataclass(frozen=True)
class Scene:
    """A conversation, and the positions of messages to forget and to keep."""

    number: int
    texts: list[str]
    roles: list[str]
    request: str
    goes: list[int]
    stays: list[int]

    @property
    def user(self) -> str:
        return f"scene-{self.number}"


def scene_of(number: int, row: dict[str, Any]) -> Scene:
    texts = [message["content"] for message in row["messages"]]

    def states_gone(text: str) -> bool:
        for phrase in row["kept"]:
            if any(gone in phrase for gone in row["gone"]):
                text = text.replace(phrase, "")
        return any(gone in text for gone in row["gone"])

    goes = [place for place, text in enumerate(texts) if states_gone(text)]
    stays = [place for place, text in enumerate(texts) if place not in goes and any(phrase in text for phrase in row["kept"])]
    return Scene(number, texts, [message["role"] for message in row["messages"]], row["request"], goes, stays)


async def converse(rig: Rig, scene: Scene) -> None:
    """Append a scene's messages before the request, and process them."""
    messages = [
        MemoryMessage(role=role, content=text, id=f"{scene.user}-{place}")
        for place, (role, text) in enumerate(zip(scene.roles, scene.texts, strict=True))
    ]
    await rig.rt[SessionService].append(SCOPE, scene.user, AppendMessagesRequest(messages=messages, user_id=scene.user))
    await rig.work()


async def judge(rig: Rig, scene: Scene) -> str:
    """Approve the proposal, and compare what is deleted with the intent."""
    changes = (await rig.rt[HistoryService].read_changes(SCOPE, {"st": "proposed", "u": scene.user}, None, 0, 10)).changes
    for change in changes:
        await rig.rt[HistoryService].approve_proposal(SCOPE, change.id)
    left = await rig.contents(scene.user, user_id=scene.user)
    left += [memory.text for memory in await rig.stored() if memory.user_id == scene.user]
    if not changes:
        return "nothing"
    if any(scene.texts[place] in left for place in scene.goes):
        return "too little"
    assert scene.request not in left
    return "right" if all(scene.texts[place] in left for place in scene.stays) else "too much"


@pytest.mark.parametrize(("recognized", "least"), [(False, 10), (True, 32)])
async def test_forget_proposals_match_enough_labelled_scenes(rig: Rig, recognized: bool, least: int) -> None:
    """With `recognized`, propose every request. Otherwise, detect requests in the conversation."""
    outcomes = await outcomes_of(rig, recognized=recognized)
    assert outcomes["right"] >= least, sorted(outcomes.items())


async def test_forget_proposals_by_default_model_vectors_match_enough_scenes(make_rig: MakeRig) -> None:
    """Rules detect a third of the requests, and the vectors detect most of the others."""
    async with make_rig(embedder=await shared_embedder(load_settings(LOCAL_MODEL=MODEL))) as rig:
        outcomes = await outcomes_of(rig, recognized=False)
        assert outcomes["right"] >= 30, sorted(outcomes.items())


async def outcomes_of(rig: Rig, *, recognized: bool) -> Counter[str]:
    judged: list[str] = []
    for number, row in enumerate(SCENES):
        scene = scene_of(number, row)
        await converse(rig, scene)
        request = MemoryMessage(role="user", content=scene.request, id=f"{scene.user}-request")
        await rig.rt[SessionService].append(SCOPE, scene.user, AppendMessagesRequest(messages=[request], user_id=scene.user))
        await rig.work()
        if recognized:
            await rig.rt[ForgetRequests].propose(SCOPE, SessionRef(scene.user, None, scene.user), str(request.id), requested(scene.request))
        judged.append(await judge(rig, scene))
    return Counter(judged)
