"""Define MCP tools. `Feature.tools` contains the import strings of `ToolSet` objects.

A tool takes the services, the caller, and a pydantic model with its arguments. Language models see
its docstring.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Literal, TypedDict, TypeVar, Unpack, get_args

from pydantic import BaseModel, ValidationError

from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.input.lenient_arguments import lenient
from agent_memory.foundation.core.input.unknown_fields import FieldCheck, Unknown, refuse_narrowing
from agent_memory.foundation.core.scope import Scope

Wire = TypeVar("Wire", bound=BaseModel)


class InvalidArguments(Exception):
    def __init__(self, reason: ValidationError) -> None:
        super().__init__(str(reason.error_count()))
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Caller:
    """A tool's caller: its scope, default namespace, and default user.

    If `can_ask` is True, a tool may return a `Question`. `chosen` contains the ids that the user
    selected.
    """

    scope: Scope
    namespace: str | None = None
    user_id: str | None = None
    can_ask: bool = False
    chosen: frozenset[str] | None = None

    @classmethod
    def of(cls, scope: Scope, namespace: str | None, user_id: str | None) -> Caller:
        """Return a caller. If the scope has only one namespace or user, it becomes the default."""
        return cls(scope, namespace or _only(scope.namespaces), _only(scope.users) or user_id)


def _only(names: frozenset[str] | None) -> str | None:
    return next(iter(names)) if names is not None and len(names) == 1 else None


@dataclass(frozen=True, slots=True)
class Question:
    """A question that lets the user choose any number of options.

    `choices` maps ids to texts.
    """

    text: str
    choices: Mapping[str, str]


ToolChoice = Literal["core", "agent", "all"]
"""The name of a tool set, which includes the sets before it."""
CHOICES: Sequence[ToolChoice] = get_args(ToolChoice)

ToolRun = Callable[[Services, Caller, Any], Awaitable[BaseModel | Question]]
ResourceRead = Callable[[Services, Caller, str, str], Awaitable[BaseModel]]
_Run = TypeVar("_Run", bound=ToolRun)


@dataclass(frozen=True, slots=True)
class Tool:
    """An MCP tool. `takes` and `answers` are its input and output models.

    If `deletes` is true, the tool rejects unknown arguments that look like filters. `offered` is
    the smallest tool set that includes the tool. In sets smaller than `all`, clients see only the
    `common` arguments, or every argument if `common` is empty.
    """

    name: str
    takes: type[BaseModel]
    answers: type[BaseModel]
    run: ToolRun
    check: FieldCheck
    writes: bool = False
    destroys: bool = False
    deletes: bool = False
    offered: ToolChoice = "all"
    common: Sequence[str] = ()

    def read(self, arguments: dict[str, Any], *, strict: bool) -> tuple[Any, Sequence[Unknown]]:
        """Return the validated arguments and any ignored fields.

        Raises InvalidArguments or UnknownFields.
        """
        try:
            values, ignored = self.check.read(lambda check: check.validate_python(arguments), strict=strict)
        except ValidationError as error:
            raise InvalidArguments(error) from error
        refuse_narrowing(ignored, self._place_of, deletes=self.deletes)
        return values, ignored

    def _place_of(self, name: str) -> str | None:
        return f"{name} where the tool takes it" if name in self.check.scope_fields else None

    @property
    def description(self) -> str:
        return cleandoc(self.run.__doc__ or "")


@dataclass(frozen=True, slots=True)
class Resource:
    """An MCP resource that exists for every user: `memory://{user_id}/<path>`.

    The path can end with one `{parameter}`. `read` receives the user and the parameter.
    """

    path: str
    read: ResourceRead

    @property
    def description(self) -> str:
        return cleandoc(self.read.__doc__ or "")


class ToolOptions(TypedDict, total=False):
    writes: bool
    destroys: bool
    deletes: bool
    offered: ToolChoice
    common: Sequence[str]


class ToolSet:
    """A feature's tools and resources, in the order shown to clients."""

    def __init__(self) -> None:
        self._tools: list[Tool] = []
        self.resources: list[Resource] = []

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def tool(self, takes: type[BaseModel], answers: type[BaseModel], **options: Unpack[ToolOptions]) -> Callable[[_Run], _Run]:
        """Register the decorated function as a tool."""

        def add(run: _Run) -> _Run:
            self._tools.append(Tool(run.__name__, takes, answers, run, FieldCheck(takes, lenient), **options))
            return run

        return add

    def resource(self, path: str) -> Callable[[ResourceRead], ResourceRead]:
        """Register the decorated function as a resource."""

        def add(read: ResourceRead) -> ResourceRead:
            self.resources.append(Resource(path, read))
            return read

        return add


def read_values(model: type[Wire], values: Any) -> Wire:
    """Validate the values and return them as a model. Raises InvalidArguments."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidArguments(error) from error
