"""What a platform says of a submission: who handed it in, and which file it is."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from scpslab.core.errors import ScpslabError, UsageError
from scpslab.core.names import shown
from scpslab_course.course.roster import Student
from scpslab_course.grading.submission import SUFFIX

TELL = "Nothing was decided: tell your instructor"


def users(metadata: Path, roster: Sequence[Student]) -> tuple[str, ...]:
    """The ids of who handed a submission in, by their e-mail addresses in Gradescope's submission_metadata.json.

    Raises:
        UsageError: the file does not say it, or somebody is not in the roster.
    """
    try:
        emails = [str(user["email"]) for user in json.loads(metadata.read_bytes())["users"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{metadata.name}: found no users with e-mail addresses ({type(error).__name__}); expected them from the platform. {TELL}.") from error
    by_email = {student.email.casefold(): student.id for student in roster}
    unknown = [email for email in emails if email.strip().casefold() not in by_email]
    if unknown or not emails:
        found = ", ".join(shown(email) for email in unknown) or "nobody"
        raise UsageError(f"handed in by {found}; expected somebody of the course's roster. {TELL}, who can make the autograder with today's roster.")
    return tuple(by_email[email.strip().casefold()] for email in emails)


def submission_of(folder: Path) -> Path:
    """The one file that was handed in. Links are not followed.

    Raises:
        ScpslabError: there is none, or there are several.
    """
    files = sorted(path for inside, _, names in os.walk(folder) for name in names if stat.S_ISREG((path := Path(inside, name)).lstat().st_mode))
    named = [path for path in files if path.name.endswith(SUFFIX)] or files
    if len(named) != 1:
        found = ", ".join(shown(path.name) for path in named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
        raise ScpslabError(
            f'found {found or "no file"}; expected the one file that "scpslab assignment submit" writes (NAME-STUDENT{SUFFIX}). Hand in that file alone.'
        )
    return named[0]
