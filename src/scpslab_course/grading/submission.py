"""Submissions: the one file that a student hands in (decision 0703).

Read as a stranger's: with limits, in memory, and nothing in it is run.
"""

import gzip
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from scpslab.core import strict_json
from scpslab.core.archive import ArchiveLimits, is_member_name, read_members
from scpslab.core.archive import pack as pack_members
from scpslab.core.contents import content_of
from scpslab.core.errors import MemberError, ResultError, UsageError
from scpslab.core.names import file_label, file_name
from scpslab.core.scratch import scratch
from scpslab.plan import schema
from scpslab.plan.schema import Part, PlanError, Range, Text
from scpslab.plan.values import Label, Name, Seed
from scpslab.runs.archive import ArchivedRun, read_archive, write_archive
from scpslab_course.course import answers
from scpslab_course.course.workspace import LOG, VARIANT, WRITE_UP, Workspace

FORMAT = 1
CONTENTS, ARCHIVE, FILES = "submission.json", "runs.scpslab.tar.gz", "files/"
SUFFIX = ".submission.tar.gz"
LARGEST_PACKED = 20 * 10**6
LIMITS = ArchiveLimits(members=200, bytes=64 << 20, kept_bytes=32 << 20, kept_sum=64 << 20)
# Of a student's runs: plans, tables and what is said of cells, without captures and records.
RUNS_LIMITS = ArchiveLimits(members=5_000, bytes=128 << 20, kept_bytes=4 << 20, kept_sum=32 << 20)
LARGEST_TEXT = 1 << 20
REQUIRED = (VARIANT, LOG, answers.FILE, ARCHIVE)
KNOWN = (*REQUIRED, WRITE_UP)
AS_PACKED = 'a submission as "scpslab assignment submit" writes it'
AGAIN = 'Make it again with "scpslab assignment submit"'
MemberName = Annotated[str, Text("the path of a file in the submission", is_member_name)]


class SubmittedFiles(Part):
    """submission.json."""

    format_: Annotated[int, Range(FORMAT, FORMAT)]
    assignment: Name
    student: Label
    members: dict[MemberName, Seed]


@dataclass(frozen=True)
class Submission:
    """What a submission holds.

    Nothing in it has been believed yet: `variant` and `log` are bytes to be verified, `contents` is what the file says
    of itself.

    `files` are the deliverables by their names; `write_up` is "" if there is none.
    """

    path: Path
    sha256: str
    contents: SubmittedFiles
    variant: bytes
    log: bytes
    answers: bytes
    write_up: str
    archive: bytes
    files: Mapping[str, bytes]

    def runs(self) -> dict[str, ArchivedRun]:
        """The archived runs by the name of their scenario, every plan checked for its form.

        A scenario twice keeps its first run.

        Raises:
            ResultError: the archive cannot be read.
        """
        found: dict[str, ArchivedRun] = {}
        for run in read_archive(self.path / ARCHIVE, self.archive, RUNS_LIMITS):
            found.setdefault(next(iter(run.plans.values())).cell.scenario, run)
        return found


def packed_bytes(path: Path) -> bytes:
    """The bytes of a submission's file, at most LARGEST_PACKED.

    Raises:
        ResultError: it is larger, or no ordinary file.
    """
    try:
        return content_of(path, LARGEST_PACKED)
    except (OSError, ValueError) as error:
        raise _refused(path, f"found {getattr(error, 'strerror', None) or error}", "a submission") from error


def read(path: Path, content: bytes | None = None) -> Submission:
    """A submission from its file, or from the bytes of it. Unpacks at most LIMITS into memory; writes nothing.

    Raises:
        ResultError: it cannot be read, is no submission, or goes beyond a limit; the message says which.
    """
    content = packed_bytes(path) if content is None else content
    try:
        members = read_members(content, ("*",), LIMITS)
    except MemberError as error:
        raise _refused(path, str(error), AS_PACKED) from error
    found = members.contents
    contents = _contents(path, found.pop(CONTENTS, None))
    for name in found:
        if name not in KNOWN and not (name.startswith(FILES) and name.count("/") == 1):
            raise _refused(path, f"{name}: found a file that no submission has", f"{', '.join(KNOWN)} and {FILES}*")
        if name not in contents.members:
            raise _refused(path, f"{name}: found a file that {CONTENTS} does not list", "a listed one")
    for name, digest in contents.members.items():
        if members.digests.get(name) != digest:
            what = "other bytes than" if name in found else "no such file as"
            raise _refused(path, f"{name}: found {what} {CONTENTS} lists", "the file as it was packed")
    if missing := [name for name in REQUIRED if name not in found]:
        raise _refused(path, f"found no {', '.join(missing)}", f"all of {', '.join(REQUIRED)}")
    files = {name.removeprefix(FILES): content for name, content in found.items() if name.startswith(FILES)}
    write_up = _text(path, WRITE_UP, found.get(WRITE_UP, b""))
    _text(path, answers.FILE, found[answers.FILE])
    sha256 = hashlib.sha256(content).hexdigest()
    return Submission(
        path, sha256, contents, found[VARIANT], found[LOG], found[answers.FILE], write_up, found[ARCHIVE], files
    )


def pack(workspace: Workspace) -> bytes:
    """A student's folder as a submission. The same folder gives the same bytes.

    Raises:
        UsageError: runs or files are missing, or it would be too large.
    """
    members = _members(workspace)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    variant = workspace.variant
    contents = SubmittedFiles(format_=FORMAT, assignment=variant.assignment, student=variant.student, members=digests)
    head = (json.dumps(schema.write(contents), indent=1, ensure_ascii=False) + "\n").encode()
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", mtime=0, fileobj=packed) as zipped:
        pack_members(zipped, {CONTENTS: head, **members}.items())
    content = packed.getvalue()
    if len(content) > LARGEST_PACKED:
        expected = f"expected at most {LARGEST_PACKED}. Make the deliverables smaller."
        raise UsageError(f"{workspace.folder}: found {len(content)} bytes to hand in; {expected}")
    return content


def default_name(workspace: Workspace) -> str:
    """The name of the file: assignment and student."""
    return file_name(workspace.variant.assignment, file_label(workspace.variant.student), suffix=SUFFIX)


def _members(workspace: Workspace) -> dict[str, bytes]:
    folder, file = workspace.folder, workspace.assignment.file
    runs = workspace.planned.values()
    if undone := ", ".join(run.scenario for run in runs if not run.is_complete):
        expected = 'expected one. Run: "scpslab assignment run".'
        raise UsageError(f"{folder}: found no complete run of {undone}; {expected}")
    there = [one.file for one in file.deliverables if (folder / one.file).is_file()]
    if missing := ", ".join(one.file for one in file.deliverables if one.required and one.file not in there):
        expected = "expected all deliverables. Write them, or correct their names."
        raise UsageError(f"{folder}: found no {missing}; {expected}")
    with scratch() as temporary:
        packed = write_archive(sorted(run.folder.path for run in runs), temporary / ARCHIVE).read_bytes()
    own = (VARIANT, LOG, answers.FILE)
    found = {name: _own(folder / name) for name in own} | {ARCHIVE: packed}
    if file.write_up:
        found[WRITE_UP] = _own(folder / WRITE_UP)
    return found | {f"{FILES}{name}": _own(folder / name) for name in there}


def _own(path: Path) -> bytes:
    """The content of a file of the folder itself: a link might lead to any file of this machine."""
    if path.is_symlink() or not path.is_file():
        found = "a symbolic link" if path.is_symlink() else "no file"
        raise UsageError(f"{path}: found {found}; expected a file. Put it there.")
    if (size := path.stat().st_size) > LARGEST_PACKED:
        raise UsageError(f"{path}: found {size} bytes; expected at most {LARGEST_PACKED}. Make it smaller.")
    return path.read_bytes()


def _contents(path: Path, content: bytes | None) -> SubmittedFiles:
    if content is None:
        raise _refused(path, f"found no {CONTENTS}", AS_PACKED)
    try:
        return schema.read(SubmittedFiles, strict_json.loads(content))
    except strict_json.JsonError as error:
        raise _refused(path, f"{CONTENTS}: {error}", "the list of its files") from error
    except PlanError as error:
        raise ResultError(f"{path}: {CONTENTS}: {error}. {AGAIN}.") from error


def _text(path: Path, name: str, content: bytes) -> str:
    if len(content) > LARGEST_TEXT:
        raise _refused(path, f"{name}: found {len(content)} bytes", f"a text of at most {LARGEST_TEXT}")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused(path, f"{name}: found bytes that are not UTF-8", "text, saved as UTF-8") from error


def _refused(path: Path, found: str, expected: str) -> ResultError:
    return ResultError(f"{path}: {found}; expected {expected}. {AGAIN}.")
