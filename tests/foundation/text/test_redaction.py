"""Test that redaction removes secrets, preserves other words, and is fast on all texts."""

from __future__ import annotations

import time

import pytest

from agent_memory.foundation.text.redaction import redact, redact_all

SECRETS = [
    ("Use sk-proj-abcdefghijklmnopqrstuvwxyz1234 for it", "Use [redacted: token] for it", "token"),
    ("token ghp_abcdefghijklmnopqrstuvwxyz0123456789.", "token [redacted: token].", "token"),
    ("AWS: AKIAIOSFODNN7EXAMPLE", "AWS: [redacted: token]", "token"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLXBhcnQ", "[redacted: token]", "token"),
    ("Authorization: Bearer abcdef1234567890ABCDEF", "Authorization: Bearer [redacted: token]", "token"),
    ("postgres://bob:s3cr@t... at postgres://bob:hunter2@db/x", "postgres://bob:[redacted: password]@db/x", "password"),
    ("My password is hunter2!", "My password is [redacted: password]!", "password"),
    ("Mein Passwort ist Geheim123.", "Mein Passwort ist [redacted: password].", "password"),
    ("DB_PASSWORD=swordfish", "DB_PASSWORD=[redacted: password]", "password"),
    ('{"api_key": "AbCdEf123456"}', '{"api_key": "[redacted: key]"}', "key"),
    ("my card is 4111 1111 1111 1111, until 12/29", "my card is [redacted: card number], until 12/29", "card number"),
    ("a -----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY----- b", "a [redacted: private key] b", "private key"),
    (
        "post to https://hooks.slack.com/services/T000/B000/XXXXXXXXXXXX",
        "post to https://hooks.slack.com/services/[redacted: webhook]",
        "webhook",
    ),
]


@pytest.mark.parametrize(("text", "left", "kind"), SECRETS, ids=[kind + str(n) for n, (_, _, kind) in enumerate(SECRETS)])
def test_secret_is_redacted_and_the_surrounding_text_kept(text: str, left: str, kind: str) -> None:
    assert redact(text).endswith(left)
    assert f"[redacted: {kind}]" in redact(text)
    assert redact(redact(text)) == redact(text)
    assert redact_all(["Figs are sweet.", text, "She rows."]) == ["Figs are sweet.", redact(text), "She rows."]


@pytest.mark.parametrize(
    "text",
    [
        "My password is important to me",
        "Password: required",
        "the api key is used by Bob",
        "Secret: I love her",
        "call +4915112345678901",
        "at 1700000000000 or 1700000000",
        "ISBN 9783161484100",
        "card 4111 1111 1111 1112 is wrong",
        "https://example.org:8080/path and bob@example.org",
        "I ordered 12345 figs for 2024-05-01T10:00:00Z",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    ],
)
def test_text_without_a_secret_is_unchanged(text: str) -> None:
    assert redact(text) == text


def test_texts_without_secrets_are_returned_as_the_same_list() -> None:
    for plain in ("The user bought 12 of them on 2024-05-01, for 30 dollars.", "Order 100000-1234567 and call +4915112345678901"):
        assert redact_all(texts := ["Figs are sweet.", plain]) is texts
    # Letters that equal others if case is ignored.
    assert redact("my paſſword is hunter22") == "my paſſword is [redacted: password]"


def test_truncated_private_key_is_redacted_to_its_end() -> None:
    assert redact('{"text": "-----BEGIN PRIVATE KEY-----\\nMIIEabc"}\n{"n": 2}') == '{"text": "[redacted: private key]"}\n{"n": 2}'


@pytest.mark.parametrize(
    "part",
    ["password ", "password is ", "a://", "a://b:", "1 ", "-----BEGIN PRIVATE KEY-----", "eyJaaaaaaaa.", "sk-", "Bearer ", "= "],
)
def test_redaction_takes_linear_time(part: str) -> None:
    def seconds(size: int) -> float:
        text = part * (size // len(part))
        began = time.process_time()
        redact(text)
        return time.process_time() - began

    seconds(1000)
    assert seconds(400_000) < 2.0, "a quadratic pattern takes minutes"
