"""The areas of the tests beyond `make test`: what belongs to each, and which of them a change concerns.

    python3 tools/areas.py                 the areas, a line
    python3 tools/areas.py --tests AREA    its test files
    python3 tools/areas.py --changed BASE  those that the changes since a commit concern; all of them where BASE is ""
    or no commit that is known here

Only the standard library is used here: .ci/run asks before anything is set up.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def _lab(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/lab/test_{name}.py" for name in names)


# An area's test files, as patterns. The area rust has none: it is `make -C stack test`.
AREAS: dict[str, tuple[str, ...]] = {
    "unit": ("tests/unit/*", "tests/processes/*"),
    "engine": (
        *_lab("appliance", "fork_*", "host", "iperf3", "killed_runs", "live_samples", "new_kinds"),
        *_lab("processor", "running", "sandbox", "script", "shell", "snapshots"),
    ),
    "links": _lab("hosts", "link_model", "measured_answers", "over_time", "paths", "queue_disciplines", "serial"),
    "transports": _lab("fp", "gateways", "scps", "services"),
    "teaching": _lab(
        "assignments",
        "autograder",
        "class",
        "costly_submissions",
        "policy",
        "semester",
        "transport",
        "trials",
    ),
    "containers": _lab("docker", "own_images"),
    "pages": _lab("mininet", "pages"),
    "rust": (),
}
ALL = tuple(AREAS)
PYTHON = tuple(area for area in AREAS if area != "rust")
# What a changed file concerns; the first pattern that fits counts. A file that fits none concerns everything.
CONCERNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("stack/*", ("transports", "rust")),
    ("src/scpslab_course/*", ("unit", "links", "teaching")),
    ("assignments/*", ("unit", "teaching", "pages")),
    ("src/scpslab/analysis/*", PYTHON),
    ("src/scpslab/cli/*", PYTHON),
    ("analysis/*", ("unit",)),
    ("bench/*", ("unit",)),
    ("playbooks/*", ("unit",)),
    ("tests/unit/*", ("unit",)),
    *((pattern, (area,)) for area, patterns in AREAS.items() for pattern in patterns),
    ("docs/decisions/*", ()),
    ("docs/*", ("pages",)),
    ("README.md", ("pages",)),
    ("CHANGELOG.md", ()),
    ("CONTRIBUTING.md", ("unit",)),
    ("Vagrantfile", ("unit",)),
)


def tests_of(area: str) -> list[str]:
    """The test files of an area; what is a folder's is the folder."""
    patterns = AREAS[area]
    found = (str(file.relative_to(ROOT)) for file in (ROOT / "tests" / "lab").glob("test_*.py"))
    return sorted(file for file in found if any(fnmatch(file, pattern) for pattern in patterns)) or [
        pattern.removesuffix("/*") for pattern in patterns
    ]


def concerned(files: Iterable[str]) -> list[str]:
    """The areas that changed files concern, in their order."""
    areas: set[str] = set()
    for file in files:
        areas.update(next((areas for pattern, areas in CONCERNS if fnmatch(file, pattern)), ALL))
    return [area for area in AREAS if area in areas]


def changed(base: str) -> list[str] | None:
    """The files that differ between a commit and the working tree; None where the commit is not known here."""
    if not base:
        return None
    done = subprocess.run(
        ["git", "diff", "--name-only", "--no-renames", "-z", base, "--"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return [name for name in done.stdout.split("\0") if name] if done.returncode == 0 else None


def main(arguments: list[str]) -> str:
    """What a command line is answered with."""
    match arguments:
        case []:
            return " ".join(AREAS)
        case ["--tests", area] if area in AREAS:
            return " ".join(tests_of(area))
        case ["--changed", base]:
            files = changed(base)
            return " ".join(ALL if files is None else concerned(files))
    sys.exit(
        f"error: tools/areas.py: found {' '.join(arguments)!r}; expected nothing, --tests AREA or --changed BASE, "
        f"where AREA is one of {', '.join(AREAS)}."
    )


if __name__ == "__main__":
    print(main(sys.argv[1:]))
