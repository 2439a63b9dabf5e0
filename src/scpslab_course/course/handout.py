"""A handout as a page for a browser, which has its drawing inside: the network of its first scenario, where what each
student has of their own has its name.
"""

import base64
import re
from collections.abc import Mapping
from pathlib import Path

from scpslab import scenario
from scpslab.analysis.output import pages
from scpslab.documents.quantities import AxisValue
from scpslab.plan import Plan
from scpslab.scenario import planning
from scpslab.scenario.planning import Own
from scpslab_course.course.assignment import HANDOUT, Assignment
from scpslab_course.course.model import Choice, Formula, Parameter, Range, Seed, Whose
from scpslab_course.course.variant import NOBODY
from scpslab_course.course.variant import PRACTICE as PRACTICE_SECRET

PAGE, DRAWING = "handout.html", "network.svg"
# As the drawing calls what a variant draws; with a colon behind, it says which values there are.
YOURS = re.compile(r"\byour ([a-z][a-z0-9_]*)(?![:\w]| and )")


def page(assignment: Assignment, parameters: Mapping[str, AxisValue]) -> dict[str, bytes]:
    """The page by its name; none without handout.md. The drawing has these parameters, or the names of all without."""
    # Of an extra that other commands do without.
    from markdown_it import MarkdownIt  # noqa: PLC0415 (the reason stands above)

    path, drawing = assignment.folder / HANDOUT, assignment.folder / DRAWING
    if not path.is_file():
        return {}
    body = MarkdownIt("commonmark").enable("table").render(path.read_text(encoding="utf-8"))
    if drawing.is_file():
        svg = YOURS.sub(lambda found: str(parameters.get(found[1], found[0])), drawing.read_text(encoding="utf-8"))
        inside = base64.b64encode(svg.encode()).decode()
        body = body.replace(f'src="{DRAWING}"', f'src="data:image/svg+xml;base64,{inside}"')
    template = pages(Path(__file__).parent).get_template("handout.html.j2")
    return {PAGE: template.render(title=assignment.file.title, body=body).encode()}


MOST_WORDS = 3


def picture(assignment: Assignment) -> str:
    """The text of network.svg.

    Raises:
        ScenarioError: the first scenario is not valid with a variant.
    """
    name = assignment.file.scenarios[0]
    drawn = assignment.drawn(PRACTICE_SECRET.draw_key, Whose(NOBODY, assignment.name, NOBODY), 0)

    def plans(parameters: Mapping[str, AxisValue]) -> list[Plan]:
        return [planning.plan(one) for one in scenario.cells(assignment.loaded(parameters, name))]

    own = {
        parameter: Own(
            _values(one, assignment.file.variant),
            plans(drawn | {parameter: _another(parameter, one, drawn, assignment)}),
        )
        for parameter, one in assignment.file.variant.items()
        if not isinstance(one, Seed)
    }
    return planning.drawing(f"The network of {assignment.name}", plans(drawn), own)


def _another(name: str, one: Parameter, drawn: Mapping[str, AxisValue], assignment: Assignment) -> AxisValue:
    """A value that is not the drawn one, if there is one."""
    if isinstance(one, Formula):
        variant = assignment.file.variant
        others = {other: _another(other, variant[other], drawn, assignment) for other in _read_by(one, variant)}
        found = [one.computed(name, {**drawn, other: value}) for other, value in others.items()]
    else:
        found = [one.value_at(0), one.value_at(1)]
    return next((value for value in found if value != drawn[name]), drawn[name])


def _read_by(formula: Formula, variant: Mapping[str, Parameter]) -> list[str]:
    return [name for name in variant if re.search(rf"\b{name}\b", formula.value)]


def _values(one: Parameter, variant: Mapping[str, Parameter]) -> str:
    """What a parameter may be, in words."""
    if isinstance(one, Formula):
        # What sets nothing by itself stands nowhere in the drawing: here it says its own values.
        names = {
            name: "" if variant[name].set else f" ({_values(variant[name], variant)})"
            for name in _read_by(one, variant)
        }
        return f"computed from {planning.YOURS}{' and '.join(name + values for name, values in names.items())}"
    if isinstance(one, Choice) and len(one.values) <= MOST_WORDS:
        return " or ".join(map(str, one.values))
    first, last = (one.from_, one.to) if isinstance(one, Range) else (one.value_at(0), one.value_at(-1))
    number, _, unit = str(first).partition(" ")
    return f"{number if unit and str(last).endswith(f' {unit}') else first} to {last}"
