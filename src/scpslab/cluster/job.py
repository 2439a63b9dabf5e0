"""What every job script states: the command of a shard, and the resources that it asks for."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

MINUTE_S, HOUR_S = 60, 3600
# Time to start, and for machines that are slower than expected.
SPARE_S, SPARE = 10 * MINUTE_S, 3


@dataclass(frozen=True)
class Job:
    """A run as shards: its name, the words of its command without `--shard`, its cells, and what a shard needs. `busy_s`: seconds of a core, expected.

    `places`: the variables by which scpslab finds its folders, SCPSLAB_CACHE among them. `programs`: the folder that has scpslab.
    """

    name: str
    words: tuple[str, ...]
    cells: int
    shards: int
    cores: int
    memory_mib: int
    busy_s: float
    places: tuple[tuple[str, str], ...]
    programs: Path
    out: Path
    folder: Path
    build: str

    @property
    def shard_s(self) -> int:
        """The wall time to ask for, for a shard."""
        return round(SPARE_S + SPARE * self.busy_s / self.shards / self.cores)

    @property
    def clock(self) -> str:
        """That time as hours, minutes and seconds."""
        return f"{self.shard_s // HOUR_S:02}:{self.shard_s % HOUR_S // MINUTE_S:02}:{self.shard_s % MINUTE_S:02}"

    def command(self, shard: str) -> str:
        """The command of a shard, for a shell; `shard` is put in as it is, so that the script can count."""
        quoted = shlex.join([*self.words, "--jobs", str(self.cores), "--out", str(self.out), "--build", self.build])
        return f"{quoted} --shard {shard}/{self.shards}"

    @property
    def merging(self) -> str:
        """The command after the last shard."""
        return f"scpslab merge {shlex.quote(str(self.out))}/shards/{shlex.quote(self.name)}-*-of-{self.shards}"

    def head(self, submit: str) -> list[str]:
        """The comments at the top of every script."""
        return [
            f"# {shlex.join(self.words)}: {self.cells} cells in {self.shards} shards, each with {self.cores} cores.",
            f"# Submit it with: {submit}",
            f"# When all shards have ended: {self.merging}",
            "# A shard that failed or was killed: submit it again; it keeps its finished cells.",
            "# --build: a machine with another kernel, guest image, stack or version of scpslab refuses the shard.",
        ]

    @property
    def surroundings(self) -> list[str]:
        """What the shell needs to know of this site."""
        return [
            "# Kernel, guest image and stack are taken from here. On machines that do not share this folder: copy it there, or scpslab builds the parts.",
            *(f"export {name}={shlex.quote(folder)}" for name, folder in self.places),
            "# A shell that a job scheduler or ssh starts often has another PATH than yours.",
            f'export PATH={shlex.quote(str(self.programs))}:"$PATH"',
        ]
