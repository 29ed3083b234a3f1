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
    sets: Annotated[list[str] | None, typer.Option(metavar="NAME", help="only this set; may be given several times")] = None,
    questions: Annotated[int | None, typer.Option(min=1, metavar="N", help="at most N questions of each set, the same in each run")] = None,
    prompts: Annotated[int, typer.Option(min=0, metavar="N", help="prompts for at most N questions with evidence and N without")] = 100,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="a running server (otherwise one is started for this)")] = None,
    via: Annotated[Literal["memories", "sessions"], typer.Option(help="store turns as memories, or append them to sessions")] = "memories",
    baselines: Annotated[bool, typer.Option("--baselines/--no-baselines", help="also rank turns by plain retrieval")] = True,
    crowd: Annotated[int, typer.Option(min=0, metavar="N", help="ask again when N memories of other users are stored, too")] = 0,
    floors: Annotated[Path | None, typer.Option(metavar="FILE", help="floors in TOML, instead of our own")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="write all figures and rankings to a file")] = None,
) -> None:
    """Measure recall and prompts on question sets, beside plain baselines.

    The exit code is 1 if a figure is below its floor, or if R@10 moves by more than a point in the crowd.
    """
    options = RecallOptions(paths, sets or [], questions, prompts, base_url, via, baselines, crowd, floors, json_file)
    raise typer.Exit(evaluate(options))


@app.command()
def prompts(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="scenarios in YAML: days of messages, and what prompts must hold")],
    extractor: Annotated[
        Literal["all", "none", "perfect", "sloppy", "configured"],
        typer.Option(help="who takes facts out of messages; all: none, perfect and sloppy; configured: the model of the settings"),
    ] = "all",
    scenario: Annotated[list[str] | None, typer.Option(metavar="NAME", help="only this one; may be given several times")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print all figures and failures as JSON, and nothing else on stdout")] = False,
) -> None:
    """Run scenarios, and print each check that fails with the prompt it failed on. The exit code is 1 if any fails."""
    raise typer.Exit(evaluate_prompts(file, extractor, scenario or [], as_json=as_json))


def main() -> None:
    """Run `agent-memory-eval`."""
    run_app(app)


if __name__ == "__main__":
    main()
