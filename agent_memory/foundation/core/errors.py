"""All errors of the server. Each class has a code, an HTTP status and data; the interfaces only render them."""

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

    def __init_subclass__(cls, *, code: str | None = None, status: int | None = None) -> None:
        cls.code, cls.status = code or cls.code, status or cls.status


class RetryLater(AgentMemoryError):
    """Retry after `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: int = 1, **data: Any) -> None:
        super().__init__(message, **data)
        self.retry_after = retry_after


class BadInput(AgentMemoryError, code="invalid_input", status=422):
    """The input is wrong. `field` is its path in the request; `message` names the fix."""

    def __init__(self, message: str, *, field: str, where: str = "body", **data: Any) -> None:
        super().__init__(message, field=field, **data)
        self.field = field
        self.where = where


class UnsupportedRequest(BadInput, code="refused", status=400):
    """The request is well-formed, but the server does not do it."""


class NotSupported(AgentMemoryError, code="not_supported", status=501):
    """Another product's operation that this server does not have."""


class Unauthenticated(AgentMemoryError, code="unauthenticated", status=401):
    pass


class Forbidden(AgentMemoryError, code="forbidden", status=403):
    """The credentials are valid, but do not reach this data or operation."""


class NotFound(AgentMemoryError, code="not_found", status=404):
    """No such thing in the caller's scope."""


class MethodRefused(AgentMemoryError, code="method_not_allowed", status=405):
    pass


class Conflict(AgentMemoryError, code="conflict", status=409):
    """The request contradicts stored data or a running request."""


class IdTaken(Conflict):
    """Memory ids belong to other owners; nothing was written. The text is the same for every owner."""

    def __init__(self, ids: Sequence[str], *, field: str = "id") -> None:
        super().__init__("this id is taken: give another one, or none", field=field)
        self.ids = ids

    def of(self, ids: Sequence[str]) -> IdTaken:
        """Return the error for the first taken id of a request's `memories`."""
        position = next(position for position, name in enumerate(ids) if name in self.ids)
        return IdTaken(self.ids, field=f"memories.{position}.id")


class RequestUnderWay(Conflict, RetryLater, code="request_under_way"):
    """The first request of an Idempotency-Key is still running."""


class ErasureUnderWay(Conflict, RetryLater, code="erasure_under_way"):
    """The user, session or agent is being erased; nothing was written.

    `age`: seconds since the order. `is_over`: the erasure ended after this work began, which could restore erased data.
    """

    def __init__(self, age: float, *, is_over: bool = False) -> None:
        when = "ended since this request began" if is_over else "is under way"
        super().__init__(f"an erasure of this user, session or agent {when}: nothing was written, try again")
        self.age = age
        self.is_over = is_over


class VersionMismatch(AgentMemoryError, code="version_mismatch", status=412):
    """`If-Match` named another version than the stored one (`data["current"]`)."""


class RequestTimeout(AgentMemoryError, code="request_timeout", status=408):
    """The head or body of the request did not arrive in time; the connection is closed."""


class WrongHost(AgentMemoryError, code="misdirected", status=421):
    """The Host header names another server."""


class TooLarge(AgentMemoryError, code="too_large", status=413):
    pass


class TooMany(RetryLater, code="too_many", status=429):
    """A limit of the tenant is reached."""


class Unavailable(RetryLater, code="unavailable", status=503):
    """A needed engine is away."""


class RedisUnavailable(Unavailable, code="redis_unavailable"):
    pass


class StoreLost(RedisUnavailable, code="store_lost"):
    """Redis is empty although it held a store: reads and writes stop until an operator accepts that."""


class StoreChanged(RedisUnavailable, code="store_changed"):
    """Redis holds another store than before: reads and writes stop until an operator accepts that."""


class ModelUnavailable(Unavailable, code="model_unavailable"):
    """The model server is unreachable, refuses the request, or exceeds its time."""


class BudgetSpent(ModelUnavailable, code="model_tokens_spent", status=429):
    """The tenant's model tokens of the day are used up; background work waits for the next day."""


class Overloaded(Unavailable, code="overloaded"):
    """The process has too many requests under way."""


class UnknownWork(AgentMemoryError, code="unknown_work"):
    """Background work of a newer version: left for its workers, without counting an attempt."""


class ModelAnswerInvalid(AgentMemoryError, code="model_answer_invalid", status=502):
    """The model's answer is unusable even after one repair (`data["reason"]`).

    `cut_off`: the answer's text before its length limit, if that is the reason. Never shown to clients.
    """

    cut_off: str = ""


class ContextExceeded(ModelAnswerInvalid, code="context_exceeded"):
    """The request or its answer does not fit the model's context: retry only with less."""


class StartupError(AgentMemoryError, code="startup_error"):
    """The process cannot start; `message` is printed before exit code 1."""
