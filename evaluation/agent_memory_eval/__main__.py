"""The commands of `agent-memory-eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from agent_memory.cli.app import run_app
from agent_memory_eval.commands.prompts import evaluate_prompts
from agent_memory_eval.commands.recall import EvaluationOptions, evaluate
from agent_memory_eval.commands.recall import compare as compare_reports

app = typer.Typer(
    help="Measure recall on conversations with known evidence or run scenarios for memory prompts.",
    rich_markup_mode=None,
)


@app.command()
def recall(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="conversations in LoCoMo's or LongMemEval's format")] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="a running server (otherwise one is started for this)")] = None,
    entrance: Annotated[Literal["memories", "sessions", "both"], typer.Option(help="how turns go in")] = "memories",
    unit: Annotated[Literal["turn", "session"], typer.Option(help="what is to be found, in the table and the plot")] = "turn",
    mode: Annotated[
        Literal["default", "semantic", "keyword", "hybrid"], typer.Option(help="the search mode that is asked for")
    ] = "default",
    limit: Annotated[int, typer.Option(min=1, max=100, help="memories per search")] = 50,
    prompt: Annotated[bool, typer.Option("--prompt/--no-prompt", help="also ask for memory prompts")] = True,
    max_tokens: Annotated[int | None, typer.Option(min=64, help="of a prompt; its first 4000 are looked at if not given")] = None,
    conversations: Annotated[int | None, typer.Option(min=1, metavar="N", help="only the first N conversations")] = None,
    run: Annotated[str | None, typer.Option(metavar="NAME", help="begin of all ids (a new one each time)")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="OUT", help="write all figures to a file")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="OUT", help="write a picture (SVG)")] = None,
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="what is printed")] = "table",
    floors: Annotated[
        str | None, typer.Option(metavar="FLOORS", help="least figures in per cent, such as R@10=80,answerable:R@10=77,MRR=50,prompt=85")
    ] = None,
    compare: Annotated[tuple[Path, Path] | None, typer.Option(metavar="A B", help="compare two files that --json wrote")] = None,
) -> None:
    """Measure recall on conversations with known evidence. Exit code 1 if a question failed, nothing could be measured, or a figure is
    below its floor."""
    if compare is not None:
        raise typer.Exit(compare_reports(*compare, unit, form))
    if file is None:
        raise typer.BadParameter("recall needs a FILE of conversations, or --compare A B")
    wanted = EvaluationOptions(
        file, url, entrance, unit, mode, limit, prompt, max_tokens, conversations, run, json_file, plot, form, floors
    )
    raise typer.Exit(evaluate(wanted))


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
    """Run scenarios and print each check that fails, with the prompt it failed on. Exit code 1 if any does."""
    raise typer.Exit(evaluate_prompts(file, extractor, scenario or [], as_json=as_json))


def main() -> None:
    """The entry point of `agent-memory-eval`."""
    run_app(app)


if __name__ == "__main__":
    main()
