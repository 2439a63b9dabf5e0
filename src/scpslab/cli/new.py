"""`scpslab new`: writes a scenario with comments, from a few questions or options."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.prompt import Prompt

from scpslab import scenario
from scpslab.cli.options import split
from scpslab.cli.terminal import harmless, printable
from scpslab.core import units
from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.names import is_name
from scpslab.scenario import fresh, planning

SUFFIXES = (".yaml", ".yml")
DEFAULTS = fresh.Choices("")
MOST_REPEATS = 1000
# Questions stand beside the progress, so that the output is the file's name alone.
ASKING = Console(stderr=True)


def new(  # typer calls it by name
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", callback=printable, help="The file to write, for example mine.yaml; it must not exist yet."
        ),
    ],
    title: Annotated[str | None, typer.Option(help="The title. Default: the name of the file.")] = None,
    topology: Annotated[str | None, typer.Option(help=f"The network, one of {', '.join(fresh.networks())}.")] = None,
    workload: Annotated[
        str | None, typer.Option(help=f"The traffic, one of {', '.join(fresh.workload_kinds())}.")
    ] = None,
    stacks: Annotated[
        list[str] | None,
        typer.Option(
            help="The stacks to compare, separated with commas: congestion controls (cubic), presets (fy97-reno), "
            "scps-modern, …."
        ),
    ] = None,
    ber: Annotated[list[str] | None, typer.Option(help="Bit error rates of the link, separated with commas.")] = None,
    size: Annotated[str | None, typer.Option(help="Bytes to send, for example 1 MB.")] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, max=MOST_REPEATS, help="Number of repeats of each point of the sweep.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The root of all random numbers.")] = DEFAULTS.seed,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing: take the default of what is not given.")] = False,
) -> None:
    """Write a new scenario with comments, ready to run and to edit.

    At a terminal, the command asks for what the options do not say. It never overwrites a file.

    Examples: scpslab new mine.yaml · scpslab new mine.yaml --stacks cubic,scps-modern --ber 0,1e-6 --size "4 MB" --yes
    """
    _check_name(file)
    _check_options(ber, size)
    asks = not yes and os.isatty(0) and os.isatty(2)
    chosen_topology = topology or _choice("Network", fresh.networks(), DEFAULTS.topology, asks=asks)
    chosen_workload = workload or _choice("Traffic", fresh.workload_kinds(), DEFAULTS.workload, asks=asks)
    has_size = chosen_workload in fresh.workload_kinds() and fresh.has_size(chosen_workload)
    choices = fresh.Choices(
        title=title or file.stem,
        topology=chosen_topology,
        workload=chosen_workload,
        stacks=split(stacks)
        or split([_answer("Stacks, separated with commas", ",".join(DEFAULTS.stacks), _wrong_stacks, asks=asks)]),
        bers=split(ber)
        or split([_answer("Bit error rates, separated with commas", ",".join(DEFAULTS.bers), _wrong_rates, asks=asks)]),
        size=size if size is not None or not has_size else _answer("Bytes to send", "1 MB", _wrong_size, asks=asks),
        repeats=repeats
        if repeats is not None
        else int(_answer("Repeats", str(DEFAULTS.repeats), _wrong_number, asks=asks)),
        seed=seed,
    )
    text = fresh.text(choices)
    cells, seconds = _checked(file, text)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise _exists(file) from error
    typer.echo(
        f"{cells} cells of at least {seconds:.0f} virtual seconds together. Edit the file if you like, then:", err=True
    )
    for command, does in (
        (f"scpslab validate {shlex.quote(str(file))}", "check it"),
        (f"scpslab run {shlex.quote(str(file))}", "run it"),
        ("scpslab results last", "show means with intervals"),
        ("scpslab compare last --axis stack", "compare the stacks"),
        ("scpslab plot last", "draw figures"),
    ):
        typer.echo(harmless(f"  {command:<40}  {does}"), err=True)
    typer.echo(harmless(str(file)))


def _check_name(file: Path) -> None:
    """Refuses a file that exists, has no folder, or has a name that is no scenario's."""
    if file.suffix not in SUFFIXES or not is_name(file.stem):
        raise UsageError(
            f'{file}: found the name "{file.name}"; expected letters, digits, "-", "_" or "." and .yaml at the end. '
            "Choose another name."
        )
    if file.exists() or file.is_symlink():
        raise _exists(file)
    if not file.parent.is_dir():
        raise UsageError(f"{file}: found no folder {file.parent}; expected one. Make it, or choose another.")


def _check_options(ber: list[str] | None, size: str | None) -> None:
    """Refuses what would not be a value in the file."""
    wrong = []
    if ber and (mistake := _wrong_rates(",".join(ber))):
        wrong.append(f'--ber: found "{",".join(ber)}"; {mistake}. Correct the option.')
    if size is not None and (mistake := _wrong_size(size)):
        wrong.append(f"--size: {mistake}. Correct the option.")
    if wrong:
        raise UsageError("\n".join(wrong))


def _exists(file: Path) -> UsageError:
    return UsageError(
        f"{file}: found a file; expected none, because nothing is overwritten. Choose another name, or remove the file."
    )


def _checked(file: Path, text: str) -> tuple[int, float]:
    """The number of cells and their least virtual time, from the text as it will be read; nothing is written beside the
    user's files before it is right.
    """
    with tempfile.TemporaryDirectory(prefix="scpslab-new-") as folder:
        written = Path(folder) / file.name
        written.write_text(text, encoding="utf-8")
        try:
            loaded = scenario.load(str(written))
            cells = list(planning.plans(scenario.cells(loaded)).values())
        except ScenarioError as error:
            complaints = str(error).replace(str(written), str(file))
            raise UsageError("\n".join(f"{line} (nothing was written)" for line in complaints.splitlines())) from error
    return len(cells), sum(planning.least_virtual_s(cell) for cell in cells)


def _answer(question: str, default: str, wrong: Callable[[str], str | None], *, asks: bool) -> str:
    """An answer that is not wrong; the default if nobody is asked."""
    while asks:
        answer = Prompt.ask(question, default=default, console=ASKING)
        mistake = wrong(answer)
        if mistake is None:
            return answer
        ASKING.print(mistake, style="red", markup=False, highlight=False)
    return default


def _choice(question: str, choices: list[str], default: str, *, asks: bool) -> str:
    return Prompt.ask(question, choices=choices, default=default, console=ASKING) if asks else default


def _wrong_number(answer: str) -> str | None:
    return (
        None
        if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= MOST_REPEATS
        else f"expected a number from 1 to {MOST_REPEATS}"
    )


def _wrong_stacks(answer: str) -> str | None:
    cases = fresh.stack_cases()
    unknown = [name for name in split([answer]) if name not in cases]
    return (
        f'"{unknown[0]}": {one_of(unknown[0], cases)}'
        if unknown
        else None
        if split([answer])
        else "expected at least one name"
    )


def _wrong_rates(answer: str) -> str | None:
    try:
        return (
            None
            if all(0 <= float(word) <= 1 for word in split([answer])) and split([answer])
            else "expected numbers from 0 to 1"
        )
    except ValueError:
        return "expected numbers, such as 0,1e-6"


def _wrong_size(answer: str) -> str | None:
    try:
        units.parse("size", answer)
    except units.UnitError as error:
        return str(error)
    return None
