"""The members of an archive from outside, read as a stream and kept only where they are wanted: small enough, few enough, and with no way out."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from scpslab.names import shown

# JSON and captures of zeros are packed up to about a hundred times; gzip itself ends at a thousand.
LARGEST_RATIO, FREE_BYTES = 300, 64 << 20
LONGEST_NAME, LONGEST_PART = 1000, 255
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
    try:
        with _opened(source) as raw, gzip.GzipFile(fileobj=raw) as zipped:
            return _read(_Limited(raw, zipped, limits.bytes), wanted, limits)
    except MemberError:
        raise
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError, OverflowError, RecursionError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise MemberError(f"found {said.splitlines()[0]}") from error


def _opened(source: Path | bytes) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def is_member_name(name: str) -> bool:
    """Whether a member's path stays within the archive's folder and can be shown."""
    parts = name.split("/")
    return len(name) <= LONGEST_NAME and name.isprintable() and all(part not in ("", ".", "..") and len(part) <= LONGEST_PART for part in parts)


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


def _read(stream: _Limited, wanted: Collection[str], limits: Limits) -> Members:
    found = Members()
    seen: set[str] = set()
    kept = 0
    with tarfile.open(fileobj=stream, mode="r|") as archive:
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
            if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE) or member.issparse():
                raise MemberError(f"found {shown(name)}, which is neither a file nor a folder")
            file = archive.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            if any(fnmatchcase(PurePosixPath(name).name, pattern) for pattern in wanted):
                kept += member.size
                if not 0 <= member.size <= limits.kept_bytes or kept > limits.kept_sum:
                    raise MemberError(f"found {shown(name)} of {member.size} bytes, {kept} with those before it")
                found.contents[name] = content = file.read()
                length, found.digests[name] = len(content), hashlib.sha256(content).hexdigest()
            else:
                length, found.digests[name] = _digest(file)
            if length != member.size:
                raise MemberError(f"found {shown(name)} cut short")
    return found


def _digest(file: IO[bytes]) -> tuple[int, str]:
    """Length and SHA-256 of a file, read in parts: a capture may be larger than the memory."""
    length, digest = 0, hashlib.sha256()
    while chunk := file.read(CHUNK_BYTES):
        length += len(chunk)
        digest.update(chunk)
    return length, digest.hexdigest()
