"""`scpslab assignment`: a student's work on an assignment, from its start to the file that is handed in.

Options:
    in: The folder from `start`. Default: this one, or the only one below it.
"""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from scpslab import analysis as results
from scpslab.analysis import figures
from scpslab.cli.options import Jobs, check_out, texts
from scpslab.cli.progress import ConsoleProgress
from scpslab.cli.tables import plain_console, print_table, table_console
from scpslab.cli.terminal import printable, warn
from scpslab.core.choices import one_of
from scpslab.core.errors import FAILED_EXIT, UsageError, harmless
from scpslab.core.scratch import replace_bytes
from scpslab.running import RunOptions
from scpslab_course.cli import AnAssignment, now
from scpslab_course.course import assignment as assignments
from scpslab_course.course import variant as variants
from scpslab_course.course import workspace as folders
from scpslab_course.course.answers import GivenError, asked_in, read_practice, read_predicted
from scpslab_course.course.assignment import HANDOUT, find, load_assignment
from scpslab_course.course.check import State, check, runs
from scpslab_course.course.handout import PAGE
from scpslab_course.course.runs import run_variant
from scpslab_course.course.variant import fingerprint
from scpslab_course.course.workspace import Workspace, find_workspace, open_workspace
from scpslab_course.grading import submission

COMMAND = Path(__file__).resolve().parents[3] / "scpslab"
In = Annotated[Path | None, typer.Option("--in", metavar="FOLDER", help=texts(__doc__)["in"])]


def assignment() -> None:
    """Work on an assignment, from its start to what you hand in.

    Examples: scpslab assignment start first-steps · scpslab assignment predict small_s "10..20 s" · scpslab
    assignment run · scpslab assignment submit
    """


def list_() -> None:
    """List the assignments of this project.

    Examples: scpslab assignment list
    """
    table = Table("assignment", "minutes", "points", "title", header_style="bold")
    for name in assignments.names():
        file = load_assignment(find(name)).file
        table.add_row(name, str(file.minutes), f"{file.points:g}", file.title)
    table_console().print(table)


def start(
    name: AnAssignment,
    variant: Path | None = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER")] = None,
    key: str | None = None,
) -> None:
    """Make a folder with everything that you need for an assignment.

    The folder holds the handout, the scenarios, your parameters, and answers.yaml for your answers. The variant's
    signature is checked. With the practice variant, `check` says which answers are right; it cannot be handed in.

    Examples: scpslab assignment start first-steps · scpslab assignment start first-steps --variant
    first-steps.variant.json --out mine

    Options:
        variant: Your instructor's NAME.variant.json. Default: the practice variant with public answers.
        out: The folder to make. Default: NAME in this folder.
        key: The fingerprint of the course's key, as announced: it must be the variant's.
    """
    loaded = load_assignment(find(name))
    expected = "expected the file from your instructor. Correct the path"
    mine = folders.read_variant(variant, expected, "--variant ") if variant else read_practice(loaded).variant
    if key is not None and fingerprint(mine.key).replace(" ", "") != key.replace(" ", "").casefold():
        signed = f"the variant was signed with {fingerprint(mine.key)}"
        raise UsageError(f'--key: found "{key}"; {signed}. {variants.ASK}.')
    target = out or Path(loaded.name)
    workspace = folders.write_start(folders.plan_start(loaded, mine), loaded, mine, target, now())
    _say_start(workspace, target)
    typer.echo(harmless(str(target)))


def predict(
    key: Annotated[str, typer.Argument(metavar="KEY")] = "",
    value: Annotated[str, typer.Argument(metavar="VALUE")] = "",
    in_: In = None,
) -> None:
    """Write a prediction into the log, before the run; without a value, say what is to be predicted.

    Until a run that it is about begins, a prediction may be corrected: the last one counts. One that comes after the
    run is recorded as late.

    Examples: scpslab assignment predict · scpslab assignment predict transfer_s "10..20 s"

    Options:
        key: The name of the prediction.
        value: Your prediction: a word, or an interval, also with a unit: "10..20 s".
    """
    workspace = _open(in_)
    asked = workspace.assignment.file.predictions
    if (key or value) and key not in asked:
        raise UsageError(f'{workspace.assignment.name}: found no prediction "{key}"; {one_of(key, asked)}')
    if not value:
        for name in [key] if key else asked:
            typer.echo(harmless("\n  ".join((name, *asked_in(asked[name])))))
        return
    try:
        understood = read_predicted(asked[key], value)
    except GivenError as error:
        raise UsageError(f"{key}: {error}. {asked[key].question}") from error
    workspace.add(now(), "predict", key, value)
    lines, before = workspace.log(), workspace.assignment.before(key)
    counts = folders.given_predictions(lines, workspace.assignment)[key]
    if counts.number != len(lines):
        said = f"late, because a run has begun. Your earlier prediction counts: {counts.value}"
    elif folders.late(lines, len(lines), before):
        said = "late: there are results already, so it has no points"
    else:
        is_open = all(folders.begun_by(line).isdisjoint(before) for line in lines)
        said = "before the run" + ("; you may correct it until then" if is_open else "")
    typer.echo(harmless(f"{key}: recorded {understood}, {said}"))
    if left := workspace.unpredicted(lines, workspace.states()):
        typer.echo(harmless(f"still to predict: {', '.join(left)}"), err=True)
    else:
        has_run = all(run.is_complete for run in workspace.planned.values())
        typer.echo(f'nothing more to predict; next: "scpslab assignment {"check" if has_run else "run"}"', err=True)


def run(
    scenario: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO]...")] = None,
    jobs: Jobs = None,
    trust: Annotated[bool, typer.Option("--trust")] = False,
    unpredicted: Annotated[bool, typer.Option("--unpredicted")] = False,
    in_: In = None,
) -> None:
    """Run the scenarios with your parameters; repeat the command to resume.

    Predictions come before: without them nothing runs.

    Examples: scpslab assignment run · scpslab assignment run small-window

    Options:
        scenario: Scenarios of the assignment. Default: all, in their order.
        trust: Run topology files (Python) that others own or may write. Read them first.
        unpredicted: Run although predictions are missing. Afterwards they have no points.
    """
    workspace = _open(in_)
    known = workspace.assignment.file.scenarios
    for name in scenario or ():
        if name not in known:
            raise UsageError(f'{workspace.assignment.name}: found no scenario "{name}"; {one_of(name, known)}')
    left = workspace.unpredicted(workspace.log(), workspace.states())
    missing = [key for key, before in left.items() if before & set(scenario or known)]
    if missing and not unpredicted:
        expected = "expected them before the run, because afterwards they have no points"
        said = f"found no prediction of {', '.join(missing)}; {expected}"
        advice = f"Predict: scpslab assignment predict {missing[0]} VALUE. To run without them: --unpredicted."
        raise UsageError(f"{workspace.assignment.name}: {said}. {advice}")
    console = table_console(stderr=True)
    options = RunOptions(jobs=jobs, out=workspace.runs, trust=trust)
    for name in scenario or known:
        workspace.add(now(), "begin", name)
        progress = ConsoleProgress(console, jobs)
        folder = run_variant(workspace.assignment, workspace.variant.parameters, options, [progress], [name])[name]
        workspace.add(now(), "run", name)
        print_table(results.table.narrow(folder), table_console())
        for picture in figures.draw(folder, warn=warn):
            if picture.suffix == ".png":
                console.print(f"figure: {picture}", highlight=False, soft_wrap=True)
        typer.echo(harmless(str(folder)))


def check_(jobs: Jobs = None, in_: In = None) -> None:
    """Say what is done and what is missing, without giving an answer away.

    If the assignment asks for a program of yours, the command also runs the trials that you may see, and says what they
    give. Exit code 1: something is missing. With the practice variant, the command also says which answers are right.

    Examples: scpslab assignment check
    """
    workspace = _open(in_)
    findings = check(workspace, [ConsoleProgress(table_console(stderr=True), jobs)], jobs)
    table = Table("", "part", "", header_style="bold", box=None)
    for finding in findings:
        table.add_row(finding.state, finding.what, finding.says)
    table_console().print(table)
    if any(finding.state is State.MISSING for finding in findings):
        raise typer.Exit(FAILED_EXIT)


def restore(from_: Annotated[Path | None, typer.Option("--from", metavar="FOLDER")] = None, in_: In = None) -> None:
    """Bring back files that were handed out, or that a run has made, where they are missing or were changed.

    What stands in their place is moved to the folder set-aside. Answers, write-up, deliverables and the log stay as
    they are.

    Examples: scpslab assignment restore

    Options:
        from_: The assignment's folder. Default: the project's assignment.
    """
    folder = find_workspace(in_)
    handed_out = folders.original(folders.variant_of(folder), from_)
    lost = folders.changed_files(folder, handed_out)
    for name, content in lost.items():
        aside = folders.put_back(folder, name, content)
        typer.echo(harmless(f"{name}: restored" + (f"; what was there is {aside}" if aside else "")))
    workspace = open_workspace(folder)
    lines = workspace.log()
    changed = [(run, run.changed()) for run in workspace.planned.values() if run.is_complete]
    for run_, files in changed:
        for cell in {path.split("/")[1] for path in files}:
            aside = folders.set_aside(folder, run_.folder.cell(cell).path)
            typer.echo(harmless(f"run {run_.scenario}: cell {cell} is now {aside}"))
        if files:
            typer.echo(harmless(f"next: scpslab assignment run {run_.scenario}"), err=True)
    others = [one for one in runs(workspace, lines, workspace.states()) if one.state is State.LOOK]
    for one in others:
        typer.echo(harmless(f"{one.what}: {one.says}"), err=True)
    if not lost and not others and not any(files for _, files in changed):
        typer.echo("nothing was changed", err=True)


def submit(
    out: Annotated[Path | None, typer.Option(metavar="FILE", callback=printable)] = None,
    anyway: Annotated[bool, typer.Option("--anyway")] = False,
    in_: In = None,
) -> None:
    """Pack what you hand in into one file, and print its path.

    The file holds your variant, predictions, answers, write-up, deliverables, and an archive of the runs. Missing
    answers are warned of; runs and required deliverables must be there, and runs must be those of your log. Nothing is
    sent anywhere: hand the file in where your course says.

    Examples: scpslab assignment submit · scpslab assignment submit --out mine.tar.gz

    Options:
        out: Default: NAME-STUDENT.submission.tar.gz, in the folder.
        anyway: Pack runs that the grader will hold, too.
    """
    workspace = _open(in_)
    if workspace.variant.is_practice:
        advice = "Start again with your own: scpslab assignment start NAME --variant FILE"
        warn(f"this is the practice variant: it cannot be graded. {advice}")
    findings = check(workspace)
    for finding in findings:
        if finding.state is not State.DONE:
            warn(f"{finding.what}: {finding.says}")
    held = [finding.what for finding in findings if finding.holds]
    if held and not anyway:
        said = "found what the grader would hold or cannot read; expected a submission that it can grade"
        raise UsageError(f"{', '.join(held)}: {said}. Do what the warning says, or pack it --anyway.")
    content = submission.pack(workspace)
    target = out or workspace.folder / submission.default_name(workspace)
    check_out(target)
    replace_bytes(target, content)
    typer.echo(f"{len(content)} bytes; hand this file in:", err=True)
    typer.echo(harmless(str(target)))


def _open(named: Path | None) -> Workspace:
    folder = find_workspace(named)
    if named is None and folder != Path():
        typer.echo(harmless(f"in {folder}"), err=True)
    return open_workspace(folder)


def _say_start(workspace: Workspace, target: Path) -> None:
    console = plain_console(stderr=True)
    variant, file = workspace.variant, workspace.assignment.file
    whose = "practice"
    if not variant.is_practice:
        key = fingerprint(variant.key)
        whose = f"{', '.join(variant.members)}; {variant.course}, {variant.term}; key {key}"
    lines = [f"{file.title} ({file.minutes} minutes, {file.points:g} points; variant of {whose})"]
    for name, value in variant.parameters.items():
        lines.append(f"  {name} = {value}  {file.variant[name].says}".rstrip())
    lines.append(f"Read {target / HANDOUT}, or open {target / PAGE} in a browser. Then:")
    lines += [*_ways(), f"  cd {shlex.quote(str(target))}"]
    lines += [f"  scpslab assignment predict {name} VALUE" for name in file.predictions]
    lines += [f"  scpslab assignment {command}" for command in ("run", "check", "submit")]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _ways() -> list[str]:
    """What a shell needs that does not find scpslab: the environment with the wheel, or an alias of the clone's."""
    activate = Path(sys.prefix) / "bin" / "activate"
    if shutil.which(COMMAND.name) is not None:
        return []
    is_installed = activate.is_file() and activate.with_name(COMMAND.name).is_file()
    way = f". {shlex.quote(str(activate))}" if is_installed else f"alias scpslab={shlex.quote(str(COMMAND))}"
    return [f"  {way}    # in each new terminal"] if is_installed or COMMAND.is_file() else []


SUBCOMMANDS = (list_, start, predict, run, check_, restore, submit)
