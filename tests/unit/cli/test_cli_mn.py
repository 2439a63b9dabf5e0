"""`scpslab mn`: files and options that are none are refused before a guest starts; what a script said is told."""

import os

import pytest

from scpslab.cli import mn
from scpslab.lab.place import END_OF_SCRIPT
from scpslab.runs import CellFiles
from tests import golden

CONTENTS = {
    "latin.py": b"# first\n# caf\xe9\n",
    "marked.py": b"\xef\xbb\xbf# first\n\xff",
    "nul.py": b"a = 1\nb\0",
    "long.py": b"#" * ((1 << 16) + 1),
    "longer.py": "é".encode() * (1 << 18),
    "net.py": b"pass\n",
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("words", [[], ["net.py", "--commands"]], ids=["script", "commands"])
@pytest.mark.parametrize("name", [*(sorted(set(CONTENTS) - {"net.py"})), "none.py", "folder", "loop", "pipe"])
def test_a_file_that_is_no_text_is_refused_by_its_name(scpslab, place, words, name):
    code, out, err = scpslab("mn", *words, name)
    assert (code, out, err.startswith(f"error: {name}")) == (2, "", True)
    golden.Case("mn: a file that is no text", name).hold(err)


def test_text_is_read_as_python_reads_it(place):
    (place / "marked.py").write_bytes(b"\xef\xbb\xbfa = 'caf\xc3\xa9'\r\nb = 1\r\n")
    assert mn._text(place / "marked.py") == "a = 'café'\nb = 1\n"


@golden.each("mn: options", "case option value")
def test_an_option_that_is_none_is_refused(scpslab, place, case, option, value):
    code, out, err = scpslab("mn", "net.py", option, value)
    assert (code, out) == (2, "")
    case.hold(err)


@pytest.mark.parametrize(
    ("console", "said"),
    [
        (f"{END_OF_SCRIPT}\r\nreboot: System halted\r\n", ""),
        (f"a word\r\n{END_OF_SCRIPT}\r\nreboot: System halted\r\n", "a word\n"),
        ("cut off\r\n", "cut off\n"),
    ],
)
def test_what_a_script_said_is_told_without_the_kernel_s_words(tmp_path, capsys, console, said):
    path = CellFiles(tmp_path).log("console")
    path.parent.mkdir(parents=True)
    path.write_bytes(console.encode())
    assert mn._say(tmp_path) == bool(said)
    assert capsys.readouterr().out == said
