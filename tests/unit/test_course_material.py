"""Syllabus and slides: what they name exists, and they say their licence."""

import re
import shlex
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.cli.app import COMMANDS
from scpslab_course.course.assignment import names

ROOT = Path(__file__).parents[2]
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
