"""Results by content: a finished cell is one file, named by the hash of everything that determines it, in the user's
folder and in the system's.

A file is written under a name of its own and renamed: that is one step on every file system, NFS too, and needs no
lock. It begins with the SHA-256 of the rest, which every reader checks, so that a file which a crash or a full disk has
cut short is never a result.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from scpslab import plan as plans
from scpslab.core.archive import CHUNK_BYTES, described, pack, unpack_members
from scpslab.core.contents import LARGEST_FILE, content_of, opened
from scpslab.core.errors import MemberError, ResultError
from scpslab.core.names import UNFINISHED
from scpslab.plan import Plan
from scpslab.runs.run import CellFiles
from scpslab.setup import cache_dir, system_cache

# The size up to which results are kept on this machine.
LIMIT = "SCPSLAB_RESULTS_LIMIT"
RESULTS = "results"
SUFFIX, ROW = ".cell", ".row"
# Files that are being written; what is a day old there has no writer any more.
WRITING, DAY_S = "writing", 86_400
DIGEST_BYTES = 64


@dataclass(frozen=True)
class Entry:
    """A kept result: its file, its size, and when it was used last, in seconds since 1970."""

    path: Path
    size_bytes: int
    used_s: float


def cell_key(plan: Plan, engine_hash: str) -> str:
    """Hash of a plan and of the engine that carries it out. Repeats in which nothing is drawn have one."""
    same = replace(plan.as_planned, cell=replace(plan.as_planned.cell, id="", repeat=1))
    return hashlib.sha256(f"{engine_hash}\n{json.dumps(plans.write(same), sort_keys=True)}".encode()).hexdigest()[:32]


def stores() -> tuple[Store, ...]:
    """This user's store, and that of the system cache if there is one, in the order in which they are asked.

    Raises:
        CapabilityError: the system cache is not there.
    """
    system = system_cache()
    of_system = (Store(system / RESULTS, is_only_read=True),) if system is not None and system != cache_dir() else ()
    return (own_store(), *of_system)


def own_store() -> Store:
    """This user's store."""
    return Store(cache_dir() / RESULTS)


class Store:
    """Results of cells under `root`. Failed cells are not kept: the next run tries them again.

    A folder without permission to write is only read; so is one that `is_only_read`, whoever asks.
    """

    def __init__(self, root: Path, *, is_only_read: bool = False) -> None:
        self.root, self.is_only_read = root, is_only_read

    def fetch(self, key: str, folder: Path) -> bool:
        """Unpacks the result for `key` to `folder`, whole or not at all; returns false if there is none.

        Raises:
            ResultError: there was one that could not be read; a damaged one has been removed.
            OSError: the folder cannot be written.
        """
        path = self._path(key)
        try:
            file = opened(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            what = f"found {error.strerror}; expected a result that you may read"
            raise ResultError(f"{path}: {what}. It stays where it is, and the cell runs again.") from error
        try:
            with file:
                unpack(file, folder)
        except MemberError as error:
            self.forget(key)
            then = f"{'It stays where it is' if self.is_only_read else 'It is removed'}, and the cell runs again"
            raise ResultError(f"{path}: {error}; expected the result that was kept. {then}.") from error
        if not self.is_only_read:
            # A folder without permission to write is only read, and others may have removed the entry meanwhile.
            with suppress(OSError):
                os.utime(path)
        return True

    def keep(self, key: str, folder: Path) -> None:
        """Keeps `folder` for `key`. If several processes do so, one of the copies stays: all have the same bytes."""
        path = self._path(key)
        if path.exists() or self.is_only_read or (self.root.exists() and not os.access(self.root, os.W_OK)):
            return
        self._write(path, lambda: packed(folder))

    def row(self, key: str) -> bytes | None:
        """What `keep_row` kept for `key`; None if there is nothing, or it is damaged."""
        path = self._path(key, ROW)
        try:
            content = content_of(path)
        except OSError:
            return None
        with suppress(OSError):
            os.utime(path)
        row = content[DIGEST_BYTES:]
        return row if hashlib.sha256(row).hexdigest().encode() == content[:DIGEST_BYTES] else None

    def keep_row(self, key: str, row: bytes) -> None:
        """Keeps what is derived of a result; replaces what is there."""
        self._write(self._path(key, ROW), lambda: hashlib.sha256(row).hexdigest().encode() + row)

    def _write(self, path: Path, content: Callable[[], bytes]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        (self.root / WRITING).mkdir(exist_ok=True)
        part = self.root / WRITING / f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"
        try:
            part.write_bytes(content())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def forget(self, key: str) -> None:
        """Removes a result, as far as this user may."""
        if not self.is_only_read:
            with suppress(OSError):
                self._path(key).unlink(missing_ok=True)

    def entries(self, suffix: str = SUFFIX) -> Iterator[Entry]:
        """Every result that is kept, or every row. Others may remove results meanwhile."""
        for path in self.root.glob(f"[0-9a-f][0-9a-f]/*{suffix}"):
            with suppress(FileNotFoundError):
                stat = path.stat()
                yield Entry(path, stat.st_size, stat.st_mtime)

    def trim(self, older_than_s: float | None = None, most_bytes: int | None = None) -> tuple[int, int]:
        """Removes results and rows that nobody has used for so long, then those used longest ago until the others fit;
        returns the number of the results, and the bytes of all.
        """
        now = time.time()
        # Whatever else is there is not ours.
        for left in (self.root / WRITING).glob(f"*-{'[0-9a-f]' * 32}"):
            # Its writer may rename it, and another machine remove it, at any moment.
            with suppress(FileNotFoundError):
                if now - left.stat().st_mtime > DAY_S:
                    left.unlink()
        kept = sorted([*self.entries(), *self.entries(ROW)], key=lambda entry: entry.used_s)
        total, count, freed = sum(entry.size_bytes for entry in kept), 0, 0
        for entry in kept:
            is_old = older_than_s is not None and now - entry.used_s > older_than_s
            if is_old or (most_bytes is not None and total > most_bytes):
                entry.path.unlink(missing_ok=True)
                total, freed = total - entry.size_bytes, freed + entry.size_bytes
                count += entry.path.suffix == SUFFIX
        return count, freed

    def _path(self, key: str, suffix: str = SUFFIX) -> Path:
        # A million files in one folder are slow to list on many file systems.
        return self.root / key[:2] / f"{key}{suffix}"


def packed(folder: Path) -> bytes:
    """A cell's folder as an entry: the same bytes for the same files."""
    body = io.BytesIO()
    with gzip.GzipFile("", "wb", 1, body, mtime=0) as zipped:
        pack(zipped, [(path.relative_to(folder).as_posix(), path) for path in sorted(folder.rglob("*"))])
    content = body.getvalue()
    return hashlib.sha256(content).hexdigest().encode() + content


def unpack(file: BinaryIO, folder: Path) -> None:
    """Unpacks an entry to the folder of a cell, whole or not at all.

    Whoever wrote it may be a stranger, such as a worker.

    Raises:
        MemberError: it is not what `packed` made.
    """
    part = folder.with_name(folder.name + UNFINISHED)
    shutil.rmtree(part, ignore_errors=True)
    try:
        _check(file)
        unpack_members(file, part)
        _rename(CellFiles(part).plan, folder.name)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _rename(file: Path, cell_id: str) -> None:
    """Has the plan of a cell say which repeat this is. One that cannot be read stays: who needs it says why."""
    with suppress(OSError, ValueError):
        content = content_of(file)
        # Most entries are of the cell itself, and to look for its name is faster than to read the plan.
        if f'"id": "{cell_id}"'.encode() not in content:
            plan = plans.parse(content)
            cell = replace(plan.cell, id=cell_id, repeat=int(cell_id.rpartition("r")[2]))
            file.write_text(plans.text(replace(plan, cell=cell)), encoding="utf-8")


def _check(file: BinaryIO) -> None:
    """Compares an entry with its digest, and leaves the file behind the digest."""
    digest = hashlib.sha256()
    with described():
        expected = file.read(DIGEST_BYTES)
        if (size := file.seek(0, io.SEEK_END)) > LARGEST_FILE:
            raise MemberError(f"found {size} bytes, more than {LARGEST_FILE}")
        file.seek(DIGEST_BYTES)
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    if digest.hexdigest().encode() != expected:
        raise MemberError("found other bytes than its digest says")
    file.seek(DIGEST_BYTES)
