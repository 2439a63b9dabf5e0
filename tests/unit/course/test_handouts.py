"""The form of every handout: its sections, its drawing, hints that are folded, and nothing that a student's folder or
the wheel does not have.
"""

import base64
import random
import re
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.analysis.statistics import ResultRow
from scpslab.analysis.table import Results, report, summarise
from scpslab.cli.docs import LEFT_OUT
from scpslab.core.project import ROOT
from scpslab.scenario import planning
from scpslab_course.course import handout
from scpslab_course.course.answers import Evaluation, RightNumber, score_answer
from scpslab_course.course.assignment import FOLDER, HANDOUT, INSTRUCTOR, NOTES, find, load_assignment, names
from scpslab_course.course.folder import load_course, make_course, plan_publication
from scpslab_course.course.workspace import handed_out
from tests.unit.course.claims import both

SECTIONS = (
    "After this assignment you can",
    "Background",
    "Tasks",
    "Hints",
    "If it looks wrong",
    "What is allowed",
    "What is marked",
    "How predictions and numbers are marked",
)
HINT = re.compile(r"<details>\n<summary>Hint (\d+): [^<\n]+</summary>\n\n(\S.*?)\n\n</details>", re.DOTALL)
# A block of code right before or right behind the words.
EXPECTED = re.compile(
    r"```\n([^`]+)\n *```\n\n *Your numbers differ|Your numbers differ[.:]\n\n *```\n([^`]+)\n *```\n"
)
CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def sections(name):
    """The text before the first heading, and that of each section."""
    head, *parts = re.split(r"^## ", (FOLDER / name / HANDOUT).read_text(), flags=re.MULTILINE)
    return head, {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


@pytest.mark.parametrize("name", names())
def test_a_handout_has_its_sections_in_order(name):
    head, parts = sections(name)
    assert tuple(title for title in parts if title != "Sources") == SECTIONS
    assert re.match(r"# .+\n\nWorking time: .+ Points: \d+\.\n\n$", head)
    can, need = parts["After this assignment you can"].rsplit("\n\n", 1)
    goals = re.findall(r"^- (\S+) ", can, re.MULTILINE)
    assert len(goals) >= 2
    assert all(goal.islower() for goal in goals), "items begin with a verb"
    assert need.startswith("You need to know ")


@pytest.mark.parametrize("name", names())
def test_a_handout_draws_its_network_and_shows_what_a_run_prints(name):
    _, parts = sections(name)
    assert re.match(rf"!\[The network: .+\]\({handout.DRAWING}\)\n", parts["Background"])
    found = EXPECTED.findall(parts["Tasks"])
    assert len(found) == 1
    lines = [line.strip() for line in "".join(found[0]).splitlines()]
    assert 1 <= len(lines) <= 4
    assert re.search(r"\d", "".join(lines))
    columns = {line.count("┃") + line.count("│") for line in lines if line[0] in "┃│"}
    assert len(columns) <= 1, "the lines of a table have the same columns"


@pytest.mark.parametrize("name", names())
def test_hints_are_folded_and_numbered(name):
    _, parts = sections(name)
    hints = HINT.findall(parts["Hints"])
    assert [int(number) for number, _ in hints] == [*range(1, len(hints) + 1)]
    assert len(hints) >= 2
    assert HINT.sub("", parts["Hints"]).strip() == "", "nothing stands outside of a fold"


@pytest.mark.parametrize("name", names())
def test_a_handout_says_what_to_do_if_it_looks_wrong_and_what_is_allowed(name):
    _, parts = sections(name)
    head, _, *rows = parts["If it looks wrong"].splitlines()
    assert head.count("|") == 3
    assert len(rows) >= 3
    assert all(row.count("|") == 3 for row in rows)
    for word in (r"\bAI\b", "[Tt]alk", "write-up"):
        assert re.search(word, parts["What is allowed"]), word


@pytest.mark.parametrize("name", names())
def test_a_handout_leads_to_nothing_but_files_beside_it_and_pages_of_scpslab_docs(name):
    text = (FOLDER / name / HANDOUT).read_text()
    files = {file for file, _ in handed_out(FOLDER / name)}
    links = re.findall(r"\]\(([^)]+)\)", CODE.sub("", text))
    assert set(links) <= files
    assert "docs/" not in text
    for page in re.findall(r"scpslab docs ([\w/-]+)", text):
        assert (ROOT / "docs" / f"{page}.md").is_file(), page
        assert page.split("/")[0] not in LEFT_OUT
    for command in re.findall(r"scpslab assignment predict (\w+)", text):
        assert command in load_assignment(find(name)).file.predictions


RATIOS = {
    "three-papers": ("near_ratio", "far_ratio", "itc_ratio", "aero_ratio", "jzus_ratio", "yardstick"),
    "space-transport": ("fast_ratio", "slow_ratio", "snack_ratio"),
}


def transfers(name, draws):
    """Made-up transfer times of all cells of an assignment, by scenario."""
    for one in both(name)[0].file.scenarios:
        cells = planning.plans(scenario.cells(scenario.load(str(FOLDER / name / f"{one}.yaml")))).values()
        axes = tuple(next(iter(cells)).cell.axes)
        rows = [{axis: str(plan.cell.axes[axis]) for axis in axes} for plan in cells]
        times = {"status": "completed", "topology": "x"}
        made = tuple(ResultRow({**row, **times, "transfer_s": f"{draws.uniform(30, 90):.6f}"}) for row in rows)
        yield one, Results(Path(one), (), axes, ("transfer_s",), made)


def means(results, format_):
    """What `scpslab results` shows of these: a line for each point, with the mean as the format has it."""
    shown = report(summarise(results, metrics=("transfer_s",)))
    for row, record in zip(shown.rows, shown.records[1:], strict=True):
        named = dict(zip(shown.records[0], record, strict=True))
        mean = named["transfer_s_mean"] if format_ == "csv" else row.cells[len(results.axes)].split()[0]
        yield {**{axis: named[axis] for axis in results.axes}, "status": "completed", "transfer_s": str(mean)}


@pytest.mark.parametrize("name", RATIOS)
def test_who_takes_means_as_the_handout_says_has_all_points_for_each_ratio(name):
    """A table rounds a mean to two digits of its interval, or of its range: that is up to a percent."""
    asked = re.search(r"`scpslab results RUN[^`]*--format (\w+)`", sections(name)[1]["Tasks"])
    (assignment, marking), draws, wrong = both(name), random.Random(1), []
    for _ in range(100):
        runs = dict(transfers(name, draws))
        told = {one: list(means(results, asked[1] if asked else "table")) for one, results in runs.items()}
        by_rows = [Evaluation(marking, {}, rows) for rows in ({one: r.rows for one, r in runs.items()}, told)]
        for ratio in RATIOS[name]:
            right, found = (one.number(("answers", ratio, "expected")) for one in by_rows)
            distance = marking.file.answers[ratio].relative * right
            near = RightNumber(kind="number", value=right, distance=distance, partial=(), wrong=())
            if score_answer(assignment.file.answers[ratio], near, f"{found:.3g}").share < 1:
                wrong.append((ratio, right, found))
    assert wrong == []


def test_a_published_course_has_every_drawing(tmp_path):
    made = make_course(tmp_path / "course", "Course", "term-1", names())
    published = plan_publication(load_course(made.folder))
    assert {f"assignments/{name}/{handout.DRAWING}" for name in names()} <= set(published)


@pytest.mark.parametrize("name", names())
def test_the_instructors_notes_say_how_long_it_takes_what_goes_wrong_and_what_to_discuss(name):
    notes = (FOLDER / name / INSTRUCTOR / NOTES).read_text()
    for part in ("**Use it**", "**Timing.**", "**What goes wrong**", "**Questions for the discussion.**"):
        assert part in notes, part
    for parts in re.findall(r"An estimate, in minutes: (.+?)\.\n", notes):
        minutes = sum(map(int, re.findall(r"\b(\d+) (?:to|for) ", parts)))
        assert minutes == load_assignment(find(name)).file.minutes


def test_the_page_of_a_handout_has_the_student_s_own_values_in_its_drawing():
    text = handout.page(load_assignment(find("first-steps")), {"rate": "3 Mbit/s"})["handout.html"].decode()
    assert "<details>" in text
    drawing = base64.b64decode(re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', text)[1]).decode()
    assert ">3 Mbit/s<" in drawing
    assert ">your rate<" not in drawing
    # What each may be stays; what this student does not have keeps its name.
    assert all(words in drawing for words in ("your rate: 1.5 to 3.5 Mbit/s", ">your delay<"))


def test_a_queue_that_follows_its_link_is_no_rate_and_no_delay():
    text = handout.page(load_assignment(find("split-tcp")), {"rate": "9 Mbit/s", "delay": "262 ms"})["handout.html"]
    drawing = base64.b64decode(re.search(rb'src="data:image/svg\+xml;base64,([^"]+)"', text)[1]).decode()
    assert [drawing.count(word) for word in (">262 ms<", ">one BDP<", "9 Mbit/s and")] == [2, 2, 0]
