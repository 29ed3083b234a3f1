"""Send all log records to stderr through structlog, with secrets removed.

Use a constant event name, and pass values as fields:

    log.warning("search not reranked", error=error)
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any, Protocol, TextIO, cast

import structlog

HIDDEN = "[hidden]"
_SECRET_KEY = re.compile(r"password|passwd|secret|api[_-]?key|token$|authorization|cookie|credential", re.IGNORECASE)
# Secrets inside a text: user and password in a URL, an authorization header, a model server's API key.
_SECRET_TEXT = re.compile(
    r"(?<=[a-z0-9+.-]://)(?P<user>[^\s/@]*+@)|(?P<scheme>\b(?:bearer|basic)\s++)[\w.~+/=-]{8,}|\bsk-[\w-]{8,}", re.IGNORECASE
)
# pydantic repeats the input in its error messages, which tracebacks show.
_INPUT, _INPUT_END = "input_value=", ", input_type="
# The access log line in each log format. `quiet` requests are logged at DEBUG.
_REQUEST_JSON = (
    '{{"method": "{method}", "path": "{path}", "status": {status}, "ms": {ms:.1f}, "request_id": "{request_id}", '
    '"event": "request", "level": "{level}", "logger": "access", "timestamp": "{timestamp}"}}\n'
)
_REQUEST_TEXT = "{timestamp} [{level:9}] request [access] method={method} path={path} status={status} ms={ms:.1f} request_id={request_id}\n"
_OURS = ("agent_memory", "agent_memory_worker", "agent_memory_client")


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a logger that stores its fields as attributes of standard log records."""
    processors = (structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs)
    logger = structlog.wrap_logger(logging.getLogger(name), processors, structlog.stdlib.BoundLogger, cache_logger_on_first_use=True)
    return cast("structlog.stdlib.BoundLogger", logger)


class LogSettings(Protocol):
    @property
    def log_level(self) -> str: ...

    @property
    def log_format(self) -> str: ...


def without_secrets(text: str) -> str:
    """Hide passwords, authorization headers, API keys, and input values quoted in errors."""
    if _INPUT in text:
        text = _without_inputs(text)
    return _SECRET_TEXT.sub(lambda m: f"{HIDDEN}@" if m["user"] else f"{m['scheme'] or ''}{HIDDEN}", text)


def _without_inputs(text: str) -> str:
    """Hide the text after each `_INPUT`, up to `_INPUT_END` if present."""
    first, *rest = text.split(_INPUT)
    parts = [first]
    for part in rest:
        _, end, after = part.partition(_INPUT_END)
        parts.append(f"{_INPUT}{HIDDEN}{end}{after}")
    return "".join(parts)


def _clean(value: object, depth: int = 0) -> object:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping) and depth < 4:
        entries = cast("Mapping[object, object]", value).items()
        return {key: HIDDEN if _SECRET_KEY.search(str(key)) else _clean(entry, depth + 1) for key, entry in entries}
    if isinstance(value, list | tuple) and depth < 4:
        return [_clean(entry, depth + 1) for entry in cast("list[object]", value)]
    # Renderers turn all other objects into text, such as an exception whose message contains a secret.
    return value if value is None or isinstance(value, int | float | logging.LogRecord) else without_secrets(str(value))


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide secrets in an event (structlog processor)."""
    for key, value in event.items():
        event[key] = HIDDEN if _SECRET_KEY.search(key) else _clean(value)
    return event


class _AccessLog:
    """The access log's state. `stream` is None if requests are not logged."""

    line: str = ""
    stream: TextIO | None = None
    level: int = logging.INFO


def log_request(method: str, path: str, status: int, seconds: float, request_id: str, *, quiet: bool) -> None:
    """Write an access log line without escaping arguments or hiding secrets."""
    stream = _AccessLog.stream
    if stream is None or (logging.DEBUG if quiet else logging.INFO) < _AccessLog.level:
        return
    line = _AccessLog.line.format(
        method=method,
        path=path,
        status=status,
        ms=seconds * 1000,
        request_id=request_id,
        level="debug" if quiet else "info",
        timestamp=datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
    )
    try:
        stream.write(line)
    except (OSError, ValueError):  # Nothing reads stderr anymore. Like `logging`, continue without a log.
        _AccessLog.stream = None


def configure_logging(settings: LogSettings, *, access_log: bool = False) -> None:
    """Set up logging. Libraries log at WARNING and above, or at INFO if `log_level` is DEBUG."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        # Plain tracebacks, because pretty ones show local variables, which contain users' texts and API keys.
        structlog.processors.format_exc_info,
        redact,
    ]
    if settings.log_format == "json":
        renderer: structlog.typing.Processor = structlog.processors.JSONRenderer(default=str)
    else:
        colors = sys.stderr.isatty()
        renderer = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback, pad_event_to=0)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared[:3], *shared[4:], structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    level = logging.getLevelNamesMapping()[settings.log_level]
    libraries = max(level, logging.WARNING) if level > logging.DEBUG else logging.INFO
    root.setLevel(libraries)
    for name in _OURS:
        logging.getLogger(name).setLevel(level)
    logging.getLogger("audit").setLevel(logging.INFO)  # LOG_LEVEL does not hide audit events
    _AccessLog.line = _REQUEST_JSON if settings.log_format == "json" else _REQUEST_TEXT
    _AccessLog.level, _AccessLog.stream = level, sys.stderr if access_log else None
    for name in ("uvicorn", "uvicorn.error", "uvicorn.asgi", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(libraries)
    logging.captureWarnings(True)
