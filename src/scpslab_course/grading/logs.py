"""The log of a submission: its chain, and whether it is the log of the submitted runs. What a log cannot prove: decision 0703."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from scpslab.runs.archive import ArchivedRun
from scpslab.runs.run import RESULTS
from scpslab_course.course import log
from scpslab_course.course.log import Line, LogError, recorded_results, was_interrupted
from scpslab_course.course.variant import Variant
from scpslab_course.grading.grade import Code, Finding
from scpslab_course.grading.rerun import Rerun


def read_log(content: bytes, variant: Variant) -> tuple[list[Line], list[Finding]]:
    """The lines, and what is wrong with the chain. A chain that does not begin with this variant is the log of something else."""
    try:
        return log.read(content, variant.digest), []
    except LogError as error:
        first = content.split(b"\n", 1)[0]
        code = Code.REPLAYED_LOG if "line 1:" in str(error) and first.startswith(b"{") else Code.BROKEN_LOG
        return [], [Finding(code, f"{error}")]


def against_runs(lines: Sequence[Line], runs: Mapping[str, ArchivedRun], reruns: Mapping[str, Rerun]) -> Iterator[Finding]:
    """Runs that the log records with other results. The grader's own results count, where it has them all: edited results are another finding."""
    for name, run in runs.items():
        recorded = recorded_results(lines, name)
        mine = reruns.get(name)
        expected = mine.digests.get(RESULTS) if mine is not None and mine.is_whole else None
        known = {run.digest.files.get(RESULTS), expected}
        if recorded is not None and recorded in known:
            continue
        if was_interrupted(lines, name):
            yield Finding(
                Code.INTERRUPTED_RUN, f"{name}: the log has the beginning of the run and not its end; expected both. The results are compared all the same"
            )
        elif recorded is None:
            yield Finding(Code.REPLAYED_LOG, f"{name}: found no run in the log; expected the one that gave the submitted results")
        else:
            yield Finding(Code.REPLAYED_LOG, f"{name}: the log records results {recorded[:12] or 'none'}; expected those of this variant, {_some(known)}")


def _some(digests: set[str | None]) -> str:
    return " or ".join(sorted(digest[:12] for digest in digests if digest))
