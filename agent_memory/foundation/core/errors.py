"""The one error tree. Every error carries a code, an HTTP status and data; the faces only render it.

AgentMemoryError            500  internal_error
├── BadInput                422  invalid_input        names the field and the fix
│   └── Refused             400  refused              well-formed, but not something we do
├── NotSupported            501  not_supported        an operation of another product that we do not have
├── Unauthenticated         401  unauthenticated      no credentials, or none that count
├── Forbidden               403  forbidden            the credentials do not reach that far
├── NotFound                404  not_found
├── MethodRefused           405  method_not_allowed
├── Conflict                409  conflict
│   ├── IdTaken             409  conflict             an id belongs to another owner of the tenant
│   ├── ErasureUnderWay     409  erasure_under_way    whose data it is is being erased; carries retry_after
│   └── RequestUnderWay     409  request_under_way    the first request of an Idempotency-Key has not ended; carries retry_after
├── VersionMismatch         412  version_mismatch     If-Match named another version
├── RequestLate             408  request_timeout      a request did not come in whole in time
├── Misdirected             421  misdirected          the Host header names somebody else
├── TooLarge                413  too_large
├── TooMany                 429  too_many             a limit of the tenant's is reached; carries retry_after
├── Unavailable             503  unavailable          an engine is away; carries retry_after
│   ├── RedisUnavailable    503  redis_unavailable
│   │   ├── StoreLost       503  store_lost           Redis came back without the store that was in it
│   │   └── StoreChanged    503  store_changed        Redis holds another store than before
│   ├── ModelUnavailable    503  model_unavailable
│   │   └── BudgetSpent     429  model_tokens_spent   the tenant's model tokens of the day are used up
│   └── Overloaded          503  overloaded           as many requests are under way as are taken
├── UnknownWork             -    unknown_work         only a newer version's worker can do it
├── ModelAnswerInvalid      502  model_answer_invalid the model answered, but not usably
│   └── ContextExceeded     502  context_exceeded     the request is larger than the model's context
└── StartupError            -    startup_error        one clear line and exit code 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class AgentMemoryError(Exception):
    """Root of all errors that this project raises on purpose."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class BadInput(AgentMemoryError):
    """The caller's input is wrong; `field` is its path in the request, `message` names the fix."""

    code = "invalid_input"
    status = 422

    def __init__(self, message: str, *, field: str, where: str = "body", **data: Any) -> None:
        super().__init__(message, field=field, **data)
        self.field = field
        self.where = where


class UnsupportedRequest(BadInput):
    """The request is well-formed, but asks for something that we do not do (400)."""

    code = "refused"
    status = 400


class NotSupported(AgentMemoryError):
    """An operation of another product's API that this server does not have; `message` names it."""

    code = "not_supported"
    status = 501


class Unauthenticated(AgentMemoryError):
    """No credentials were sent, or none that count."""

    code = "unauthenticated"
    status = 401


class Forbidden(AgentMemoryError):
    """The credentials are good, but do not reach that far."""

    code = "forbidden"
    status = 403


class NotFound(AgentMemoryError):
    """No such thing in the caller's scope."""

    code = "not_found"
    status = 404


class MethodRefused(AgentMemoryError):
    """The path exists, the method on it does not."""

    code = "method_not_allowed"
    status = 405


class Conflict(AgentMemoryError):
    """The request contradicts what is stored or under way."""

    code = "conflict"
    status = 409


class IdTaken(Conflict):
    """Ids of memories (`ids`) belong to others: nothing was written. The text is the same whoever they are."""

    def __init__(self, ids: Sequence[str], *, field: str = "id") -> None:
        super().__init__("this id is taken: give another one, or none", field=field)
        self.ids = ids

    def of(self, ids: Sequence[str]) -> IdTaken:
        """The same error, naming the first of them among `memories` with these ids."""
        position = next(position for position, name in enumerate(ids) if name in self.ids)
        return IdTaken(self.ids, field=f"memories.{position}.id")


class RequestUnderWay(Conflict):
    """The first request under an Idempotency-Key is being carried out; try again after `retry_after` seconds at the latest."""

    code = "request_under_way"

    def __init__(self, message: str, *, retry_after: int, **data: Any) -> None:
        super().__init__(message, **data)
        self.retry_after = retry_after


class ErasureUnderWay(Conflict):
    """The user, session or agent is being erased: nothing was written; try again after `retry_after` seconds.

    `age`: how many seconds ago it was ordered; `is_over`: the erasure ended since this work began, which could bring back what is erased.
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
    """The head or the body of the request did not come in time; the connection is closed."""

    code = "request_timeout"
    status = 408


class WrongHost(AgentMemoryError):
    """The request was sent to a name that is none of the server's."""

    code = "misdirected"
    status = 421


class TooLarge(AgentMemoryError):
    """The request is larger than a limit that `message` names."""

    code = "too_large"
    status = 413


class TooMany(AgentMemoryError):
    """A limit of the tenant's is reached; try again after `retry_after` seconds."""

    code = "too_many"
    status = 429

    def __init__(self, message: str, *, retry_after: int = 1, **data: Any) -> None:
        super().__init__(message, **data)
        self.retry_after = retry_after


class Unavailable(AgentMemoryError):
    """An engine that the request needs is away; try again after `retry_after` seconds."""

    code = "unavailable"
    status = 503

    def __init__(self, message: str, *, retry_after: int = 1, **data: Any) -> None:
        super().__init__(message, **data)
        self.retry_after = retry_after


class RedisUnavailable(Unavailable):
    """Redis cannot be reached, is loading, is read-only or is out of memory."""

    code = "redis_unavailable"


class StoreLost(RedisUnavailable):
    """Redis is empty although it held a store: nothing is read or written until an operator accepts that."""

    code = "store_lost"


class StoreChanged(RedisUnavailable):
    """Redis holds another store than before: nothing is read or written until an operator accepts that."""

    code = "store_changed"


class ModelUnavailable(Unavailable):
    """The model server cannot be reached, refuses us, or took longer than its budget."""

    code = "model_unavailable"


class BudgetSpent(ModelUnavailable):
    """The tenant has used its model tokens of the day: whoever can do without a model does, what cannot waits for tomorrow."""

    code = "model_tokens_spent"
    status = 429


class Overloaded(Unavailable):
    """The process has as many requests under way as it takes; the others are refused at once."""

    code = "overloaded"


class UnknownWork(AgentMemoryError):
    """Background work that a newer version wrote down: it is left for a worker that knows it, and no try is counted."""

    code = "unknown_work"


class ModelAnswerInvalid(AgentMemoryError):
    """The model answered something that is not usable even after one repair (`data["reason"]`).

    `cut_off` is what it answered before the bound of its answers' length, where that is the reason; no answer of ours shows it.
    """

    cut_off: str = ""

    code = "model_answer_invalid"
    status = 502


class ContextExceeded(ModelAnswerInvalid):
    """The request, or its answer, has no room in the model's context: less may be asked, the same never again."""

    code = "context_exceeded"


class StartupError(AgentMemoryError):
    """The process cannot start: the message is the one line that is printed before exit code 1."""

    code = "startup_error"
