"""Test strings that only exact matches find, such as numbers, addresses, code and other scripts."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.evaluation.conftest import Known

pytestmark = pytest.mark.slow

EXACT = {
    "an order number": ("nadia-piotr", "PRZ-20418/7"),
    "an e-mail address": ("nadia-piotr", "reklamacje@przeprowadzki-szybko.example"),
    "a ticket": ("keiko-sam", "OPS-5521"),
    "a ticket in lower case": ("keiko-sam", "ops-5521"),
    "a version": ("keiko-sam", "v4.18.2"),
    "a host name": ("keiko-sam", "stg-eu-07"),
    "a call in code": ("keiko-sam", "np.linalg.norm(vec)"),
    "an identifier": ("keiko-sam", "ERR_PAY_TIMEOUT"),
    "a path": ("keiko-sam", "/pm/2025-06-26-pay"),
    "a booking": ("lucia-owen", "BRF7Q2-55"),
    "accents": ("nadia-piotr", "Berceuse d'été"),
    "accents left out": ("nadia-piotr", "berceuse d'ete"),
    "a letter with a dot": ("nadia-piotr", "żurek"),
    "an umlaut left out": ("keiko-sam", "Kathe"),
    "French": ("lucia-owen", "goyaves mûres"),
    "Japanese": ("keiko-sam", "ラーメン屋"),
    "Chinese": ("keiko-sam", "河边"),
    "Korean": ("keiko-sam", "결제 버튼"),
}
NOTHING = ["the", "what is it", "who was that", "?", "... !!!", "¿?", "「」", "—", "🎉", "@ * | ( )", "%"]


async def search(known: Known, conversation: str, text: str, **more: Any) -> list[dict[str, Any]]:
    async with httpx.AsyncClient(base_url=known.url, timeout=30) as client:
        body = {"text": text, "user_id": {"eq": f"recall-memories-{conversation}"}, **more}
        response = await client.post("/v1/long-term-memory/search", json=body)
    assert response.status_code == 200, response.text
    return response.json()["memories"]


@pytest.mark.parametrize("mode", [{"search_mode": "keyword"}, {"search_mode": "hybrid"}, {}], ids=["keyword", "hybrid", "default"])
@pytest.mark.parametrize(("conversation", "text"), EXACT.values(), ids=EXACT.keys())
async def test_exact_strings_are_found(known: Known, conversation: str, text: str, mode: dict[str, Any]) -> None:
    turns = next(found.turns for found in known.conversations if found.id == conversation)
    wanted = {turn.id for turn in turns if folded(text) in folded(turn.text)}
    assert wanted, "the string stands in the conversation"
    found = await search(known, conversation, text, limit=3, **mode)
    assert wanted & {memory["id"].removeprefix(f"recall-memories-{conversation}-") for memory in found}, [m["text"] for m in found]


@pytest.mark.parametrize("text", NOTHING)
async def test_contentless_queries_match_nothing_by_keyword(known: Known, text: str) -> None:
    assert await search(known, "keiko-sam", text, search_mode="keyword") == []


@pytest.mark.parametrize("mode", [{"search_mode": "hybrid"}, {}], ids=["hybrid", "default"])
@pytest.mark.parametrize("text", NOTHING)
async def test_contentless_queries_return_nearest_hits_by_meaning(known: Known, text: str, mode: dict[str, Any]) -> None:
    assert len(await search(known, "keiko-sam", text, limit=3, **mode)) == 3


@pytest.mark.parametrize("text", ["OPS-9999", "nobody@nowhere.example", "猫", "zzyzx"])
async def test_unknown_words_are_not_found_by_keyword(known: Known, text: str) -> None:
    found = await search(known, "keiko-sam", text, search_mode="keyword")
    assert not any(folded(text) in folded(memory["text"]) for memory in found)
    if text in ("猫", "zzyzx"):
        assert found == []


def folded(text: str) -> str:
    """Return the text without case or accents."""
    import unicodedata

    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
