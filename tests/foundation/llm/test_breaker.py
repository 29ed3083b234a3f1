"""Test the circuit breaker with a fake clock."""

from __future__ import annotations

import pytest

from agent_memory.foundation.core.errors import ModelUnavailable
from agent_memory.foundation.llm.openai.circuit_breaker import Breaker
from agent_memory.foundation.llm.openai.server import retry_after_seconds, shown_url


class Clock:
    """A clock that the test advances."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def broken(clock: Clock) -> Breaker:
    breaker = Breaker("a server", threshold=3, cooldown=1, longest=4, clock=clock)
    for _ in range(3):
        breaker.admit_call()
        breaker.note_failure()
    return breaker


def test_breaker_opens_after_consecutive_failures() -> None:
    clock = Clock()
    breaker = Breaker("a server", threshold=3, clock=clock)
    for outcome in (breaker.note_failure, breaker.note_failure, breaker.note_success, breaker.note_failure, breaker.note_failure):
        breaker.admit_call()
        outcome()
    breaker.admit_call()
    breaker.note_failure()
    assert breaker.is_open
    with pytest.raises(ModelUnavailable) as caught:
        breaker.admit_call()
    assert caught.value.data["reason"] == "breaker_open"
    assert caught.value.retry_after >= 1


def test_successful_probe_closes_the_breaker() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += 1.1
    breaker.admit_call()
    with pytest.raises(ModelUnavailable):
        breaker.admit_call()
    breaker.note_success()
    breaker.admit_call()
    breaker.admit_call()


def test_failing_probes_back_off_up_to_a_maximum() -> None:
    clock = Clock()
    breaker = broken(clock)
    for wait in (1, 2, 4, 4):
        clock.now += wait - 0.1
        assert breaker.is_open
        clock.now += 0.2
        breaker.admit_call()
        breaker.note_failure()


def test_cancelled_probe_lets_the_next_call_probe() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += 1.1
    breaker.admit_call()
    breaker.note_abandoned()
    breaker.admit_call()
    breaker.note_success()
    assert not breaker.is_open


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 1), ("0", 1), ("2.2", 3), ("-5", 1), ("99999999", 3600), ("nan", 1), ("inf", 1), ("soon", 1),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 1), ("Wed, 21 Oct 2099 07:28:00 GMT", 3600),
    ],
)  # fmt: skip
def test_retry_after_header_is_parsed_and_bounded(header: str | None, seconds: int) -> None:
    assert retry_after_seconds(header) == seconds


def test_addresses_are_shown_without_secrets() -> None:
    assert shown_url("https://user:pass@host:8443/v1/?key=secret#x") == "https://host:8443/v1"
    assert shown_url("http://[::1]:9/v1") == "http://[::1]:9/v1"
    assert "secret" not in shown_url("http://[bad:secret")
