"""Define the server's errors with their codes and HTTP statuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class AgentMemoryError(Exception):
    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    @property
    def advice(self) -> str:
        """The message, followed by the hint if there is one."""
        return f"{self.message}: {self.data['hint']}" if "hint" in self.data else self.message

    def __init_subclass__(cls, *, code: str | None = None, status: int | None = None) -> None:
        cls.code, cls.status = code or cls.code, status or cls.status


class RetryLater(AgentMemoryError):
    """The caller can retry after `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: int = 1, **data: Any) -> None:
        super().__init__(message, **data)
        self.retry_after = retry_after


class BadInput(AgentMemoryError, code="invalid_input", status=422):
    """The value at the path `field` is invalid. `message` says how to fix it."""

    def __init__(self, message: str, *, field: str, where: str = "body", **data: Any) -> None:
        super().__init__(message, field=field, **data)
        self.field = field
        self.where = where


class UnsupportedRequest(BadInput, code="refused", status=400):
    """The server does not support this well-formed request."""


class NotSupported(AgentMemoryError, code="not_supported", status=501):
    """This server does not implement an operation or option from another product's API."""


class Unauthenticated(AgentMemoryError, code="unauthenticated", status=401):
    pass


class Forbidden(AgentMemoryError, code="forbidden", status=403):
    """The credentials do not allow access to this data or operation."""


class NotFound(AgentMemoryError, code="not_found", status=404):
    """The requested object does not exist within the caller's scope.

    `field` is the request field that contains its id. `hint` says what to check.
    """

    def __init__(self, message: str, *, field: str = "", hint: str = "", **data: Any) -> None:
        hint = hint or f"check {field}, user_id, namespace and your credentials' permissions"
        super().__init__(message, **data, **({"field": field, "hint": hint} if field else {}))


class Conflict(AgentMemoryError, code="conflict", status=409):
    """The request conflicts with stored data or with another running request."""


class IdTaken(Conflict):
    """These `ids` are already taken by other owners' memories. Nothing was written."""

    def __init__(self, ids: Sequence[str], *, field: str = "id") -> None:
        super().__init__("this id is already used: send another id, or omit it", field=field)
        self.ids = ids

    def of(self, ids: Sequence[str]) -> IdTaken:
        """Return this error with the field path of the first taken id in the request."""
        position = next(position for position, name in enumerate(ids) if name in self.ids)
        return IdTaken(self.ids, field=f"memories.{position}.id")


class RequestUnderWay(Conflict, RetryLater, code="request_under_way"):
    """An earlier request with the same Idempotency-Key is still running."""


class ErasureUnderWay(Conflict, RetryLater, code="erasure_under_way"):
    """An erasure blocks this write, so nothing was written.

    `age` is the number of seconds since the erasure was requested. `is_over` means that it ended
    after the writer started reading.
    """

    def __init__(self, age: float, *, is_over: bool = False) -> None:
        when = "ended since this request began" if is_over else "is under way"
        super().__init__(f"an erasure of this user, session or agent {when}: nothing was written, try again")
        self.age = age
        self.is_over = is_over


class VersionMismatch(AgentMemoryError, code="version_mismatch", status=412):
    """The version in `If-Match` differs from the stored version (`data["current"]`)."""


class RequestTimeout(AgentMemoryError, code="request_timeout", status=408):
    """The request's headers or body did not arrive in time."""


class WrongHost(AgentMemoryError, code="misdirected", status=421):
    """The Host header does not match this server."""


class TooLarge(AgentMemoryError, code="too_large", status=413):
    pass


class TooMany(RetryLater, code="too_many", status=429):
    """The tenant has reached one of its limits."""


class Unavailable(RetryLater, code="unavailable", status=503):
    """The server is temporarily unavailable, for example because Redis is not responding."""


class RedisUnavailable(Unavailable, code="redis_unavailable"):
    pass


class StoreLost(RedisUnavailable, code="store_lost"):
    """Redis is empty but previously contained a store. An operator must accept the loss."""


class StoreChanged(RedisUnavailable, code="store_changed"):
    """Redis contains a different store than before. An operator must accept the change."""


class ModelUnavailable(Unavailable, code="model_unavailable"):
    """The model server is unreachable, rejected the request, or timed out."""


class BudgetSpent(ModelUnavailable, code="model_tokens_spent", status=429):
    """The tenant has used all of its model tokens for the day."""


class Overloaded(Unavailable, code="overloaded"):
    """The process is already handling as many requests as it can."""


class UnknownWork(AgentMemoryError, code="unknown_work"):
    """Only newer workers support this kind of task. This attempt does not count."""


class ModelAnswerInvalid(AgentMemoryError, code="model_answer_invalid", status=502):
    """The model's answer is unusable. `data["reason"]` explains why.

    `cut_off` contains an answer that reached its length limit. It is never sent to clients.
    """

    cut_off: str = ""


class ContextExceeded(ModelAnswerInvalid, code="context_exceeded"):
    """The request or answer exceeds the model's context window. Retry only with less text."""


class StartupError(AgentMemoryError, code="startup_error"):
    """The process cannot start. It prints `message` and exits with code 1."""


def how_to_install(extra: str) -> str:
    """Return the commands that install an extra."""
    return f"`pip install ./client '.[{extra}]'` in a checkout, or `pip install 'PATH.whl[{extra}]'` with the server's wheel"
