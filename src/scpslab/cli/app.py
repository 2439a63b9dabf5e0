"""The `scpslab` program: its commands, and the one place where errors are printed. Exit codes: docs/cli.md."""

from __future__ import annotations

import errno
import importlib
import os
import sys

import typer

from scpslab.cli.terminal import harmless
from scpslab.errors import ScpslabError

# Command to the module of scpslab.cli that registers it, in the order of --help.
COMMANDS = {
    "doctor": "doctor",
    "list": "catalogue",
    "validate": "validate",
    "plan": "plan",
    "run": "run",
    "results": "results",
    "plot": "plot",
    "compare": "compare",
    "claims": "claims",
    "report": "report",
    "export": "export",
    "verify": "verify",
    "shell": "shell",
    "clean": "clean",
    "schema": "schema",
}
GO_ON = "Finished cells are kept; the same command goes on from here."
ADVICE = {
    errno.ENOSPC: f"Free some room there, or choose another folder with --out. {GO_ON}",
    errno.EDQUOT: f"Free some of your quota, or choose another folder with --out. {GO_ON}",
    errno.EAGAIN: f"Allow this user more processes (ulimit -u), or use fewer cells at a time (--jobs 1). {GO_ON}",
    errno.ENOMEM: f"Free some memory, or use fewer cells at a time (--jobs 1). {GO_ON}",
    errno.EMFILE: f"Allow more open files (ulimit -n), or use fewer cells at a time (--jobs 1). {GO_ON}",
}
LAB_EXIT = 4
INTERRUPTED_EXIT = 130
EPILOG = (
    "Exit codes: 0 done; 1 some cells failed; 2 bad command line or scenario; 3 this machine lacks something; 4 the lab broke; "
    "5 results cannot be read; 130 interrupted (finished cells are kept)."
)
HELP = """A satellite-network laboratory: real kernel TCP over emulated satellite links, in virtual time, reproducible bit for bit, without root.

Start with "scpslab doctor" (can this machine run it?), "scpslab list" (what is there to run?) and "scpslab run fy97/fig04:kernel-demo".
"""


def program(words: list[str]) -> typer.Typer:
    """The program for a command line. When its command is known only that one is loaded: plotting libraries take a second to import."""
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, epilog=EPILOG, help=HELP)
    app.callback()(lambda: None)
    wanted = [words[0]] if words and words[0] in COMMANDS else list(COMMANDS)
    for command in wanted:
        importlib.import_module(f"scpslab.cli.{COMMANDS[command]}").register(app)
    return app


def main() -> None:
    """Runs the command line and exits."""
    try:
        program(sys.argv[1:])(prog_name="scpslab")
    except ScpslabError as error:
        sys.exit(complain(error))
    except KeyboardInterrupt:
        print("interrupted: finished cells are kept; the same command goes on from here", file=sys.stderr)
        # Threads of the run have ended; the interpreter need not wait for anything else.
        sys.stderr.flush()
        os._exit(INTERRUPTED_EXIT)
    except BrokenPipeError:
        # The reader of our output has seen enough ("scpslab plan … | head"); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        place = harmless(f"{error.filename}: ") if error.filename else ""
        advice = ADVICE.get(error.errno or 0, "See: scpslab doctor.")
        print(f"error: {place}found {error.strerror or error}; expected the system to allow it. {advice}", file=sys.stderr)
        sys.exit(LAB_EXIT)


def complain(error: ScpslabError) -> int:
    """Prints an error, a line for each thing that is wrong, and returns its exit code."""
    for line in str(error).splitlines():
        print(f"error: {harmless(line)}", file=sys.stderr)
    return error.exit_code
