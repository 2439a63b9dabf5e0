"""The forms in which grades leave the laboratory. A format is one module here, with `KIND = Format(…)`, and its line in NAMES."""

from scpslab.core.kinds import kinds_of
from scpslab_course.grading.formats.base import Facts, Format

NAMES = (
    "table",
    "gradescope",
    "github-classroom",
    "classroom50",
    "prairielearn",
    "vpl",
    "nbgrader",
    "moodle",
    "canvas",
    "mail-merge",
    "junit",
)
FORMATS: dict[str, Format] = kinds_of(__name__, NAMES)

__all__ = ["FORMATS", "NAMES", "Facts", "Format"]
