"""One file with everything that a run can be had again from: plans, resolved scenario, versions, results, and a digest
of every file.

The archive is a gzipped tar. Its archive.json lists for each run the digests of all files under cells/ and of
results.csv; captures and records themselves are only in it when asked for, because a re-run gives them again. The same
run folder gives the same archive, byte for byte.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Annotated

from scpslab import plan as plans
from scpslab.core import strict_json
from scpslab.core.archive import ArchiveLimits, Members, is_member_name, pack, read_members
from scpslab.core.contents import json_fields, sha256_of
from scpslab.core.errors import MemberError, ResultError
from scpslab.core.folders import TOPOLOGIES, is_own
from scpslab.core.scratch import replacing
from scpslab.plan import Plan, schema
from scpslab.plan.schema import Items, Part, PlanError, Range, Text
from scpslab.plan.values import CellId, Label, PlainText, Seed, WholeSeed, Word
from scpslab.runs import RunFolder
from scpslab.runs.run import CELLS, ENVIRONMENT, MANIFEST, PLAN, RESOLVED, RESULTS, STATUS, VECTORS, Manifest

FORMAT = 1
CONTENTS = "archive.json"
OWN_TOPOLOGY = ".py"
# The name of a stored error vector: its SHA-256.
A_VECTOR = "[0-9a-f]" * 64
SUFFIX = ".scpslab.tar.gz"
# Small, and what a reader looks at first; everything else under cells/ is in the archive only with `whole`.
ALWAYS = (PLAN, STATUS, ENVIRONMENT)
HOW = (
    "scpslab verify ARCHIVE runs the plans again in virtual time and compares every file with these digests (SHA-256)."
)
AGAIN = 'Export the run again with "scpslab export", or ask for the file again.'
EXPECTED = f'expected an archive as "scpslab export" writes it. {AGAIN}'
MemberName = Annotated[str, Text("the path of a file within the run folder", is_member_name)]


class RunDigest(Part):
    """What the archive says of one run: digests by path within the run folder.

    `files` are what a re-run has to give; `inputs` are the scenario, the manifest and the user's own files beside the
    scenario (None: an archive from before they were listed).
    """

    run: CellId
    scenario: Label
    engine: Word
    seed: WholeSeed
    files: dict[MemberName, Seed]
    inputs: dict[MemberName, Seed] | None = None


class ArchiveContents(Part):
    """archive.json."""

    format_: Annotated[int, Range(FORMAT, FORMAT)]
    how: PlainText
    runs: Annotated[tuple[RunDigest, ...], Items(1, 10_000)]


@dataclass(frozen=True)
class ArchivedRun:
    """One run as an archive has it: digests, plans by cell id, the resolved scenario, the manifest of then.

    `own`: further files on which the plans depend, by name: topologies of the run's own, and stored error vectors.
    """

    digest: RunDigest
    plans: dict[str, Plan]
    resolved: str
    manifest: Manifest
    own: dict[str, bytes] = field(default_factory=dict)


def write_archive(runs: Sequence[Path], target: Path, *, whole: bool = False) -> Path:
    """Packs the run folders into `target`; `whole` takes records, captures and logs along. Returns the target.

    Raises:
        ResultError: a run that is not complete or cannot be read.
    """
    digests = [_digest(run) for run in runs]
    contents = ArchiveContents(format_=FORMAT, how=HOW, runs=tuple(digests))
    text = json.dumps(schema.write(contents), indent=1, ensure_ascii=False) + "\n"
    files = [(run, file) for run in runs for file in _packed(run, whole=whole)]
    members = [(f"{run.name}/{file.relative_to(run).as_posix()}", file) for run, file in files]
    with replacing(target) as part, part.open("wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as zipped:
        pack(zipped, [(CONTENTS, text.encode()), *members])
    return target


def read_archive(path: Path, content: bytes | None = None, limits: ArchiveLimits | None = None) -> list[ArchivedRun]:
    """The runs of an archive, every plan of it checked.

    Nothing is unpacked to disk. `content`: an archive in memory, which messages call `path`.

    `limits`: smaller ones than those of whole runs.

    Raises:
        ResultError: no archive of this program, one of a newer one, or one whose files are not those that it lists.
    """
    try:
        wanted = (CONTENTS, PLAN, RESOLVED, MANIFEST, TOPOLOGIES, f"*{OWN_TOPOLOGY}", A_VECTOR)
        members = read_members(path if content is None else content, wanted, limits)
    except MemberError as error:
        raise ResultError(f"{path}: {error}; {EXPECTED}") from error
    if CONTENTS not in members.contents:
        raise ResultError(f"{path}: found no {CONTENTS}; {EXPECTED}")
    contents = _contents(path, members.contents[CONTENTS])
    names = [digest.run for digest in contents.runs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ResultError(f"{path}: {CONTENTS}: found the run {twice} twice; {EXPECTED}")
    _check_listed(path, contents, members)
    return [_archived(path, digest, members.contents) for digest in contents.runs]


def _check_listed(path: Path, contents: ArchiveContents, members: Members) -> None:
    """Refuses an archive whose files are not those that it lists."""
    unlisted = set(members.digests) - {CONTENTS}
    for digest in contents.runs:
        listed = digest.files | (digest.inputs if digest.inputs is not None else {})
        for name, expected in listed.items():
            member = f"{digest.run}/{name}"
            actual = members.digests.get(member)
            if actual is None and (name in (digest.inputs or ()) or PurePosixPath(name).name in (PLAN, RESULTS)):
                raise ResultError(
                    f"{path}: {member}: found no such file; expected the file that {CONTENTS} lists. {AGAIN}"
                )
            if actual not in (None, expected):
                raise ResultError(
                    f"{path}: {member}: found another one; expected the file that {CONTENTS} lists, by its SHA-256. "
                    f"{AGAIN}"
                )
            unlisted.discard(member)
        unlisted -= {f"{digest.run}/{name}" for name in (RESOLVED, MANIFEST)} if digest.inputs is None else set()
    if unlisted:
        raise ResultError(f"{path}: {min(unlisted)}: found a file that {CONTENTS} does not list; {EXPECTED}")


def _contents(path: Path, content: bytes) -> ArchiveContents:
    try:
        fields = json_fields(content)
        if (found := strict_json.count(fields, "format") or 0) > FORMAT:
            advice = "It was written by a newer scpslab: use that one."
            raise ResultError(f"{path}: format: found {schema.shown(found)}; expected at most {FORMAT}. {advice}")
        return schema.read(ArchiveContents, fields)
    except strict_json.JsonError as error:
        raise ResultError(f"{path}: {CONTENTS}: {error}; {EXPECTED}") from error
    except PlanError as error:
        raise ResultError(f"{path}: {CONTENTS}: {error}. {AGAIN}") from error


def digests_of(run: Path) -> dict[str, str]:
    """SHA-256 of results.csv and of every file under cells/, by path within the run folder."""
    return _digests(run, (*_files_of_cells(run), RunFolder(run).results))


def _digests(run: Path, files: Iterable[Path]) -> dict[str, str]:
    return {path.relative_to(run).as_posix(): sha256_of(path) for path in files if is_own(run, path)}


def _inputs(run: Path) -> tuple[Path, ...]:
    """What says how a run was made, and what its makers put beside their scenario."""
    folder = RunFolder(run)
    return folder.manifest_file, folder.resolved, *folder.own_files()


def _digest(run: Path) -> RunDigest:
    manifest = RunFolder(run).manifest()
    if manifest.status != "completed":
        advice = "Run the scenario again: it goes on where it stopped."
        raise ResultError(f"{run}: status: found {manifest.status}; expected a completed run. {advice}")
    if not RunFolder(run).results.is_file():
        advice = f'Run "scpslab results {run}": it derives it again.'
        raise ResultError(f"{run}: found no {RESULTS}; expected the table of the run. {advice}")
    try:
        facts = {"scenario": manifest.scenario, "engine": manifest.engine, "seed": manifest.seed}
        digests = {"files": digests_of(run), "inputs": _digests(run, _inputs(run))}
        return schema.read(RunDigest, {**facts, "run": run.name, **digests})
    except PlanError as error:
        raise ResultError(
            f"{run / MANIFEST}: {error}. Run the scenario again: it takes what is finished and writes the file anew."
        ) from error


def _packed(run: Path, *, whole: bool) -> Iterator[Path]:
    yield from (path for path in (*_inputs(run), RunFolder(run).results) if is_own(run, path))
    yield from (path for path in _files_of_cells(run) if whole or path.name in ALWAYS)


def _files_of_cells(run: Path) -> list[Path]:
    return sorted(path for path in RunFolder(run).cells.glob("*/**/*") if is_own(run, path))


def _archived(path: Path, digest: RunDigest, files: dict[str, bytes]) -> ArchivedRun:
    by_cell: dict[str, Plan] = {}
    for name in digest.files:
        member = f"{digest.run}/{name}"
        if PurePosixPath(name).name != PLAN:
            continue
        try:
            plan = plans.parse(files[member]).as_planned
        except PlanError as error:
            raise ResultError(f"{path}: {member}: {error}. {AGAIN}") from error
        if name != f"{CELLS}/{plan.cell.id}/{PLAN}":
            raise ResultError(f"{path}: {member}: found the plan of cell {plan.cell.id}; {EXPECTED}")
        by_cell[plan.cell.id] = plan
    if not by_cell:
        raise ResultError(f"{path}: {digest.run}: found no plan; expected at least one. Export the run again.")
    own = {
        name: files[member]
        for name in digest.inputs or ()
        if _is_input_of_plans(name) and (member := f"{digest.run}/{name}") in files
    }
    return ArchivedRun(digest, by_cell, _resolved(path, digest, files), _manifest(path, digest, files), own)


def _is_input_of_plans(name: str) -> bool:
    folder, _, file = name.rpartition("/")
    if folder == VECTORS:
        return fnmatchcase(file, A_VECTOR)
    return not folder and (file == TOPOLOGIES or file.endswith(OWN_TOPOLOGY))


def _resolved(path: Path, digest: RunDigest, files: dict[str, bytes]) -> str:
    try:
        return _member(path, f"{digest.run}/{RESOLVED}", files).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResultError(f"{path}: {digest.run}/{RESOLVED}: found bytes that are not UTF-8; {EXPECTED}") from error


def _manifest(path: Path, digest: RunDigest, files: dict[str, bytes]) -> Manifest:
    name = f"{digest.run}/{MANIFEST}"
    try:
        return Manifest.of(json_fields(_member(path, name, files)))
    except strict_json.JsonError as error:
        raise ResultError(f"{path}: {name}: {error}; {EXPECTED}") from error


def _member(path: Path, name: str, files: dict[str, bytes]) -> bytes:
    if name not in files:
        raise ResultError(f"{path}: {name}: found no such file; {EXPECTED}")
    return files[name]
