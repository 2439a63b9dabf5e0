"""`scpslab plot`: the figures of a run."""

from typing import Annotated

import typer

from scpslab.analysis.figures import draw
from scpslab.cli.options import RunArgument, split
from scpslab.cli.terminal import warn
from scpslab.core.errors import FAILED_EXIT, ResultError
from scpslab.runs import find_run


def plot(
    run: RunArgument = "last",
    figure: list[str] | None = None,
    cell: list[str] | None = None,
    format_: Annotated[list[str] | None, typer.Option("--format")] = None,
) -> None:
    """Draw the figures of a run.

    The command writes the figures to RUN/figures/ and prints their paths, one per line. The recipes in
    analysis/figures/*.yaml say which figures belong to which scenario, and hold the values that the papers state.
    Recipes of your own are in the folder figures/ beside your scenario. A scenario without a recipe gets the figures
    over-time and points. Exit code 1: a recipe could not be drawn; a warning names it.

    Examples: scpslab plot last · scpslab plot last --figure fy97-a01 --cell "stack=cubic,ber=0,r1" · scpslab plot last
    --format pdf

    Options:
        figure: Draw this recipe, by its name, or the path of its file. Default: all recipes that apply to the scenario.
        cell: Draw this cell instead of the recipe's choice; several cells are drawn in one figure.
        format_: png, svg, pdf; default png,svg.
    """
    run_dir = find_run(run)
    warned: list[str] = []
    # Cell ids contain commas: only whole options count.
    formats = tuple(split(format_)) or ("png", "svg")
    paths = draw(run_dir, split(figure) or None, cells=tuple(cell or ()), formats=formats, warn=warned.append)
    for text in warned:
        warn(text)
    if not paths and not warned:
        expected = "expected one. Choose a figure of analysis/figures/ with --figure NAME."
        raise ResultError(f"{run_dir}: found no recipe that applies to its scenario and has data; {expected}")
    for path in paths:
        typer.echo(path)
    if warned:
        raise typer.Exit(FAILED_EXIT)
