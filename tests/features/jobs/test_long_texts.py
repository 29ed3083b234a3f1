"""Test that long texts share a worker's embedding capacity fairly."""

from __future__ import annotations

import pytest

from agent_memory_worker.memories import long_texts
from agent_memory_worker.memories.long_texts import WAIT_SECONDS, LongText, LongTexts

OLDEST = LongText("oldest", ("tenant", "ana"), 96)


@pytest.mark.parametrize("owner", ["ana", "bob"])
@pytest.mark.parametrize("seconds", [0.1, WAIT_SECONDS / 2])
def test_long_text_starts_soon_despite_endless_shorter_texts(monkeypatch: pytest.MonkeyPatch, owner: str, seconds: float) -> None:
    now = 0.0
    monkeypatch.setattr(long_texts, "monotonic", lambda: now)
    texts, running = LongTexts(), list[list[LongText]]()
    due: dict[str, tuple[LongText, float]] = {}
    begun = 0
    for step in range(100):
        # A text that waited too long is due again, and then waits again.
        due |= {f"short-{step}-{number}": (LongText(f"short-{step}-{number}", ("tenant", owner), 40), now) for number in range(3)}
        due |= {} if step else {OLDEST.mid: (OLDEST, now)}
        for name, (text, at) in due.items():
            if at <= now:
                texts.wait(text)
                due[name] = (text, now + WAIT_SECONDS)
        while taken := texts.take():
            begun += 1
            running.append(taken)
            due = {name: waiting for name, waiting in due.items() if waiting[0] not in taken}
            if OLDEST in taken:
                assert begun <= 5
                return
        now += seconds
        texts.free(running.pop(0))
    pytest.fail(f"passed over {begun} times")


def test_short_texts_fill_the_passages_that_the_oldest_long_text_leaves() -> None:
    texts = LongTexts()
    for number in range(8):
        texts.wait(LongText(f"long-{number}", ("tenant", "ana"), 96))
    texts.wait(LongText("short", ("tenant", "bob"), 2))
    first, second = texts.take(), texts.take()
    assert [text.mid for text in first] == ["long-0", "short"]
    assert second == []
    texts.free(first)
    assert [text.mid for text in texts.take()] == ["long-1"]
