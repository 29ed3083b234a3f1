"""Test that each log call has a constant event name and fields, so that logs can be filtered."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator

from tests.docs.test_names import ROOT, files

_METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
# Names of record attributes and arguments, and keys that a log line has anyway.
_RESERVED = {*vars(logging.makeLogRecord({})), "message", "asctime", "extra", "event", "level", "logger", "timestamp", "exception", "stack"}
_RESERVED -= {"exc_info", "stack_info"}
_CONFIGURATION = ROOT / "agent_memory" / "foundation" / "core" / "logs.py"


def problems(source: str, *, is_client: bool = False) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner, method = ast.unparse(node.func.value), node.func.attr
        if method == "getLogger" and not is_client:
            yield node.lineno, "use get_logger of foundation/core/logs.py"
        if method not in _METHODS or owner.rpartition(".")[2].strip("_") not in ("log", "logger", "logging"):
            continue
        event = node.args[1:] if method == "log" else node.args
        if [type(getattr(each, "value", None)) for each in event] != [str] or "%" in ast.unparse(event[0]):
            yield node.lineno, "pass one constant text without placeholders, and values as keyword arguments"
        fields = {keyword.arg for keyword in node.keywords} - {"exc_info", "stack_info"}
        if is_client:
            if fields != {"extra"}:
                yield node.lineno, "pass values as extra={...}, and nothing else"
            continue
        if not fields:
            yield node.lineno, "add a field that says what the event is about"
        if taken := _RESERVED & fields:
            yield node.lineno, f"rename the fields {taken}"


def test_log_calls_have_a_constant_event_and_fields() -> None:
    paths = [path for path in files("agent_memory", "worker", "client") if path.suffix == ".py" and path != _CONFIGURATION]
    assert [
        f"{path}:{line}: {problem}"
        for path in paths
        for line, problem in problems(path.read_text("utf-8"), is_client=path.is_relative_to(ROOT / "client"))
    ] == []


def test_calls_with_values_in_the_event_are_found() -> None:
    for call in (
        'log.info(f"{x} failed")',
        'log.info("%s failed", x)',
        "log.log(10, x)",
        'log.error("no", name=x)',
        'log.exception("failed")',
        "logging.getLogger(x)",
    ):
        assert [*problems(call)], call
    for call in ('log.info("failed", error=x, exc_info=True)', 'log.log(10, "failed", **x)', "math.log(x)"):
        assert not [*problems(call)], call
    assert not [*problems('logging.getLogger(x).error("failed", extra={"error": x})', is_client=True)]
    for call in ('log.error("%s failed", x, extra=y)', 'log.error("failed")', 'log.error("failed", error=x)'):
        assert [*problems(call, is_client=True)], call
