"""Tools for models over MCP, as a feature offers them: a `ToolSet` of functions, which `Feature.tools` names and `mcp` lists.

A tool is an async function of what the features opened, of its caller, and of the model that its arguments make. Its docstring is what a
model reads before it chooses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Literal, TypedDict, TypeVar, Unpack, get_args

from pydantic import BaseModel, ValidationError

from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.input.lenient_schema import lenient
from agent_memory.foundation.core.input.unknown_fields import FieldCheck, Unknown, UnknownFields, misplaced, narrowing_nothing, narrows
from agent_memory.foundation.core.scope import Scope

Wire = TypeVar("Wire", bound=BaseModel)


class InvalidArguments(Exception):
    """The arguments do not fit; `reason` says where."""

    def __init__(self, reason: ValidationError) -> None:
        super().__init__(str(reason.error_count()))
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls a tool: what they may see, and the namespace and the user that are meant when the arguments name none."""

    scope: Scope
    namespace: str | None = None
    user_id: str | None = None


ToolChoice = Literal["core", "agent", "all"]
"""A set of tools; each holds those before it."""
CHOICES: Sequence[ToolChoice] = get_args(ToolChoice)

ToolRun = Callable[[Services, Caller, Any], Awaitable[BaseModel]]
_Run = TypeVar("_Run", bound=ToolRun)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, models of what it takes and answers, and what carries it out.

    `writes` and `destroys` say what it may do; one that `deletes` refuses arguments that nobody knows, if they seem to narrow what goes.
    `offered` is the smallest set of tools that it belongs to; `common` are the arguments that the smaller sets list, all if empty.
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
        """What the arguments say, and those that are ignored. Raises InvalidArguments, and UnknownFields for those that are refused."""
        try:
            values, ignored = self.check.read(lambda check: check.validate_python(arguments), strict=strict)
        except ValidationError as error:
            raise InvalidArguments(error) from error
        if ignored and (found := misplaced(ignored, self._place_of)):
            raise UnknownFields(found)
        if self.deletes and (lost := [narrowing_nothing(field) for field in ignored if narrows(field)]):
            raise UnknownFields(lost)
        return values, ignored

    def _place_of(self, name: str) -> str | None:
        return f"{name} where the tool takes it" if name in self.check.scope_fields else None

    @property
    def description(self) -> str:
        """What a model reads before it chooses."""
        return cleandoc(self.run.__doc__ or "")


class ToolOptions(TypedDict, total=False):
    """What a tool may do and where it is offered, as the fields of `Tool` say."""

    writes: bool
    destroys: bool
    deletes: bool
    offered: ToolChoice
    common: Sequence[str]


class ToolSet:
    """The tools of one feature, in the order in which they are listed."""

    def __init__(self) -> None:
        self._tools: list[Tool] = []

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def tool(self, takes: type[BaseModel], answers: type[BaseModel], **options: Unpack[ToolOptions]) -> Callable[[_Run], _Run]:
        """Makes a function a tool of its name."""

        def add(run: _Run) -> _Run:
            self._tools.append(Tool(run.__name__, takes, answers, run, FieldCheck(takes, lenient), **options))
            return run

        return add


def read_values(model: type[Wire], values: Any) -> Wire:
    """The model that values make. Raises InvalidArguments."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidArguments(error) from error
