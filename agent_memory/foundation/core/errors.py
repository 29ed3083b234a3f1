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


class BadInput(AgentMemoryError):
    """The input is wrong. `field` is its path in the request; `message` names the fix."""

    code = "invalid_input"
    status = 422

    def __init__(self, message: str, *, field: str, where: str = "body", **data: Any) -> None:
        super().__init__(message, field=field, **data)
        self.field = field
        self.where = where


class UnsupportedRequest(BadInput):
    """The request is well-formed, but the server does not do it."""

    code = "refused"
    status = 400


class NotSupported(AgentMemoryError):
    """Another product's operation that this server does not have."""

    code = "not_supported"
    status = 501


class Unauthenticated(AgentMemoryError):
    code = "unauthenticated"
    status = 401


class Forbidden(AgentMemoryError):
    """The credentials are valid, but do not reach this data or operation."""

    code = "forbidden"
    status = 403


class NotFound(AgentMemoryError):
    """No such thing in the caller's scope."""

    code = "not_found"
    status = 404


class MethodRefused(AgentMemoryError):
    code = "method_not_allowed"
    status = 405


class Conflict(AgentMemoryError):
    """The request contradicts stored data or a running request."""

    code = "conflict"
    status = 409


class IdTaken(Conflict):
    """Memory ids belong to other owners; nothing was written. The text is the same for every owner."""

    def __init__(self, ids: Sequence[str], *, field: str = "id") -> None:
        super().__init__("this id is taken: give another one, or none", field=field)
        self.ids = ids

    def of(self, ids: Sequence[str]) -> IdTaken:
        """Return the error for the first taken id of a request's `memories`."""
        position = next(position for position, name in enumerate(ids) if name in self.ids)
        return IdTaken(self.ids, field=f"memories.{position}.id")


class RequestUnderWay(Conflict):
    """The first request of an Idempotency-Key is still running."""

    code = "request_under_way"

    def __init__(self, message: str, *, retry_after: int, **data: Any) -> None:
        super().__init__(message, **data)
        self.retry_after = retry_after


class ErasureUnderWay(Conflict):
    """The user, session or agent is being erased; nothing was written.

    `age`: seconds since the order. `is_over`: the erasure ended after this work began, which could restore erased data.
    """

    code = "erasure_under_way"
    retry_after = 1

    def __init__(self, age: float, *, is_over: bool = False) -> None:
        when = "ended since this request began" if is_over else "is under way"
        super().__init__(f"an erasure of this user, session or agent {when}: nothing was written, try again")
        self.age = age
        self.is_over = is_over


class VersionMismatch(AgentMemoryError):
    """`If-Match` named another version than the stored one (`data["current"]`)."""

    code = "version_mismatch"
    status = 412


class RequestTimeout(AgentMemoryError):
    """The head or body of the request did not arrive in time; the connection is closed."""

    code = "request_timeout"
    status = 408


class WrongHost(AgentMemoryError):
    """The Host header names another server."""

    code = "misdirected"
    status = 421


class TooLarge(AgentMemoryError):
    code = "too_large"
    status = 413


class TooMany(AgentMemoryError):
    """A limit of the tenant is reached; retry after `retry_after` seconds."""

    code = "too_many"
    status = 429

    def __init__(self, message: str, *, retry_after: int = 1, **data: Any) -> None:
        super().__init__(message, **data)
        self.retry_after = retry_after


class Unavailable(AgentMemoryError):
    """A needed engine is away; retry after `retry_after` seconds."""

    code = "unavailable"
    status = 503

    def __init__(self, message: str, *, retry_after: int = 1, **data: Any) -> None:
        super().__init__(message, **data)
        self.retry_after = retry_after


class RedisUnavailable(Unavailable):
    code = "redis_unavailable"


class StoreLost(RedisUnavailable):
    """Redis is empty although it held a store: reads and writes stop until an operator accepts that."""

    code = "store_lost"


class StoreChanged(RedisUnavailable):
    """Redis holds another store than before: reads and writes stop until an operator accepts that."""

    code = "store_changed"


class ModelUnavailable(Unavailable):
    """The model server is unreachable, refuses the request, or exceeds its time."""

    code = "model_unavailable"


class BudgetSpent(ModelUnavailable):
    """The tenant's model tokens of the day are used up; background work waits for the next day."""

    code = "model_tokens_spent"
    status = 429


class Overloaded(Unavailable):
    """The process has too many requests under way."""

    code = "overloaded"


class UnknownWork(AgentMemoryError):
    """Background work of a newer version: left for its workers, without counting an attempt."""

    code = "unknown_work"


class ModelAnswerInvalid(AgentMemoryError):
    """The model's answer is unusable even after one repair (`data["reason"]`).

    `cut_off`: the answer's text before its length limit, if that is the reason. Never shown to clients.
    """

    cut_off: str = ""

    code = "model_answer_invalid"
    status = 502


class ContextExceeded(ModelAnswerInvalid):
    """The request or its answer does not fit the model's context: retry only with less."""

    code = "context_exceeded"


class StartupError(AgentMemoryError):
    """The process cannot start; `message` is printed before exit code 1."""

    code = "startup_error"
