"""A person at a terminal: starts `scpslab shell` in a terminal of its own, types, reads, and closes it."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from pathlib import Path
from typing import Self

from scpslab.lab.place import PROMPT

ROOT = Path(__file__).parents[2]
STARTS_WITHIN_S = 300
ANSWERS_WITHIN_S = 60
CTRL_C, CTRL_D, CTRL_Z = "\x03", "\x04", "\x1a"
ROWS, COLUMNS = 50, 160


class Terminal:
    """A terminal with the command in it; `with` closes it and ends what is left."""

    def __init__(self, *words: str, ignore_hangup: bool = False) -> None:
        self.text = ""
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            if ignore_hangup:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.execve(  # noqa: S606  # the child of a fork becomes the command
                ROOT / "scpslab", ["scpslab", "shell", *words], os.environ | {"TERM": "xterm"}
            )
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.is_open, self.code = True, None

    def __enter__(self) -> Self:
        self.banner = self.read_until(PROMPT, STARTS_WITHIN_S)
        return self

    def __exit__(self, *_: object) -> None:
        tree = self.tree()
        self.close()
        if self.code is None:
            for pid in tree:
                if lives(pid):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def type(self, keys: str) -> None:
        """Types keys."""
        os.write(self.screen, keys.encode())

    def read_until(self, words: str, within_s: float = ANSWERS_WITHIN_S) -> str:
        """What the terminal shows up to these words."""
        limit = time.monotonic() + within_s
        while words not in self.text:
            assert time.monotonic() < limit, (
                f'"{words}" did not come within {within_s} s; the terminal shows: {self.text}'
            )
            if select.select([self.screen], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.screen, 1 << 16).decode(errors="replace")
                except OSError:
                    raise AssertionError(f'"{words}" did not come; the program ended: {self.text}') from None
        found, self.text = self.text.split(words, 1)
        return found

    def do(self, line: str, within_s: float = ANSWERS_WITHIN_S) -> str:
        """Types a line and returns the answer, up to the next prompt."""
        self.type(line + "\n")
        self.read_until("\n", within_s)
        # A node's own terminal makes line ends of its own.
        return self.read_until(PROMPT, within_s).replace("\r", "")

    def tree(self) -> list[int]:
        """The command's process and all below it."""
        found = [self.pid]
        for pid in found:
            for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(word) for word in tasks.read_text().split()]
        return found

    def close(self) -> None:
        """Closes the terminal."""
        if self.is_open:
            os.close(self.screen)
            self.is_open = False

    def ends_within(self, seconds: float) -> int:
        """Waits for the command's end; its exit code, or the negative number of the signal that ended it."""
        limit = time.monotonic() + seconds
        while self.code is None:
            assert time.monotonic() < limit, (
                f"the command did not end within {seconds} s; the terminal shows: {self.text}"
            )
            if self.is_open and select.select([self.screen], [], [], 0)[0]:
                try:
                    self.text += os.read(self.screen, 1 << 16).decode(errors="replace")
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            else:
                time.sleep(0.05)
        return self.code


def lives(pid: int) -> bool:
    """Whether a process is there and does not only wait to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def left_of(pids: list[int], within_s: float) -> list[int]:
    """The processes of these that still live after that time."""
    limit = time.monotonic() + within_s
    while left := [pid for pid in pids if lives(pid)]:
        if time.monotonic() > limit:
            break
        time.sleep(0.05)
    return left
