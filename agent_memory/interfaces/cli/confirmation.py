"""The question before something is deleted for good."""

from __future__ import annotations

import sys

import typer

_FAILED, _USAGE = 1, 2


def ask(question: str, *, force: bool, option: str = "--force") -> None:
    """Returns when it may be done; `option` is what does it without a question.

    Raises typer.Exit otherwise, with a line on stderr: 2 where nobody can be asked."""
    if force:
        return
    if not sys.stdin.isatty():
        typer.echo(f"nobody can be asked here: give {option} to delete without a question", err=True)
        raise typer.Exit(_USAGE)
    if not typer.confirm(question, err=True):
        typer.echo("nothing was deleted", err=True)
        raise typer.Exit(_FAILED)
