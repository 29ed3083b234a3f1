"""Print lines, tables, questions and progress. Only results go to stdout."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand

from agent_memory.foundation.core.errors import AgentMemoryError

FAILED, USAGE, NOT_FOUND = 1, 2, 3
# A stored text must not control the terminal.
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])


class Command(TyperCommand):
    """A command that can print errors as JSON."""

    def invoke(self, ctx: typer.Context) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            return super().invoke(ctx)
        except AgentMemoryError as error:
            if self.name == "call" or ctx.params.get("as_json") or ctx.params.get("form") == "json":
                typer.echo(json.dumps({"error": error.advice}, ensure_ascii=False))
            raise

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        write = formatter.write_dl
        formatter.write_dl = lambda rows: write([(re.sub(r"list\[|](?=>)| range", "", name), text) for name, text in rows])  # pyright: ignore
        super().format_options(ctx, formatter)


def say(*texts: str, err: bool = False) -> None:
    """Print text wrapped at 100 columns."""
    for each in texts:
        for line in each.translate(_CONTROLS).replace("\n", "\n    ").split("\n"):
            text = textwrap.fill(line, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
            print(text, file=sys.stderr if err else sys.stdout, flush=True)  # not typer.echo, which would write into a progress bar


def report(text: str) -> None:
    """Print a one-line message, such as an error, to stderr."""
    say(f"agent-memory: {' '.join(text.split())}", err=True)


def shown_server(url: str) -> str:
    """Return a server's URL with its credentials and query string removed."""
    return re.split(r"[?#]", re.sub(r"(?<=//)[^/?#]*@", "", url))[0].rstrip("/")


@contextmanager
def progress(task: str, total: float | None = None, *, shown: bool = True) -> Generator[Callable[..., object]]:
    """Show progress. Yields a function that takes the arguments of rich's `Progress.update`."""
    if not shown or not sys.stderr.isatty():
        yield dict  # ignores its arguments
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        yield partial(bar.update, bar.add_task(task, total=total))


def ask(question: str, *, force: bool, option: str = "--force") -> None:
    """Ask the user to confirm. Raises typer.Exit if they decline or there is no terminal."""
    if force:
        return
    if not sys.stdin.isatty():
        say(f"no terminal to ask for confirmation: pass {option} to delete without a question", err=True)
        raise typer.Exit(USAGE)
    if not typer.confirm(question, err=True):
        say("nothing was deleted", err=True)
        raise typer.Exit(FAILED)
