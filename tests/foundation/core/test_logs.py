"""Test that logs go to stderr, in one format, without secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator

import pytest
import structlog

from agent_memory.foundation.core.logs import HIDDEN, configure_logging, get_logger, redact, without_secrets
from agent_memory.foundation.core.settings import load_settings


@pytest.fixture(autouse=True)
def logging_restored() -> Generator[None, None, None]:
    """Restore pytest's logging configuration after each test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(False)
    structlog.reset_defaults()
    for name in (
        "agent_memory",
        "agent_memory_worker",
        "agent_memory_client",
        "uvicorn",
        "uvicorn.error",
        "uvicorn.asgi",
        "uvicorn.access",
    ):
        logging.getLogger(name).setLevel(logging.NOTSET)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    """Return the JSON lines on stderr, after asserting that stdout is empty."""
    out, err = capsys.readouterr()
    assert out == ""
    return [json.loads(line) for line in err.splitlines()]


def test_json_logs_include_own_records_and_library_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(load_settings(LOG_FORMAT="json").server)
    logging.getLogger("agent_memory.x").info("hello %s", "Ana", extra={"session": "s1"})
    logging.getLogger("agent_memory.x").debug("too fine")
    structlog.get_logger("agent_memory_worker.y").info("event", tasks=3)
    logging.getLogger("docket.worker").info("not wanted")
    logging.getLogger("httpx2").warning("wanted")
    logging.getLogger("uvicorn.access").info("GET /")
    logging.getLogger("uvicorn.error").info("Started server process")
    found = lines(capsys)
    assert [line["event"] for line in found] == ["hello Ana", "event", "wanted"]
    assert found[0] | {"session": "s1", "level": "info", "logger": "agent_memory.x"} == found[0]
    assert found[1]["tasks"] == 3
    assert str(found[0]["timestamp"]).endswith("Z")


def test_json_lines_have_an_event_and_fields_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    log = get_logger("agent_memory.z")
    configure_logging(load_settings(LOG_FORMAT="json").server)
    error = ValueError("redis://:hunter2@host broke")
    with structlog.contextvars.bound_contextvars(tenant="of the context", request="r1"):
        log.warning("search not reranked", tenant="t", error=error, attempts=2, errors=[error])
    log.debug("too fine")
    try:
        raise error
    except ValueError:
        log.exception("search failed", tenant="t")
    warning, failure = lines(capsys)
    shown = f"redis://{HIDDEN}@host broke"
    fields = {"event": "search not reranked", "tenant": "t", "request": "r1", "error": shown, "attempts": 2, "errors": [shown]}
    place = {"level": "warning", "logger": "agent_memory.z", "timestamp": warning["timestamp"]}
    assert warning == fields | place
    assert (failure["event"], failure["tenant"], failure["level"]) == ("search failed", "t", "error")
    assert str(failure["exception"]).startswith("Traceback")
    assert str(failure["exception"]).endswith(shown)


def test_fields_are_attributes_of_standard_records(caplog: pytest.LogCaptureFixture) -> None:
    get_logger("agent_memory.z").warning("100% full", tenant="t", exc_info=ValueError("no"))
    [entry] = caplog.records
    assert (entry.getMessage(), vars(entry)["tenant"], bool(entry.exc_info)) == ("100% full", "t", True)


def test_console_logs_have_plain_tracebacks_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(load_settings().server)
    configure_logging(load_settings().server)
    try:
        secret_local = "sesame"
        raise ValueError("redis://:open@host broke" + secret_local[:0])
    except ValueError:
        logging.getLogger("agent_memory").exception("failed")
    err = capsys.readouterr().err
    assert err.count("failed") == 1
    assert "Traceback" in err
    assert "sesame'" not in err
    assert ":open@" not in err


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("redis://user:hunter2@host:6379/0", "hunter2"),
        ("at rediss://:hunter2@host", "hunter2"),
        ("Authorization: Bearer abcdefgh12345", "abcdefgh12345"),
        ("header basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("key sk-proj-abcdefghijk is wrong", "abcdefghijk"),
        ("[type=int_parsing, input_value='my sister\\nAna', input_type=str]", "sister"),
    ],
)
def test_secrets_inside_texts_are_hidden(text: str, secret: str) -> None:
    assert secret not in without_secrets(text)
    assert HIDDEN in without_secrets(text)


def test_ordinary_texts_are_logged_unchanged() -> None:
    for text in ("http://host/v1/x?a=b@c", "a task-force met", "mail ana@example.org", "redis://host:6379/0", "the bearer of news"):
        assert without_secrets(text) == text


def test_values_under_secret_names_are_hidden_at_any_depth() -> None:
    deep = {"list": [{"password": "p"}], "ok": 1}
    event = redact(None, "info", {"event": "x", "api_key": "k", "Authorization": "a", "tokens": 5, "deep": deep})
    hidden = {"list": [{"password": HIDDEN}], "ok": 1}
    assert event == {"event": "x", "api_key": HIDDEN, "Authorization": HIDDEN, "tokens": 5, "deep": hidden}
