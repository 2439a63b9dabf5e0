"""Makes a container ready: the parts of the laboratory are unpacked, and the lab program is compiled. Without it each grading would do this."""

from __future__ import annotations

from collections.abc import Callable

from scpslab import scenario
from scpslab.engine.virtual import VirtualEngine
from scpslab.scenario import planning
from scpslab_course.course.draw import Whose, drawn
from scpslab_course.course.folder import Course
from scpslab_course.course.issue import NOBODY
from scpslab_course.course.secret import PRACTICE


def prepare(course: Course, say: Callable[[str], None]) -> None:
    """Prepares the engine for the plans of the course's assignments, with parameters of nobody.

    Raises:
        CapabilityError: this container cannot run labs.
        LabError: a guest did not start.
    """
    plans = []
    for name in course.file.assignments:
        assignment = course.assignment(name)
        parameters = drawn(PRACTICE.draw_key, Whose(NOBODY, name, NOBODY), assignment.file.variant, 0)
        for one in assignment.scenario_names:
            loaded = scenario.load(str(assignment.scenario(one)), assignment.settings(parameters, one))
            plans += list(planning.plans(scenario.cells(loaded)).values())
    VirtualEngine().prepare(say, plans)
