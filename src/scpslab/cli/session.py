"""What `scpslab shell --keep` keeps of a session, written while the session lasts."""

from __future__ import annotations

import itertools
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from scpslab.core.errors import UsageError
from scpslab.core.scratch import replace_text
from scpslab.documents.yaml_lines import written
from scpslab.runs import CellFiles
from scpslab.scenario.topologies import is_path

TRANSCRIPT = "transcript.jsonl"
FILE, FOLDER = stat.S_IFREG, stat.S_IFDIR
# The most that is read at once, so that a large file does not fill the memory.
MOST_BYTES = 1 << 20


def transcript(
    steps: list[dict[str, object]], topology: str, said: dict[str, Any], hosts: dict[str, dict[str, str]]
) -> str:
    """A session as a scenario: the commands with their times. `said`: of parameters and links.

    Nothing waits for a command that the user interrupted; one that is not there is left out.
    """
    events: list[dict[str, object]] = []
    for step in steps:
        if step["do"] not in ("interrupted", "not found"):
            events.append({key: value for key, value in step.items() if key != "do"})
        elif events:
            last = events.pop()
            if step["do"] == "interrupted":
                events.append({**last, "required": False})
    head = {"kind": "scenario", "version": 1, "title": f"A session on {topology}", "topology": topology}
    return written({**head, **said, **({"hosts": hosts} if hosts else {}), "events": events})


def new_folder() -> Path:
    """The first name that nobody has, for a session whose folder the user has not named."""
    place = Path() if os.access(".", os.W_OK) else Path(gettempdir())
    return next(path for number in itertools.count(1) if not (path := place / f"session-{number}").exists())


class Session:
    """The folder of a session: captures, and the commands as a scenario.

    `is_asked_for`: whether it is made for the commands alone.
    """

    def __init__(
        self,
        folder: Path,
        topology: str,
        said: dict[str, Any],
        hosts: dict[str, dict[str, str]] | None = None,
        *,
        is_asked_for: bool = True,
    ) -> None:
        self.is_asked_for = is_asked_for
        self.folder, self.topology, self.said, self.hosts = folder, topology, said, hosts or {}
        self._own_topology = b""
        if is_path(topology):
            # The scenario names a file beside it.
            self.topology = f"./{Path(topology).name}"
            self._own_topology = Path(topology).read_bytes()
        self._is_made = False
        if is_asked_for:
            self._refuse_what_is_there()
            self._make_folder()
        self.files: list[Path] = []
        self._steps: list[dict[str, object]] = []
        # By file of the lab: the number of bytes that were taken over.
        self._taken: dict[str, int] = {}

    def _refuse_what_is_there(self) -> None:
        copied = self.folder / self.topology
        is_other = self._own_topology and copied.exists() and copied.read_bytes() != self._own_topology
        left = [*self.folder.glob("*.pcap"), *self.folder.glob("transcript.yaml"), *([copied] if is_other else [])]
        if left:
            raise UsageError(f"--keep: found {left[0]}; expected a folder without a session. Choose another one.")

    def _make_folder(self) -> None:
        if self._is_made:
            return
        while not self._is_made:
            try:
                self.folder.mkdir(parents=True, exist_ok=self.is_asked_for)
                self._is_made = True
            except FileExistsError:
                # Another session has taken the name since.
                self.folder = new_folder()
        if self._own_topology:
            (self.folder / self.topology).write_bytes(self._own_topology)

    def update(self, out: Path) -> None:
        """Takes over what the lab has written to its folder `out` since the last time."""
        with _opened(out, FOLDER) as here:
            if here is None:
                return
            with _opened(TRANSCRIPT, FILE, here) as file:
                if file is not None:
                    self._take_steps(file)
            with _opened(CellFiles(out).captures.name, FOLDER, here) as captures:
                if captures is not None:
                    for name in sorted(os.listdir(captures)):  # noqa: PTH208  # the folder may have another name by now
                        if name.endswith(".pcap"):
                            self._take_capture(captures, name)

    def _take_steps(self, file: int) -> None:
        text = os.pread(file, MOST_BYTES, self._taken.get(TRANSCRIPT, 0))
        # The lab may be writing the line behind the last line break.
        lines = text[: text.rfind(b"\n") + 1]
        if lines and self._is_made:
            self._taken[TRANSCRIPT] = self._taken.get(TRANSCRIPT, 0) + len(lines)
            self._steps += [json.loads(line) for line in lines.splitlines()]
            path = self.folder / "transcript.yaml"
            replace_text(path, transcript(self._steps, self.topology, self.said, self.hosts))
            self._note(path)

    def _take_capture(self, captures: int, name: str) -> None:
        with _opened(name, FILE, captures) as file:
            if file is None:
                return
            self._make_folder()
            target = self.folder / name
            with target.open("ab" if name in self._taken else "wb") as copy:
                while piece := os.pread(file, MOST_BYTES, self._taken.setdefault(name, 0)):
                    copy.write(piece)
                    self._taken[name] += len(piece)
        self._note(target)

    def _note(self, path: Path) -> None:
        if path not in self.files:
            self.files.append(path)


@contextmanager
def _opened(name: str | Path, kind: int, parent: int | None = None) -> Iterator[int | None]:
    """A file or folder of the lab; None if there is no such thing.

    A link or a pipe may have been put there to be opened, so neither is.
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
    except OSError:
        yield None
        return
    try:
        yield descriptor if stat.S_IFMT(os.fstat(descriptor).st_mode) == kind else None
    finally:
        os.close(descriptor)
