"""Test that the prompts in docs/a-week.md match a real server's prompts."""

from __future__ import annotations

from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.local.e5 import NAME
from tests.docs.week import PAGE, acts, played
from tests.support.stack import stack


async def test_week_chapter_shows_real_prompts(redis_url: str) -> None:
    settings = load_settings(
        KEY_PREFIX="week", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", LOCAL_MODEL=NAME, NEIGHBOURS_AFTER_SECONDS=0
    )
    async with stack(settings, redis_url) as url:
        assert await played(url) == PAGE.read_text("utf-8"), "python -m tests.docs.week writes the chapter anew"


def test_week_chapter_has_a_question_on_every_day() -> None:
    week = acts(PAGE.read_text("utf-8").splitlines())
    asked = {act.session for act in week if act.kind == "Asked"}
    assert asked == {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
    assert {act.kind for act in week} == {"Said", "Asked", "Forgotten"}
