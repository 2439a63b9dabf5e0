"""`scpslab claims`: the papers' findings, tested against runs."""

from pathlib import Path
from typing import Annotated

import typer

from scpslab.analysis.claims import (
    QUESTIONS,
    Evidence,
    Paper,
    Verdict,
    evaluate,
    load,
    load_all,
    load_beside,
    scoreboard,
)
from scpslab.analysis.claims.load import strange_words
from scpslab.cli.options import split
from scpslab.cli.tables import Format, FormatOption, as_table, print_report, table_console
from scpslab.cli.terminal import warn
from scpslab.core.choices import one_of
from scpslab.core.errors import FAILED_EXIT, ScenarioError, UsageError
from scpslab.runs import runs_of

NAMED = 4
ANALYSIS = QUESTIONS.parent


def claims(
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN]...")] = None,
    paper: list[str] | None = None,
    questions: Annotated[bool, typer.Option("--questions")] = False,
    file: Annotated[list[Path] | None, typer.Option("--file")] = None,
    details: Annotated[bool, typer.Option("--details")] = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Test every finding of the papers against your runs.

    analysis/claims/*.yaml holds the bands and their reasons; "scpslab docs claims" explains the outcomes. A cell that
    is in several runs counts once, from the newest run. Claims of your own are in the folder claims/ beside your
    scenario, or in a file that --file names. Exit code 1: a file of claims could not be used; a warning names it.

    Examples: scpslab claims · scpslab claims last --details · scpslab claims --paper fy97 --format csv > fy97.csv

    Options:
        runs: Runs or campaigns: a folder, a name under runs/, or "last". Default: all.
        paper: Test only the claims of the file of this name; repeat the option, or separate names with commas.
        questions: Test the questions that the papers left open instead, as statements: reproduced means yes.
        file: Test the claims of this file of yours instead, and show each; repeat the option for several files.
        details: Show every claim with its number, not only the counts.
    """
    folders = runs_of(runs or [])
    warned: list[str] = []
    papers = _of_files(file, warned) if file else load_all(QUESTIONS) if questions else load_all()
    if not file and not questions:
        own, warned = load_beside(folders, papers)
        papers += own
    wanted, known = split(paper), [item.name for item in papers]
    if unknown := [name for name in wanted if name not in known]:
        raise UsageError(f'--paper: found "{unknown[0]}"; {one_of(unknown[0], known)}')
    evidence = Evidence.of_runs(folders, warn)
    asked = [item for item in papers if not wanted or item.name in wanted]
    chosen = _with_known_words(asked, evidence, warned, has_one=len(file or ()) == 1)
    for text in warned:
        warn(text)
    _show(evaluate(chosen, evidence), evidence, len(folders), format_, has_list=details or questions or bool(file))
    if warned:
        raise typer.Exit(FAILED_EXIT)


def _of_files(files: list[Path], warned: list[str]) -> list[Paper]:
    """The claims of these files. A file with mistakes costs only itself, if there are others."""
    found = []
    for path in files:
        try:
            found.append(load(path))
        except ScenarioError as error:
            if len(files) == 1:
                raise
            warned.append(str(error))
    return found


def _with_known_words(papers: list[Paper], evidence: Evidence, warned: list[str], *, has_one: bool) -> list[Paper]:
    """The papers whose scenarios and columns exist.

    One with a misspelled word costs only itself, if it is not the only one that was asked for.
    """
    found = []
    for paper in papers:
        # The project's own name scenarios that somebody may not have, and columns of every version.
        wrong = [] if paper.places.path.is_relative_to(ANALYSIS) else list(strange_words(paper, evidence))
        if wrong and has_one:
            raise paper.places.error(wrong)
        if wrong:
            warned.append(str(paper.places.error(wrong)))
        else:
            found.append(paper)
    return found


def _show(verdicts: list[Verdict], evidence: Evidence, runs: int, format_: Format, *, has_list: bool) -> None:
    notes = []
    for run, changes in evidence.changed.items() if format_ is Format.TABLE else ():
        conditions = f"{'; '.join(changes[:NAMED])}{' …' if len(changes) > NAMED else ''}"
        notes.append(
            f"{run.name} decides no claim, because its settings change conditions of its scenario: {conditions}"
        )
    if format_ is Format.TABLE:
        count = f"{runs} runs decide {scoreboard.decided(verdicts)} of {len(verdicts)} claims"
        notes.append(f"{count}; --details shows each claim with its number.")
        if has_list:
            table_console().print(as_table(scoreboard.by_paper(verdicts)))
    print_report((scoreboard.by_claim if has_list else scoreboard.by_paper)(verdicts, notes), format_)
