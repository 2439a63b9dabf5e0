"""Labels of a stranger with characters that terminals obey: shown harmlessly in tables, warnings, pages and pictures."""

import csv
import warnings
from xml.etree import ElementTree as ET

import pytest

from scpslab.analysis.figures.canvas import Picture, save
from scpslab.analysis.figures.recipe import Words
from scpslab.analysis.output import pages
from scpslab.cli.terminal import tell_warnings

EVIL = "\x1b]0;owned\x07\u202egpj"
OBEYED = ("\x1b", "\x07", "\u202e")


@pytest.fixture
def stranger_s(run_dir, scpslab):
    """A run whose table of results was edited."""
    scpslab("results", run_dir)
    lines = list(csv.reader((run_dir / "results.csv").open()))
    at = lines[0].index("cell") + 1
    for line in lines[1:]:
        line[at] += EVIL
    with (run_dir / "results.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
    return run_dir


def test_a_table_shows_them_escaped(stranger_s, scpslab):
    for format_ in ("table", "csv", "json"):
        code, out, err = scpslab("results", stranger_s, "--format", format_)
        assert (code, [one for one in OBEYED if one in out + err]) == (0, [])
        assert "x1b" in out


def test_a_picture_is_well_formed_and_has_none(tmp_path):
    figure = Picture(Words(f"title {EVIL}", "conditions", f"caption {EVIL}"))
    figure.text(0.5, 0.5, EVIL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (path,) = save(figure, tmp_path, "one", ("svg",))
    text = path.read_text()
    assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 (our own)
    assert [one for one in OBEYED if one in text] == []


def test_a_page_shows_them_escaped(tmp_path):
    page = pages(tmp_path).from_string("<p>{{ said }}</p>").render(said=f"<b>{EVIL}")
    assert page == "<p>&lt;b&gt;\\x1b]0;owned\\x07\\u202egpj</p>"


def test_a_library_s_warning_is_one_of_ours(monkeypatch, capsys):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    tell_warnings()
    warnings.showwarning(UserWarning(f"Glyph 27 ({EVIL}) missing"), UserWarning, "file", 1)
    assert capsys.readouterr().err == "warning: Glyph 27 (\\x1b]0;owned\\x07\\u202egpj) missing\n"
