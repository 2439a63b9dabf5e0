"""A page of the documentation as its reader follows it: files are saved, commands are typed, and what they print is
compared with the page.

A block `console` has commands behind `$ ` (or a prompt of the lab) and what they print; `…` stands for anything, and
lines may be left out. `^C` ends a command that has printed what is shown. A block `sh` has commands alone. A block of another language is a file if its fence names it, or
if the paragraph above says "Save this as `NAME`" or "Add this to the end of `NAME`".
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scpslab.lab.place import PROMPT

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(Save this as|Add this to the end of) `([^`]+)`")
COMMAND = "$ "
ANYTHING = "…"
INTERRUPT = "^C"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
# The page's numbers are those of one kernel and guest; packages of another month move the times of packets a little.
AS_CLOSE_AS = 0.25
WIDTH = 120
# A first use builds the SCPS stack.
PATIENCE_S = 1800


@dataclass(frozen=True)
class File:
    """A file that the reader saves, or lines added to one."""

    name: str
    text: str
    added: bool


@dataclass(frozen=True)
class Command:
    """A command, what is typed at its prompt, and what the page says it prints."""

    line: str
    typed: str
    printed: str


def steps(page: Path) -> Iterator[File | Command]:
    """What the reader does, in the page's order."""
    text = page.read_text()
    for block in FENCE.finditer(text):
        language, name, body = block.groups()
        if language == "console":
            yield from _commands(body)
        elif language == "sh":
            yield from (Command(line, typed="", printed="") for line in body.splitlines())
        elif name:
            yield File(name, body, added=False)
        elif named := FILE.search(text[: block.start()].rstrip().rpartition("\n\n")[2]):
            yield File(named[2], body, added=named[1].startswith("Add"))


def _commands(body: str) -> Iterator[Command]:
    line, typed, printed = "", "", ""
    for said in body.splitlines(keepends=True):
        if said.startswith(COMMAND):
            if line:
                yield Command(line, typed, printed)
            line, typed, printed = said.removeprefix(COMMAND).rstrip("\n"), "", ""
        elif said.startswith(INTERRUPT):
            typed = INTERRUPT
        else:
            printed += said
            typed += said.removeprefix(PROMPT) if said.startswith(PROMPT) else ""
    yield Command(line, typed, printed)


def follow(page: Path, folder: Path, as_close_as: float = AS_CLOSE_AS) -> list[str]:
    """Does what a page says, in a folder in which the commands of a clone's root work; what went differently.

    A command may fail if the page shows its error.
    """
    (folder / "scpslab").write_text(f'#!/bin/sh\nexec "{ROOT}/scpslab" "$@"\n')
    (folder / "scpslab").chmod(0o755)
    (folder / "Makefile").write_text(f"%:\n\t@$(MAKE) --no-print-directory -C {ROOT} $@\n")
    settings = {"COLUMNS": str(WIDTH), "PATH": f"{folder}:{os.environ['PATH']}"}
    wrong = []
    for step in steps(page):
        if isinstance(step, File):
            save(step, folder)
            continue
        ended = type_in(step, folder, settings)
        if ended.returncode and "error:" not in step.printed:
            wrong.append(f"{COMMAND}{step.line}\nexit code {ended.returncode}\n{ended.stdout}")
        elif not agree(step.printed, ended.stdout, as_close_as):
            wrong.append(f"{COMMAND}{step.line}\nexpected:\n{step.printed}\nfound:\n{ended.stdout}")
    return wrong


def save(file: File, folder: Path) -> None:
    """Writes a file of a page, or adds to it."""
    path = folder / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text() if file.added else "") + file.text)


def type_in(command: Command, folder: Path, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Carries out a command of a page with further settings; what it prints and its messages are one text."""
    if command.typed == INTERRUPT:
        return _interrupt(command, folder, settings)
    return subprocess.run(
        ["bash", "-c", command.line],
        cwd=folder,
        env=os.environ | settings,
        input=command.typed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def _interrupt(command: Command, folder: Path, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Carries out a command, and types Ctrl-C as soon as it has printed what the page shows."""
    line = ["timeout", str(PATIENCE_S), "bash", "-c", command.line]
    found, is_asked = "", False
    with subprocess.Popen(
        line,
        cwd=folder,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout
        for said in process.stdout:
            found += said
            if not is_asked and agree(command.printed, found):
                os.killpg(process.pid, signal.SIGINT)
                is_asked = True
    return subprocess.CompletedProcess(line, process.returncode, found)


def agree(expected: str, found: str, as_close_as: float = AS_CLOSE_AS) -> bool:
    """Whether each line that a page shows was printed, in this order, with close numbers; it may leave lines out."""
    printed = iter([_plain(line) for line in found.splitlines()])
    shown = [_plain(line) for line in expected.splitlines()]
    return all(
        any(_same(line, other, as_close_as) for other in printed) for line in shown if line not in ("", ANYTHING)
    )


def _plain(line: str) -> str:
    """A line without what depends on the width of a number: blanks in a row, and rules of tables."""
    return " ".join(re.sub(r"([─━])\1+", r"\1", line).split())


def _same(line: str, other: str, as_close_as: float) -> bool:
    pattern = NUMBER.sub("#", line)
    words = ".*".join(re.escape(part).replace("\\#", f"({NUMBER.pattern})") for part in pattern.split(ANYTHING))
    found = re.fullmatch(words, other)
    return found is not None and all(
        _close(wanted, got, as_close_as) for wanted, got in zip(NUMBER.findall(line), found.groups(), strict=True)
    )


def _close(wanted: str, got: str, as_close_as: float) -> bool:
    one, other = (float(text.replace(",", "")) for text in (wanted, got))
    return abs(one - other) <= as_close_as * abs(one)
