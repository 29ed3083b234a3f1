"""What was decoded lately is not decoded again, and nothing is kept for long."""

from __future__ import annotations

import pytest

from agent_memory.storage import decoded
from agent_memory.storage.decoded import Decoded


@pytest.fixture
def asked() -> list[bytes]:
    return []


@pytest.fixture
def length(asked: list[bytes]) -> Decoded[str]:
    def decode(raw: bytes) -> str:
        asked.append(raw)
        return raw.decode()

    return Decoded(decode)


def test_the_same_bytes_are_decoded_once(length: Decoded[str], asked: list[bytes]) -> None:
    assert [length(raw) for raw in (b"a", b"b", b"a", b"b")] == ["a", "b", "a", "b"]
    assert asked == [b"a", b"b"]
    with pytest.raises(UnicodeDecodeError):
        length(b"\xff")
    assert length(b"a") == "a"


def test_what_is_large_is_not_kept(length: Decoded[str], asked: list[bytes]) -> None:
    large = b"x" * 4097
    assert length(large) == length(large)
    assert asked == [large, large]


def test_what_is_asked_for_stays_while_others_come_and_go(
    length: Decoded[str], asked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoded, "_MOST", 10)
    for number in range(200):
        length(b"often")
        length(b"%d" % number)
    assert asked.count(b"often") == 1
    length(b"0")
    assert asked.count(b"0") == 2
    assert len(length._young) + len(length._old) <= 21  # pyright: ignore[reportPrivateUsage]


def test_what_nobody_asks_for_is_forgotten(length: Decoded[str], asked: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(decoded, "monotonic", lambda: now[0])
    length(b"once")
    for _ in range(3):
        # More than the minute after the process' clock began, whenever that was.
        now[0] += 1e9
        length(b"%d" % now[0])
    length(b"once")
    assert asked.count(b"once") == 2
