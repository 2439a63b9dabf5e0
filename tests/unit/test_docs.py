"""The pages: short on the users' path, each in one place of the navigation, and their facts those of the code. The
reading of pages whose commands are tests: what they show is held against what was printed. The playbooks: what
replaces a file of the machine is known to what takes the lab away. Syllabus and slides: what they name exists, and
they say their licence.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.cli.app import COMMANDS
from scpslab.engine.memory import NEEDED_BYTES
from scpslab.plan.mininet import MOST_LINKS, MOST_NODES
from scpslab.plan.topology.network import MOST
from scpslab.scenario.cells import MOST_CELLS
from scpslab.scenario.planning.estimate import PACKET_S, START_S
from scpslab_course.course.assignment import names
from scpslab_course.grading.formats import FORMATS
from scpslab_course.grading.grade import Code
from tests.lab.pages import agree
from tools.reference.scenarios import BEGIN, END

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README_LINES = 90
# Words outside of blocks of code and generated tables, in what a user may read from beginning to end.
MOST_WORDS = 25_000
USERS = ("Start", "Course", "Experiments", "Your link", "Reference", "Explanation")
# References that are made from the code, or compared with it row by row: nobody reads them from beginning to end.
TABLES = (
    "scenario-reference.md",
    "assignment-reference.md",
    "columns.md",
    "figures.md",
    "gateway-reference.md",
    "guest-programs.md",
)
WORD = re.compile(r"\w")
CODE = re.compile(rf"^```.*?^```$|^{BEGIN}.*?^{END}$", re.MULTILINE | re.DOTALL)
# Material for the people who teach, beside the course's pages: a user's way does not lead through a plan of weeks.
TEACHING = "course/"
# Folders that stand for their pages.
FOLDERS = ("protocol", "conformance", "decisions")


def navigation() -> dict[str, list[str]]:
    """The pages of each tab of the site."""
    tabs: dict[str, list[str]] = {}
    for tab, page in re.findall(r"^  - (\w[\w ]*):$|^      - (?:\w+: )?(\S+)$", mkdocs(), re.MULTILINE):
        if tab:
            tabs[tab] = []
        else:
            tabs[list(tabs)[-1]].append(page)
    return tabs


def mkdocs() -> str:
    return (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]


def users_path() -> Iterator[Path]:
    yield from (
        DOCS / page
        for tab in USERS
        for page in navigation()[tab]
        if page not in TABLES and not page.startswith(TEACHING)
    )


def page(name: str) -> str:
    return (DOCS / name).read_text()


def test_every_page_is_in_one_tab():
    named = [name for pages in navigation().values() for name in pages]
    there = [path.name for path in DOCS.glob("*.md")]
    assert sorted(name for name in named if name.endswith(".md") and "/" not in name) == sorted(there)
    assert {name.rstrip("/") for name in named if name.endswith("/")} == set(FOLDERS)


def test_the_users_path_is_short():
    words = {
        path.name: sum(WORD.search(word) is not None for word in CODE.sub("", path.read_text()).split())
        for path in users_path()
    }
    assert sum(words.values()) <= MOST_WORDS, "say it shorter, or move measurements to docs/performance.md or Findings"


def test_the_readme_fits_a_screen_and_its_scenario_is_planned(tmp_path):
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= README_LINES
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert len(text.splitlines()) == 12
    (tmp_path / "noisy.yaml").write_text(text)
    assert len(scenario.cells(scenario.load(str(tmp_path / "noisy.yaml")))) == 30


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("limitations.md", f"at most {MOST_CELLS:,} cells"),
        ("scale.md", f"at most {MOST_CELLS:,} cells"),
        ("scenarios.md", f"at most {MOST_CELLS:,} cells"),
        ("limitations.md", f"at most {MOST} nodes and {MOST} links"),
        ("write-a-topology.md", f"at most {MOST} nodes and {MOST} links"),
        ("mininet.md", f"more than {MOST_NODES} nodes or {MOST_LINKS} links"),
        ("platforms.md", f"has {NEEDED_BYTES // 10**6} MB"),
        ("troubleshooting.md", f"a cell needs {NEEDED_BYTES // 10**6} MB"),
        ("cli.md", f"a cell costs {START_S} s and {PACKET_S * 1e6:.0f} µs of a core for each packet"),
        ("scale.md", f"{START_S} s, and {PACKET_S * 1e6:.0f} µs for each packet of data"),
    ],
)
def test_limits_and_costs_are_those_of_the_code(name, fact):
    assert fact in " ".join(page(name).split())


def test_every_check_of_doctor_has_its_way_out():
    source = (ROOT / "src/scpslab/engine/findings.py").read_text()
    checks = set(re.findall(r'Finding\(\s*"([a-z][^"]+)"', source)) | set(
        re.findall(r'^    name(?:, size)? = "([^"]+)"', source, re.MULTILINE)
    )
    rows = set(re.findall(r"^\| ([^|`]+?) \|", page("troubleshooting.md"), re.MULTILINE))
    assert len(checks) >= 16
    # Nothing is missing where there are cores.
    assert checks - rows == {"cores"}


def test_what_the_grader_finds_and_writes_is_explained():
    assert [code for code in Code if f"`{code}`" not in page("grading.md")] == []
    assert [name for name in FORMATS if f"`{name}`" not in page("grading.md")] == []


def test_variables_that_users_set_are_read():
    listed = set(re.findall(r"^\| `(SCPSLAB_\w+)`", page("cli.md"), re.MULTILINE))
    source = "".join(path.read_text() for folder in ("src", "tools/build") for path in (ROOT / folder).rglob("*.py"))
    assert len(listed) >= 6
    assert listed <= set(re.findall(r"SCPSLAB_[A-Z_]+", source))


@pytest.mark.parametrize("name", ["compared.md", "course-measured.md"])
def test_every_statement_of_a_comparison_has_its_source(name):
    text = page(name)
    table, _, sources = text.partition("## Sources\n")
    listed = set(re.findall(r"^\| ([A-Z]\d) \|", sources, re.MULTILINE))
    assert set(re.findall(r"\[([A-Z]\d)\]", table)) == listed


@pytest.mark.parametrize(
    "shown", ["", "…\n", "one 100 two\n", "one 110 two\nend\n", "│ 3.0e-6 │ x │\n", "one … two\n…\nend\n", "━━━┳━\n"]
)
def test_what_was_printed_may_differ_a_little(shown):
    assert agree(shown, "one 100 two\n│   3e-06 │    x │\n━━━━━━┳━\nbetween\nend\n")


@pytest.mark.parametrize(
    "shown", ["one 200 two\n", "one 100\n", "end\none 100 two\n", "three\n", "one … three\n", "│ 3e-05 │ x │\n"]
)
def test_what_was_not_printed_is_found(shown):
    assert not agree(shown, "one 100 two\n│   3e-06 │    x │\n━━━━━━┳━\nbetween\nend\n")


PLAYBOOKS = Path(__file__).parents[2] / "playbooks"


def files() -> dict[str, str]:
    return {
        str(file.relative_to(PLAYBOOKS)): file.read_text()
        for file in PLAYBOOKS.rglob("*.yml")
        if not {"inventory"} & set(file.parts)
    }


def test_what_site_replaces_is_what_remove_gives_back():
    kept = {found for text in files().values() for found in re.findall(r"scps_kept: (\S+)", text)}
    assert kept == {"/etc/motd", "/etc/docker/daemon.json"}
    assert f"remove_files: [{', '.join(sorted(kept, reverse=True))}]" in files()["remove.yml"]
    assert {"services", "docker-group"} <= set(
        re.findall(r"/var/lib/scpslab-before/([a-z-]+)\n", "".join(files().values()))
    )


COURSE = ROOT / "docs" / "course"
DECKS = sorted((COURSE / "slides").glob("week-*.md"))
SYLLABUS = (COURSE / "syllabus.md").read_text()
# The drawings that `make slides` makes.
DRAWN = re.findall(r"^figure ([\w-]+) ", (ROOT / "tools/slides").read_text(), re.MULTILINE)
IMAGE = re.compile(r"!\[\]\(([^)]+)\)")
FIGURE = re.compile(r'<img [^>]*src="figures/([\w-]+)\.png">')


def slides(deck: Path) -> list[str]:
    """The texts of a deck's slides, each with its heading."""
    return re.split(r"^# ", deck.read_text(), flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("deck", DECKS, ids=lambda deck: deck.stem)
def test_a_deck_has_its_licence_slides_with_content_and_drawings_that_exist(deck):
    assert deck.read_text().startswith("<!-- SPDX-License-Identifier: CC-BY-4.0 -->\n")
    assert 8 <= len(slides(deck)) <= 14
    assert [slide for slide in slides(deck) if len(slide.split()) < 8] == []
    assert [image for image in IMAGE.findall(deck.read_text()) if not (deck.parent / image).is_file()] == []


@pytest.mark.parametrize("deck", DECKS, ids=lambda deck: deck.stem)
def test_a_deck_asks_for_a_prediction_before_it_runs_commands_that_exist(deck):
    typed = [shlex.split(line) for line in re.findall(r"^\$ \./scpslab (.+)$", deck.read_text(), re.MULTILINE)]
    assert typed
    assert "> " in deck.read_text().partition("$ ./scpslab")[0]
    for command, *words in typed:
        assert command in COMMANDS, command
        if command == "run":
            name, *options = words
            assert options[::2] == ["--set"] * (len(options) // 2)
            assert scenario.cells(scenario.load(str(ROOT / name) if name.endswith(".yaml") else name, options[1::2]))
        elif command == "docs":
            assert (ROOT / "docs" / f"{words[0]}.md").is_file()


def test_every_figure_is_shown_once():
    shown = [name for deck in DECKS for name in FIGURE.findall(deck.read_text())]
    assert sorted(shown) == sorted(DRAWN)


def test_the_plans_have_every_deck_and_every_assignment():
    short, _, long = SYLLABUS.partition("## Twelve weeks")
    assert [deck.stem for deck in DECKS] == re.findall(r"\| (week-[\w-]+) \|", short)
    assert [name for name in names() if name not in long] == []
    assert "CC BY 4.0" in SYLLABUS
