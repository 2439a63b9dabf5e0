"""Rosters: names of all kinds are read, and ids that are no folders' names are refused."""

import os

import pytest

from scpslab.core.errors import ScenarioError
from scpslab_course.course.folder import checked_term, parties, read_roster, read_submitters
from tests import golden
from tests.cases import refusal


def complaints(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [line.removeprefix(f"{path}:") for line in refusal(read_roster, path).splitlines()]


def test_names_with_commas_umlauts_and_blanks_are_names(tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes('\ufeffStudent,Name\r\na1,"Müller, Zoë"\r\n\r\nb2, Bo  Li \r\n'.encode())
    assert [(one.id, one.name) for one in read_roster(path)] == [("a1", "Müller, Zoë"), ("b2", "Bo  Li")]
    path.write_text("student;name;group\na1;Müller, Zoë;g\nb2;Bo;g\n")
    assert [(party.name, len(party.members)) for party in parties(read_roster(path))] == [("group/g", 2)]


@golden.each("roster", "case content")
def test_what_is_no_roster_is_told_with_its_line(tmp_path, case, content):
    for word, character in (("NOTHING", ""), ("NUL", "\0"), ("ESC", "\x1b"), ("LONG", "a" * 101)):
        content = content.replace(word, character)
    said = complaints(tmp_path / "r.csv", f"{content}\n" if content else "")
    case.hold("\n".join(said), tmp_path)
    assert "".join(said).isprintable()


def test_a_roster_of_other_bytes_is_told_what_to_save(tmp_path):
    (said,) = complaints(tmp_path / "r.csv", b"student,name\na,M\xfcller\n")
    golden.Case("rosters of bytes", "latin-1").hold(said)


def test_a_missing_or_endless_file_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match="no such file"):
        read_roster(tmp_path / "none.csv")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        with pytest.raises(ScenarioError, match="found no ordinary file; expected a roster, a CSV file"):
            read_roster(tmp_path / name)
    assert "more than 1048576 bytes" in complaints(tmp_path / "r.csv", "student\n" + "a" * (2 << 20))[0]


def test_who_handed_in_is_known_by_a_mac_s_name_of_the_file(tmp_path):
    """It has accents apart from their letters; a CSV file mostly has not."""
    path, archive = tmp_path / "who.csv", tmp_path / "Jose\u0301.tar.gz"
    for written in ("Jos\u00e9.tar.gz", "Jose\u0301.tar.gz", str(archive)):
        path.write_text(f"file,student\n{written},jose\n", encoding="utf-8")
        assert read_submitters(path, [archive]) == {archive: ("jose", None)}


@pytest.mark.parametrize("term", ["", "-x", "_x", "a b", "../x", "2026w\n", "ü", "a" * 41])
def test_a_term_is_that_of_a_course_s_file(term):
    with pytest.raises(ScenarioError, match="expected a letter or digit, then"):
        checked_term(term)
    assert checked_term("2026w_B-1") == "2026w_B-1"
