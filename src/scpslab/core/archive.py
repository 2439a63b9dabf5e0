"""Archives: packed without anything of this machine; read as a stream, with limits, because strangers make them too."""

import gzip
import hashlib
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Self

from scpslab.core.errors import MemberError
from scpslab.core.names import shown

# JSON and captures of zeros are packed up to about a hundred times; gzip itself ends at a thousand.
LARGEST_RATIO, FREE_BYTES = 300, 64 << 20
LONGEST_NAME, LONGEST_PART = 1000, 255
# Headers that hold a long name for the next file, which tarfile reads whole, and the longest one that does.
LONG_NAMES, LONGEST_HEADER = (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE), 16 << 10
FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
CHUNK_BYTES = 1 << 20
PLAIN, PROGRAM = 0o644, 0o755
# What reading a damaged archive raises.
TROUBLE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, tarfile.TarError, OverflowError, RecursionError)
Stream = gzip.GzipFile | lzma.LZMAFile
Opener = Callable[[BinaryIO], Stream]
Member = tuple[str, tarfile.TarInfo, IO[bytes] | None]


@dataclass(frozen=True)
class ArchiveLimits:
    """How much an archive may hold: members, unpacked bytes, and of what is kept in memory the bytes of one and all."""

    members: int
    bytes: int
    kept_bytes: int = 0
    kept_sum: int = 0


# A whole campaign with captures, and a cell or a built part; what is more is not looked at to its end.
OF_RUNS = ArchiveLimits(members=500_000, bytes=64 * 10**9, kept_bytes=64 << 20, kept_sum=1 << 30)
OF_A_FOLDER = ArchiveLimits(members=10_000, bytes=16 * 10**9)


@dataclass(frozen=True)
class Members:
    """The files of an archive by their paths in it: `contents` of the wanted ones, `digests` (SHA-256) of all."""

    contents: dict[str, bytes] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)


def _gunzipped(raw: BinaryIO) -> Stream:
    return gzip.GzipFile(fileobj=raw)


def pack(stream: IO[bytes] | gzip.GzipFile, files: Iterable[tuple[str, Path | bytes]]) -> None:
    """Writes a tar of files and folders under their names: no time stamps, owners or file order of this machine."""
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, source in files:
            entry = tarfile.TarInfo(name)
            if isinstance(source, Path) and source.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, PROGRAM
                archive.addfile(entry)
                continue
            is_program = isinstance(source, Path) and source.stat().st_mode & 0o100
            entry.mode = PROGRAM if is_program else PLAIN
            entry.size = len(source) if isinstance(source, bytes) else source.stat().st_size
            with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as content:
                archive.addfile(entry, content)


def read_members(source: Path | bytes, wanted: Collection[str], limits: ArchiveLimits | None = None) -> Members:
    """Every file of a gzipped archive; the contents of those whose names are `wanted`, in whatever folder.

    In a wanted name, * stands for anything. Default limits: OF_RUNS.

    Raises:
        MemberError: it cannot be read, holds anything but files and folders with names of their own within it, or is
            too large.
    """
    limits = limits or OF_RUNS
    members = Members()
    kept = 0
    with described(), io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as raw:
        for name, entry, file in _members(raw, limits):
            if file is None:
                continue
            if any(fnmatchcase(PurePosixPath(name).name, pattern) for pattern in wanted):
                kept += entry.size
                if entry.size > limits.kept_bytes or kept > limits.kept_sum:
                    raise MemberError(f"found {shown(name)} of {entry.size} bytes, {kept} with those before it")
                members.contents[name] = content = file.read()
                members.digests[name] = hashlib.sha256(content).hexdigest()
            else:
                members.digests[name] = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    return members


def unpack_members(
    source: BinaryIO,
    folder: Path,
    limits: ArchiveLimits = OF_A_FOLDER,
    opened: Opener = _gunzipped,
    *,
    with_modes: bool = False,
) -> None:
    """Writes every file and folder of an archive into a new folder; `with_modes`: programs stay programs.

    Raises:
        MemberError: see `read_members`; what was written before stays.
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True)
    for name, entry, file in _members(source, limits, opened):
        place = folder / name
        try:
            (place.parent if file else place).mkdir(parents=True, exist_ok=True)
            if file is None:
                continue
            with place.open("xb") as target:
                while block := _block(file):
                    target.write(block)
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            # A file and a folder have one name, or names differ in case alone where the file system does not tell.
            raise MemberError(f"found {shown(name)} in the place of a member before it") from error
        if with_modes:
            place.chmod(PROGRAM if entry.mode & 0o100 else PLAIN)


def is_member_name(name: str) -> bool:
    """Whether a member's path stays within the archive's folder and can be shown."""
    parts = name.split("/")
    are_plain = all(part not in ("", ".", "..") and len(part.encode()) <= LONGEST_PART for part in parts)
    return len(name) <= LONGEST_NAME and name.isprintable() and are_plain


@contextmanager
def described() -> Iterator[None]:
    """Whatever is wrong with an archive, as a MemberError."""
    try:
        yield
    except MemberError:
        raise
    except gzip.BadGzipFile as error:
        raise MemberError("found a file that is not gzipped, or is damaged") from error
    except TROUBLE as error:
        words = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise MemberError(f"found {words.splitlines()[0]}") from error


def _block(file: IO[bytes]) -> bytes:
    with described():
        return file.read(CHUNK_BYTES)


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

    def __init__(self, raw: BinaryIO, unpacked: Stream, most: int) -> None:
        self._raw, self._unpacked, self._most, self._total = raw, unpacked, most, 0

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes."""
        data = self._unpacked.read(size)
        self._total += len(data)
        packed = max(self._raw.tell(), 1)
        if self._total > self._most:
            raise MemberError(f"found more than {self._most} bytes")
        if self._total > FREE_BYTES and self._total > LARGEST_RATIO * packed:
            raise MemberError(f"found {self._total} bytes packed into {packed}, more than {LARGEST_RATIO} to one")
        return data


def _members(raw: BinaryIO, limits: ArchiveLimits, opened: Opener = _gunzipped) -> Iterator[Member]:
    """Name, header and content of every member; folders have no content.

    Raises:
        MemberError: see `read_members`.
    """
    seen: set[str] = set()
    with (
        described(),
        opened(raw) as unpacked,
        tarfile.open(fileobj=_Limited(raw, unpacked, limits.bytes), mode="r|", tarinfo=_Header) as archive,
    ):
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
            yield name, member, archive.extractfile(member) if member.isfile() else None
