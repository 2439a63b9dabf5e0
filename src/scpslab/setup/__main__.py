"""`python -m scpslab.setup`: builds everything that engines need and prints each step with its time."""

import signal
import sys
from collections.abc import Callable

from scpslab.core.errors import INTERRUPTED_EXIT, ScpslabError
from scpslab.setup import cache_dir, ensure
from scpslab.setup.images import PARTS, compare


def attempt(work: Callable[[], None]) -> int:
    """Does some work of building; returns the exit code of the error, if there is one."""
    # Ended in whatever way, a build first ends its programs.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        work()
    except ScpslabError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted: finished parts are kept; repeat the command to build the others", file=sys.stderr)
        return INTERRUPTED_EXIT
    return 0


def say(text: str) -> None:
    """Prints a line at once."""
    print(text, flush=True)


def build() -> None:
    """Builds what is missing, and says what there is."""
    print(f"images {ensure(say).hash}: lab kernel and guest are in {cache_dir()}")
    for part in PARTS:
        if verdict := compare(part, cache_dir()):
            print(verdict.text)


if __name__ == "__main__":
    sys.exit(attempt(build))
