"""The proxy passes calls on byte for byte, adds what is relevant, and stores what is new."""

from __future__ import annotations

from tests.interfaces.proxy.conftest import KEY, Proxied
from tests.support.upstream import chat, chat_stream


async def test_call_gets_memories_and_its_messages_are_stored(proxied: Proxied) -> None:
    memory = await proxied.remember("Ada is allergic to peanuts.")
    proxied.upstream.answers.append(chat("No peanuts for you."))
    answer = await proxied.chat([{"role": "user", "content": "Which nuts is Ada allergic to?"}], {"x-memory-session": "s1"})
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "No peanuts for you."
    sent = proxied.upstream.last
    assert sent.header("authorization") == f"Bearer {KEY}"
    assert [message["role"] for message in sent.json["messages"]] == ["system", "user"]
    assert "allergic to peanuts" in sent.json["messages"][0]["content"]
    assert answer.headers["x-memory-status"] == "added"
    assert answer.headers["x-memory-ids"] == memory
    assert answer.headers["x-memory-added"] == "1"
    assert int(answer.headers["x-memory-tokens"]) > 5
    assert answer.headers["x-memory-stored"] == "yes"
    assert await proxied.said("s1") == [("user", "Which nuts is Ada allergic to?"), ("assistant", "No peanuts for you.")]


async def test_stream_passes_byte_for_byte(proxied: Proxied) -> None:
    script = chat_stream("Hel", "lo, ", "Ada.")
    proxied.upstream.answers.append(script)
    answer = await proxied.chat([{"role": "user", "content": "Hi, I am Ada."}], {"x-memory-session": "s1"}, stream=True)
    assert answer.content == b"".join(script.pieces)
    assert answer.headers["x-memory-status"] == "nothing"
    assert await proxied.said("s1") == [("user", "Hi, I am Ada."), ("assistant", "Hello, Ada.")]
