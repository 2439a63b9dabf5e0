"""The members of an archive from outside, read as a stream and kept only where they are wanted: small enough, few enough, and with no way out."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import tarfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Self

from scpslab.core.names import shown

# JSON and captures of zeros are packed up to about a hundred times; gzip itself ends at a thousand.
LARGEST_RATIO, FREE_BYTES = 300, 64 << 20
LONGEST_NAME, LONGEST_PART = 1000, 255
# Headers that hold a long name for the next file, which tarfile reads whole, and the longest one that does.
LONG_NAMES, LONGEST_HEADER = (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE), 16 << 10
FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
CHUNK_BYTES = 1 << 20


class MemberError(ValueError):
    """An archive that is none, or one that no run has; the message says what was found."""


@dataclass(frozen=True)
class Limits:
    """How much an archive may hold: members, unpacked bytes, and of what is kept in memory the bytes of one member and of all."""

    members: int
    bytes: int
    kept_bytes: int
    kept_sum: int


# A whole campaign with captures; what is more is not looked at to its end.
OF_RUNS = Limits(members=500_000, bytes=64 * 10**9, kept_bytes=64 << 20, kept_sum=1 << 30)
OF_A_CELL = Limits(members=10_000, bytes=16 * 10**9, kept_bytes=0, kept_sum=0)


@dataclass(frozen=True)
class Members:
    """The files of an archive by their paths in it: `contents` of the wanted ones, `digests` (SHA-256) of all."""

    contents: dict[str, bytes] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)


def read_members(source: Path | bytes, wanted: Collection[str], limits: Limits | None = None) -> Members:
    """Every file of an archive; the contents of those whose names are `wanted` (* stands for anything), in whatever folder. Default limits: OF_RUNS.

    Raises:
        MemberError: it cannot be read, holds anything but files and folders with names of their own within it, or is too large.
    """
    limits = limits or OF_RUNS
    with _said(), _opened(source) as raw:
        return _read(raw, wanted, limits)


def unpack_members(source: BinaryIO, folder: Path, limits: Limits = OF_A_CELL) -> None:
    """Writes every file and folder of an archive into a new folder.

    Raises:
        MemberError: see `read_members`; what was written before stays.
    """
    folder.mkdir()
    with _said():
        for name, _, file in _members(source, limits):
            place = folder / name
            if file is None:
                place.mkdir(parents=True, exist_ok=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as target:
                shutil.copyfileobj(file, target, CHUNK_BYTES)


@contextmanager
def _said() -> Iterator[None]:
    """Whatever is wrong with an archive, as a MemberError."""
    try:
        yield
    except MemberError:
        raise
    except gzip.BadGzipFile as error:
        raise MemberError("found a file that is not gzipped, or is damaged") from error
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError, OverflowError, RecursionError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise MemberError(f"found {said.splitlines()[0]}") from error


def _opened(source: Path | bytes) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def is_member_name(name: str) -> bool:
    """Whether a member's path stays within the archive's folder and can be shown."""
    parts = name.split("/")
    return len(name) <= LONGEST_NAME and name.isprintable() and all(part not in ("", ".", "..") and len(part.encode()) <= LONGEST_PART for part in parts)


class _Header(tarfile.TarInfo):
    """A header, refused before tarfile reads more of what belongs to it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """The header in a block."""
        header = super().frombuf(buf, encoding, errors)
        if header.type in LONG_NAMES and header.size > LONGEST_HEADER:
            raise MemberError(f"found a header of {header.size} bytes")
        if header.type not in (*LONG_NAMES, *FILES):
            raise MemberError(f"found {shown(header.name)}, which is neither a file nor a folder")
        return header


class _Limited(io.RawIOBase):
    """The unpacked stream, which ends with an error where there is too much of it."""

    def __init__(self, raw: BinaryIO, zipped: gzip.GzipFile, most: int) -> None:
        self._raw, self._zipped, self._most, self._total = raw, zipped, most, 0

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes."""
        data = self._zipped.read(size)
        self._total += len(data)
        packed = max(self._raw.tell(), 1)
        if self._total > self._most:
            raise MemberError(f"found more than {self._most} bytes")
        if self._total > FREE_BYTES and self._total > LARGEST_RATIO * packed:
            raise MemberError(f"found {self._total} bytes packed into {packed}, more than {LARGEST_RATIO} to one")
        return data


def _read(raw: BinaryIO, wanted: Collection[str], limits: Limits) -> Members:
    found = Members()
    kept = 0
    for name, size, file in _members(raw, limits):
        if file is None:
            continue
        if any(fnmatchcase(PurePosixPath(name).name, pattern) for pattern in wanted):
            kept += size
            if size > limits.kept_bytes or kept > limits.kept_sum:
                raise MemberError(f"found {shown(name)} of {size} bytes, {kept} with those before it")
            found.contents[name] = content = file.read()
            found.digests[name] = hashlib.sha256(content).hexdigest()
        else:
            found.digests[name] = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    return found


def _members(raw: BinaryIO, limits: Limits) -> Iterator[tuple[str, int, IO[bytes] | None]]:
    """Name, size and content of every member; folders have no content.

    Raises:
        MemberError: see `read_members`.
    """
    seen: set[str] = set()
    with gzip.GzipFile(fileobj=raw) as zipped, tarfile.open(fileobj=_Limited(raw, zipped, limits.bytes), mode="r|", tarinfo=_Header) as archive:
        for number, member in enumerate(archive, start=1):
            # tarfile keeps every header that it has seen.
            archive.members = []  # type: ignore[attr-defined]
            name = member.name.removesuffix("/")
            if number > limits.members:
                raise MemberError(f"found more than {limits.members} files")
            if not is_member_name(name):
                raise MemberError(f"found the member {shown(member.name)}")
            if name in seen:
                raise MemberError(f"found the member {shown(name)} twice")
            seen.add(name)
            if member.type not in FILES or member.issparse():
                raise MemberError(f"found {shown(name)}, which is neither a file nor a folder")
            if member.size < 0:
                raise MemberError(f"found {shown(name)} of {member.size} bytes")
            yield name, member.size, archive.extractfile(member) if member.isfile() else None
