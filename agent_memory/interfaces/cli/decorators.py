"""Turn functions into commands with common options."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agent_memory.foundation.core.listing import describe
from agent_memory.interfaces.cli.options import DataDir, Url, named_server
from agent_memory.interfaces.cli.output import say

if TYPE_CHECKING:
    from agent_memory.interfaces.cli.api_client import Api

_ApiKey = Annotated[str | None, typer.Option("--api-key", metavar="KEY", help="API key for the server (default: AGENT_MEMORY_API_KEY)")]
_Format = Annotated[Literal["text", "json"] | None, typer.Option("--format", help="json: one JSON document on stdout")]
_Json = Annotated[bool | None, typer.Option("--json", help="same as --format json", show_default=False)]


def parameters(**annotations: Any) -> list[Parameter]:
    """Return keyword parameters with these annotations, defaulting to None."""
    return [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in annotations.items()]


_OUTPUT = parameters(form=_Format, as_json=_Json)
_TARGET = parameters(url=Url, api_key=_ApiKey, data_dir=DataDir)


@dataclass(frozen=True, slots=True)
class Answer:
    """A command's output: `data` for JSON, and human-readable `text`.

    If `text` is None, `data` is shown instead.
    """

    data: Any
    text: Sequence[str] | str | None = None
    code: int = 0


def extend(
    command: Callable[..., Any], added: Sequence[Parameter], call: Callable[[dict[str, Any], dict[str, Any]], Any], *, skip: int = 1
) -> Callable[..., Any]:
    """Return a command that has the additional options `added`.

    `call` receives the values of these options, and of the command's own parameters except the
    first `skip`.
    """
    names = [parameter.name for parameter in added]

    def run(**values: Any) -> Any:
        return call({name: values.pop(name) for name in names}, values)

    own = list(signature(command, eval_str=True, locals={"Api": object, "Keys": object}).parameters.values())[skip:]
    parameters = [*(parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own), *added]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    setattr(run, "__signature__", Signature(parameters))  # noqa: B010 - functions have no such attribute for type checkers
    return run


def prints(command: Callable[..., Any]) -> Callable[..., None]:
    """Add `--format` and `--json` to a command, and print its result."""
    return extend(command, _OUTPUT, lambda output, own: _emit(command(**own), output), skip=0)


def asking(opened: Callable[..., AbstractAsyncContextManager[Any]]) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., None]]:
    """Return a decorator that passes an open server or store to a command.

    `opened` opens the server at `url`, the store in `data_dir`, or the configured store.
    """

    def decorate(command: Callable[..., Awaitable[Any]]) -> Callable[..., None]:
        def call(added: dict[str, Any], own: dict[str, Any]) -> None:
            import asyncio  # takes a tenth of a second, so --help does not import it

            async def run() -> Any:
                url, data_dir = added["url"], added["data_dir"]
                if url and data_dir:
                    raise typer.BadParameter("--url names a server, --data-dir a store: give one of them")
                async with opened(url or (None if data_dir else named_server()), added["api_key"], data_dir) as reached:
                    return await command(reached, **own)

            _emit(asyncio.run(run()), added)

        return extend(command, [*_TARGET, *_OUTPUT], call)

    return decorate


def _reach(*target: Any) -> AbstractAsyncContextManager[Api]:
    from agent_memory.interfaces.cli.api_client import reach

    return reach(*target)


asks = asking(_reach)
"""Decorate a command whose first argument is a REST API."""


def _emit(answer: Any, output: dict[str, Any]) -> None:
    answer = answer if isinstance(answer, Answer) else Answer(answer)
    if answer.data is not None and (output["as_json"] or output["form"] == "json"):
        typer.echo(json.dumps(answer.data, ensure_ascii=False))
    elif isinstance(answer.text, str):
        typer.echo(answer.text)
    else:
        say(*(describe(answer.data) or ["nothing"] if answer.text is None else answer.text))
    if answer.code:
        raise typer.Exit(answer.code)
