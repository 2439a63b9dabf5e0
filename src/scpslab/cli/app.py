"""The `scpslab` program: its commands, and the one place where errors are printed. Exit codes: docs/cli.md."""

import errno
import importlib
import inspect
import os
import select
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any, Never, get_type_hints

import typer
from typer.core import TyperGroup
from typer.models import ParameterInfo

from scpslab.cli.terminal import for_readers, tell_warnings
from scpslab.core import own_kinds
from scpslab.core.choices import one_of
from scpslab.core.contents import parted
from scpslab.core.errors import INTERRUPTED_EXIT, CapabilityError, LabError, ScpslabError, UsageError, harmless
from scpslab.core.installation import add_extra, version

# Command to its module, where the function of its name is, and the first line of its help: in groups, as in --help.
GROUPS = {
    "Start": {
        "doctor": ("scpslab.cli.machine", "Check this machine, and show how to fix what is missing."),
        "demo": ("scpslab.cli.run", "Run a small experiment: a table and a figure."),
        "docs": ("scpslab.cli.docs", "Read the documentation, without a network."),
        "list": ("scpslab.cli.catalogue", "List scenarios, campaigns, topologies or presets."),
        "new": ("scpslab.cli.catalogue", "Write a new scenario with comments, ready to run and to edit."),
    },
    "Experiment": {
        "validate": ("scpslab.cli.plan", "Check a scenario or campaign, and run nothing."),
        "plan": ("scpslab.cli.plan", "Show what a run would do: its cells, a plan, paths, or the cost."),
        "run": ("scpslab.cli.run", "Run a scenario or campaign; repeat the command to resume."),
        "shell": ("scpslab.cli.shell", "Start a network on the wall clock, with a prompt."),
        "profile": ("scpslab.cli.profile", "Read, explain, draw and write profiles: what links do over time."),
        "clab": ("scpslab.cli.clab", "Read networks of containerlab as topologies, and write them."),
        "mn": ("scpslab.cli.mn", "Run your own Mininet script in virtual time."),
    },
    "Results": {
        "results": ("scpslab.cli.results", "Show the results of a run: means with intervals."),
        "packets": ("scpslab.cli.packets", "List every packet of a cell, with what became of it."),
        "studio": ("scpslab.cli.studio", "Look at a run in a browser: every packet of a cell, over time."),
        "losses": ("scpslab.cli.packets", "List every packet loss of a cell, or of several."),
        "plot": ("scpslab.cli.plot", "Draw the figures of a run."),
        "compare": ("scpslab.cli.compare", "Compare runs, or the values of one axis, point by point."),
        "report": ("scpslab.cli.report", "Write one page about a run or campaign: RUN/report.html."),
    },
    "Share": {
        "export": ("scpslab.cli.export", "Pack a run into one file from which anyone can reproduce it."),
        "verify": ("scpslab.cli.run", "Run an archive or a run again, and compare every byte."),
    },
    "Course": {
        "assignment": ("scpslab_course.cli.assignment", "Work on an assignment, from its start to what you hand in."),
        "course": ("scpslab_course.cli.course", "Make a course, and issue a variant to every student."),
        "grade": ("scpslab_course.cli.grade", "Grade submissions by running them again."),
    },
    "Papers": {"claims": ("scpslab.cli.claims", "Test every finding of the papers against your runs.")},
    "Maintenance": {
        "pack": ("scpslab.cli.pack", "Fetch packages that scenarios name, and list those that are here."),
        "clean": ("scpslab.cli.machine", "Free disk space: remove files that scpslab can make again."),
    },
}
COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}
# Commands that seldom count: numpy, a fifth of their time, is loaded once they do.
SELDOM_COUNT = ("validate", "plan")
# Packages that few commands need, and the extra of scpslab that has them (pyproject.toml).
EXTRAS = {"cryptography": "course", "jinja2": "report", "sgp4": "orbits"}
GO_ON = "Finished cells are kept; repeat the command to resume."
ADVICE = {
    errno.ENOSPC: f"Free disk space there, or choose another folder with --out. {GO_ON}",
    errno.EDQUOT: f"Free some of your quota, or choose another folder with --out. {GO_ON}",
    errno.EAGAIN: f"Allow this user more processes (ulimit -u), or run fewer cells at a time (--jobs 1). {GO_ON}",
    errno.ENOMEM: f"Free memory, or run fewer cells at a time (--jobs 1). {GO_ON}",
    errno.EMFILE: f"Allow more open files (ulimit -n), or run fewer cells at a time (--jobs 1). {GO_ON}",
}
# What the system says of a path that cannot be used as the command wants to.
WRONG_PATH = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG)
WRONG_PATH_ADVICE = "Choose another path, or move what is there."
NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
NOT_ALLOWED_ADVICE = "Choose a folder in which you may write, or change its permissions."
EPILOG = (
    "Exit codes: 0 done; 1 some cells failed or violated a check, or verify found other bytes; 2 invalid command line "
    "or scenario; 3 this machine lacks something; 4 the lab broke; 5 a run folder cannot be read; 130 interrupted "
    "(finished cells are kept)."
)
HELP = """A satellite-network laboratory: real kernel TCP over emulated satellite links, in virtual time,
reproducible bit for bit, without root.

Start with "scpslab doctor" (checks this machine), "scpslab demo" (runs a small experiment) and "scpslab docs tutorial"
(your first hour). "scpslab COMMAND --help" explains a command, with examples.
"""
EXAMPLES, BETWEEN, OPTIONS = "Examples: ", " · ", "Options"
# A line of its own in what click wraps.
AS_IT_IS = "\b\n"


class _Grouped(TyperGroup):
    """Lists the commands in their groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, COMMANDS))
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in commands.items()])

    def invoke(self, ctx: Any) -> None:
        """Says that the user has interrupted, and ends well where the reader of our output has seen enough ("scpslab
        plan … | head"): typer is silent in the one case, and fails in the other.
        """
        try:
            super().invoke(ctx)
            print(end="", flush=True)
        except KeyboardInterrupt:
            _interrupted()
        except SystemExit as end:
            # Rich ends the program so, and has dropped the rest of the buffer.
            if not isinstance(end.__context__, BrokenPipeError):
                raise
        except BrokenPipeError:
            # A pipe to a lab may break, too.
            if not _is_unread(sys.stdout.fileno()):
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupted() -> Never:
    print("interrupted: finished cells are kept; repeat the command to resume", file=sys.stderr, flush=True)
    # The threads of the run have ended, so the interpreter has nothing to wait for.
    os._exit(INTERRUPTED_EXIT)


def _is_unread(descriptor: int) -> bool:
    """Whether nobody reads from the other end of a pipe."""
    looked = select.poll()
    looked.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in looked.poll(0))


def program(words: list[str]) -> typer.Typer:
    """The program for a command line.

    Only the command that it names is loaded; the list of commands is printed without loading any: imports take seconds.
    """
    app = typer.Typer(
        cls=_Grouped,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        epilog=EPILOG,
        help=HELP,
    )
    app.callback()(_options)
    completed = _completed()
    wanted = next((word for word in completed or words if not word.startswith("-")), "")
    if wanted in COMMANDS:
        _add(app, wanted)
        return app
    if wanted and not completed:
        raise UsageError(f'scpslab: found no command "{wanted}"; {one_of(wanted, COMMANDS)}')
    for command, (_, summary) in COMMANDS.items():
        app.command(command, help=summary)(_not_loaded)
    return app


def _completed() -> list[str]:
    """The words that a shell wants to have completed; none if a command is to be run."""
    # Bash says them in one variable, the other shells in another (typer's scripts).
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return line.split()[1:] if "_SCPSLAB_COMPLETE" in os.environ else []


def _add(app: typer.Typer, command: str) -> None:
    """Adds a command, or a group of those that its module lists."""
    module = _load(command)
    # A name that Python has for something else ends in an underscore.
    function = getattr(module, f"{command}_", None) or getattr(module, command)
    subcommands = getattr(module, "SUBCOMMANDS", ())
    if not subcommands:
        app.command(command, help=_help(function))(_explained(function))
        return
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=_help(function))
    for subcommand in subcommands:
        group.command(subcommand.__name__.rstrip("_"), help=_help(subcommand))(_explained(subcommand))
    app.add_typer(group, name=command)


def _explained(function: Callable[..., object]) -> Callable[..., object]:
    """A command whose options and arguments have the help that its docstring says of them."""
    hints = get_type_hints(function, include_extras=True)
    for name, text in parted(function.__doc__, OPTIONS)[1].items():
        of_its_own = [one for one in getattr(hints[name], "__metadata__", ()) if isinstance(one, ParameterInfo)]
        for one in of_its_own:
            one.help = text
        if not of_its_own:
            is_argument = inspect.signature(function).parameters[name].default is inspect.Parameter.empty
            hints[name] = Annotated[hints[name], (typer.Argument if is_argument else typer.Option)(help=text)]
    function.__annotations__ = hints
    return function


def examples(function: Callable[..., object]) -> list[str]:
    """The examples at the end of a command's help, each as it is typed."""
    _, _, text = parted(function.__doc__, OPTIONS)[0].partition(EXAMPLES)
    return [" ".join(example.split()) for example in text.split(BETWEEN)] if text else []


def _help(function: Callable[..., object]) -> str:
    """The help of a command, with each example in a line of its own."""
    said, _, _ = parted(function.__doc__, OPTIONS)[0].partition(EXAMPLES)
    return "\n  ".join([f"{said}{AS_IT_IS}Examples:", *examples(function)])


class _Later(ModuleType):
    """Stands for a module until one of its names is wanted; for commands without threads."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules[self.__name__] is self:
            del sys.modules[self.__name__]
        module = importlib.import_module(self.__name__)
        self.__dict__.update(vars(module))
        return getattr(module, name)


def _load(command: str) -> ModuleType:
    """The module of a command.

    Raises:
        CapabilityError: it needs an extra of the package that is not installed.
    """
    if command in SELDOM_COUNT:
        sys.modules.setdefault("numpy", _Later("numpy"))
    try:
        return importlib.import_module(COMMANDS[command][0])
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        extra = EXTRAS[error.name]
        expected = f'expected it with the extra "{extra}" of scpslab. Run: {add_extra(extra)}.'
        raise CapabilityError(f"{command}: found no Python package {error.name}; {expected}") from error


def _not_loaded() -> None:
    """Stands for a command in the list of commands."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"scpslab {version()}")
        raise typer.Exit


def _options(
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """The options that stand before a command."""


def main() -> None:
    """Runs the command line and exits."""
    tell_warnings()
    try:
        words = sys.argv[1:]
        own_kinds.add_known()
        program(words)(words, prog_name="scpslab")
    except ScpslabError as error:
        sys.exit(complain(error))
    except KeyboardInterrupt:
        _interrupted()
    except OSError as error:
        # Of a file that takes another's place, the second name is the one that people know.
        place = harmless(f"{error.filename2 or error.filename}: ") if error.filename else ""
        advice = _advice(error)
        print(
            f"error: {place}found {error.strerror or error}; expected the system to allow it. {advice}", file=sys.stderr
        )
        sys.exit(LabError.exit_code)


def _advice(error: OSError) -> str:
    """What to do about an error of the system."""
    if error.filename and error.errno in WRONG_PATH:
        return WRONG_PATH_ADVICE
    if error.filename and error.errno in NOT_ALLOWED:
        return NOT_ALLOWED_ADVICE
    return ADVICE.get(error.errno or 0, 'Run "scpslab doctor" to check this machine.')


def complain(error: ScpslabError) -> int:
    """Prints an error, one line per fault, and returns its exit code."""
    for line in str(error).splitlines():
        print(f"error: {for_readers(line)}", file=sys.stderr)
    return error.exit_code
