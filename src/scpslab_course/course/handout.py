"""A handout as a page for a browser, which has its drawing inside."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path

from scpslab.analysis.output import pages
from scpslab.documents.quantities import AxisValue
from scpslab_course.course.assignment import HANDOUT, Assignment

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
