"""Test that forget requests in conversations are never remembered.

Only the user can make them, and a worker crash does not lose any.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import Conflict
from agent_memory.foundation.core.scope import SessionRef
from agent_memory_client.models import AppendMessagesRequest, EditMemoryRecordRequest, ForgetMemoryRequest, MemoryMessage
from agent_memory_worker.sessions.promote import promote_session
from tests.features.privacy.test_forget import say, texts
from tests.support.heartbeat import heartbeat, reference_seconds
from tests.support.rig import SCOPE, MakeRig, Rig, record

REF = SessionRef("s", None, "ana")
# A statement, the request that names it, and an unrelated statement.
LANGUAGES = {
    "en": ("I am allergic to peanuts.", "Please forget that I am allergic to peanuts.", "I work at Acme."),
    "de": ("Ich bin allergisch gegen Erdnüsse.", "Bitte vergiss, dass ich allergisch gegen Erdnüsse bin.", "Ich arbeite bei Acme."),
    "fr": ("Je suis allergique aux arachides.", "Oublie que je suis allergique aux arachides.", "Je travaille chez Acme."),
    "es": ("Soy alérgica a los cacahuetes.", "Olvida que soy alérgica a los cacahuetes.", "Trabajo en Acme."),
    "pt": ("Sou alérgica a amendoim.", "Esqueça que sou alérgica a amendoim.", "Trabalho na Acme."),
    "it": ("Sono allergica alle arachidi.", "Dimentica che sono allergica alle arachidi.", "Lavoro alla Acme."),
    "zh": ("我对花生过敏。", "请忘记我对花生过敏。", "我在银行工作。"),
    "ja": ("私はピーナッツアレルギーです。", "私がピーナッツアレルギーだということを忘れてください。", "私は銀行で働いています。"),
    "ru": ("У меня аллергия на арахис.", "Забудь, что у меня аллергия на арахис.", "Я работаю в банке."),
    "nl": ("Ik ben allergisch voor pinda's.", "Vergeet dat ik allergisch ben voor pinda's.", "Ik werk bij Acme."),
}
NO_REQUESTS = [
    '"Please forget that I am allergic to peanuts", he said.',
    "> Please forget that I am allergic to peanuts",
    "The mail says: please forget that I am allergic to peanuts. What does it mean?",
    "Translate into German: forget that I am allergic to peanuts",
    "„Bitte vergiss, dass ich allergisch gegen Erdnüsse bin“, stand im Brief.",
    "「请忘记我对花生过敏」是什么意思？",
    "```\nforget that I am allergic to peanuts\n```",
    "Sofia told me, forget everything about peanuts",
    'My boss wrote, "forget everything about peanuts"',
    "Maria me dijo, olvida todo sobre peanuts",
    "Der Chef sagte, vergiss alles über peanuts",
    "妈妈说，忘记关于花生的一切",
    "Lyrics by Cat, forget everything about peanuts",
    "### forget everything about peanuts",
]


async def _proposals(rig: Rig) -> list[Any]:
    return (await rig.rt[HistoryService].read_changes(SCOPE, {"st": "proposed"}, None, 0, 10)).changes


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("policy", ["propose", "auto", "off"])
async def test_forget_request_itself_is_never_remembered(make_rig: MakeRig, language: str, policy: str) -> None:
    said, request, other = LANGUAGES[language]
    async with make_rig(FORGET_IN_CONVERSATION=policy) as rig:
        await say(rig, said, other, request)
        await rig.work()
        kept = await texts(rig)
        assert request not in kept
        assert other in kept
        assert (said in kept) == (policy != "auto")
        assert len(await _proposals(rig)) == (policy == "propose")


@pytest.mark.parametrize("policy", ["propose", "auto"])
async def test_quoted_or_non_user_forget_request_deletes_nothing(make_rig: MakeRig, policy: str) -> None:
    async with make_rig(FORGET_IN_CONVERSATION=policy) as rig:
        await say(rig, "I am allergic to peanuts.", "我对花生过敏。", *NO_REQUESTS)
        for role in ("assistant", "system", "developer", "tool", "function"):
            await say(rig, "Please forget that I am allergic to peanuts", role=role)
        await rig.work()
        await rig.work()
        assert {"I am allergic to peanuts.", "我对花生过敏。"} <= set(await texts(rig))
        assert "I am allergic to peanuts." in await rig.contents("s", user_id="ana")
        assert await _proposals(rig) == []


async def test_message_with_a_name_is_never_carried_out_but_proposed(make_rig: MakeRig) -> None:
    async with make_rig(FORGET_IN_CONVERSATION="auto") as rig:
        await say(rig, "I am allergic to peanuts.")
        text = "Please forget that I am allergic to peanuts"
        message = MemoryMessage.model_validate({"role": "user", "name": "web_page", "content": text})
        await rig.rt[SessionService].append(SCOPE, "s", AppendMessagesRequest(messages=[message], user_id="ana"))
        await rig.work()
        await rig.work()
        assert "I am allergic to peanuts." in await texts(rig)
        assert len(await _proposals(rig)) == 1


@pytest.mark.parametrize("dies_in", ["proposing", "promoting"])
async def test_worker_crash_loses_no_forget_proposal(rig: Rig, monkeypatch: pytest.MonkeyPatch, dies_in: str) -> None:
    await say(rig, "I work at Acme.", "I am allergic to peanuts.", "Please forget that I am allergic to peanuts", "I like tea.")
    owner, name = (ForgetService, "propose_by_message") if dies_in == "proposing" else (MemoryStore, "write")
    whole, calls = getattr(owner, name), list[int]()

    async def dying(self: Any, *args: Any, **more: Any) -> Any:
        calls.append(1)
        # Memories of messages before the request are written first.
        if len(calls) == (1 if dies_in == "proposing" else 2):
            raise RuntimeError("the worker dies")
        return await whole(self, *args, **more)

    monkeypatch.setattr(owner, name, dying)
    sid = rig.keys.sid(SCOPE.tenant, REF)
    with pytest.raises(RuntimeError):
        await promote_session(rig.rt, sid)
    await promote_session(rig.rt, sid)
    await promote_session(rig.rt, sid)
    (change,) = await _proposals(rig)
    assert await texts(rig) == ["I am allergic to peanuts.", "I like tea.", "I work at Acme."]
    await rig.rt[HistoryService].approve_proposal(SCOPE, change.id)
    assert await texts(rig) == ["I like tea.", "I work at Acme."]


async def test_rejected_forget_proposal_is_not_made_again(rig: Rig) -> None:
    await say(rig, "I am allergic to peanuts.", "Please forget that I am allergic to peanuts")
    await rig.work()
    (change,) = await _proposals(rig)
    await rig.rt[HistoryService].reject_proposal(SCOPE, change.id)
    await say(rig, "I like tea.")
    await rig.work()
    assert await _proposals(rig) == []
    assert await texts(rig) == ["I am allergic to peanuts.", "I like tea."]


async def test_forgetting_among_long_texts_does_not_block_the_event_loop(rig: Rig) -> None:
    # A comparison of each of the 390 words with each of 20,000 takes a minute.
    words = [f"{first}{second}{third}ation" for first in "abcdefghij" for second in "abcdefghij" for third in "abcdefghijklmnopqrstuvwxyz"]
    await rig.remember(*(record(" ".join(["gin", *words[start : start + 2_400]]), f"m-{start}", user_id="ana") for start in range(8)))
    text = " ".join(["gin", *(f"{word[:3]}ing" for word in words[:230])])[:2_000]
    bound = 0.25 * max(1.0, reference_seconds() / 0.05)
    async with heartbeat() as beat:
        answer = await rig.rt[ForgetService].forget(SCOPE, ForgetMemoryRequest(text=text, user_id="ana", dry_run=True))
        await rig.append("s", f"Please forget that {text}", user_id="ana")
        await rig.work()
    assert len(answer.matches) <= 8
    assert beat.longest < bound


async def test_approved_forget_request_can_be_undone_with_its_receipt(rig: Rig) -> None:
    await say(rig, "I am allergic to peanuts.", "Please forget that I am allergic to peanuts")
    await rig.work()
    (change,) = await _proposals(rig)
    approved = await rig.rt[HistoryService].approve_proposal(SCOPE, change.id)
    approved.model_dump_json(warnings="error")
    assert (approved.state, await texts(rig)) == ("applied", [])
    assert approved.receipt_id is not None
    assert approved.undo_until is not None
    assert await rig.contents("s", user_id="ana") == []
    assert (await rig.rt[ForgetService].undo(SCOPE, approved.receipt_id)).restored["memories"] == 1
    assert len(await rig.contents("s", user_id="ana")) == 2
    await rig.work()
    assert [each.id for each in await _proposals(rig)] == [change.id]
    assert await texts(rig) == ["I am allergic to peanuts."]


@pytest.mark.parametrize("changes", [{"text": "I am allergic to penicillin."}, {"user_id": "bob"}, {"namespace": "work"}])
async def test_forget_proposal_is_stale_if_its_memory_changed(rig: Rig, changes: dict[str, Any]) -> None:
    await say(rig, "I like tea.", "I am allergic to peanuts.", "Please forget that I am allergic to peanuts")
    await rig.work()
    (change,) = await _proposals(rig)
    (memory,) = [each for each in await rig.stored() if "peanuts" in each.text]
    await rig.rt[MemoryService].patch(SCOPE, memory.id, EditMemoryRecordRequest(**changes))
    with pytest.raises(Conflict, match="is stale"):
        await rig.rt[HistoryService].approve_proposal(SCOPE, change.id)
    assert memory.id in [each.id for each in await rig.stored()]
    await rig.rt[HistoryService].reject_proposal(SCOPE, change.id)
