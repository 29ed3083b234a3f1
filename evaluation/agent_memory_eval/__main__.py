"""The commands of `agent-memory-eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from agent_memory.interfaces.cli.app import run_app
from agent_memory_eval.commands.prompts import evaluate_prompts
from agent_memory_eval.commands.recall import RecallOptions, evaluate

app = typer.Typer(
    help="Measure recall on question sets, or run scenarios for memory prompts.",
    rich_markup_mode=None,
)


@app.command()
def recall(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="files of question sets, or folders of them")],
    sets: Annotated[list[str] | None, typer.Option(metavar="NAME", help="evaluate only this set; repeat it for several sets")] = None,
    questions: Annotated[int | None, typer.Option(min=1, metavar="N", help="at most N questions from each set, always the same")] = None,
    prompts: Annotated[int, typer.Option(min=0, metavar="N", help="prompts for at most N questions with evidence, and N without")] = 100,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="a running server (default: start a new one)")] = None,
    via: Annotated[Literal["memories", "sessions"], typer.Option(help="store turns as memories, or append them to sessions")] = "memories",
    baselines: Annotated[bool, typer.Option("--baselines/--no-baselines", help="also rank turns by plain retrieval")] = True,
    crowd: Annotated[int, typer.Option(min=0, metavar="N", help="store N memories of other users, and repeat the questions")] = 0,
    floors: Annotated[Path | None, typer.Option(metavar="FILE", help="a TOML file with floors, instead of the built-in ones")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="write all figures and rankings to this file")] = None,
) -> None:
    """Measure recall and prompts on question sets, and compare them with simple baselines.

    Exit with code 1 if a figure is below its floor or the crowd changes R@10 by more than a point.
    """
    options = RecallOptions(paths, sets or [], questions, prompts, base_url, via, baselines, crowd, floors, json_file)
    raise typer.Exit(evaluate(options))


@app.command()
def prompts(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="scenarios in YAML: days of messages, and checks of prompts")],
    extractor: Annotated[
        Literal["all", "none", "perfect", "sloppy", "configured"],
        typer.Option(help="the extractor of facts. all: none, perfect and sloppy. configured: the model in the settings"),
    ] = "all",
    scenario: Annotated[list[str] | None, typer.Option(metavar="NAME", help="run only this scenario; repeat it for several")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON on stdout: all figures and failures")] = False,
) -> None:
    """Run scenarios and print the failed checks. Exit with code 1 if any check fails."""
    raise typer.Exit(evaluate_prompts(file, extractor, scenario or [], as_json=as_json))


def main() -> None:
    run_app(app)


if __name__ == "__main__":
    main()
