"""`scpslab mn`: files and options that are none are refused before a guest starts; what a script said is told."""

import os

import pytest

from scpslab.cli import mn
from scpslab.lab.place import END_OF_SCRIPT
from scpslab.runs import CellFiles

UTF_8 = "which is not UTF-8; expected text. Save the file as UTF-8."
LONG = "found more than 65536 characters; expected at most that many, because a plan holds the text. Shorten the file."
A_FILE = "expected a file with at most 65536 characters. Correct the path."
CONTENTS = {
    "latin.py": b"# first\n# caf\xe9\n",
    "marked.py": b"\xef\xbb\xbf# first\n\xff",
    "nul.py": b"a = 1\nb\0",
    "long.py": b"#" * ((1 << 16) + 1),
    "longer.py": "é".encode() * (1 << 18),
    "net.py": b"pass\n",
}
WRONG = {
    "latin.py": f":2: found the byte 0xe9, {UTF_8}",
    "marked.py": f":2: found the byte 0xff, {UTF_8}",
    "nul.py": ":2: found the character NUL; expected text. Remove it.",
    "long.py": f": {LONG}",
    "longer.py": f": found more than {1 << 18} bytes; {A_FILE}",
    "none.py": f": found No such file or directory; {A_FILE}",
    "folder": f": found a folder; {A_FILE}",
    "loop": f": found a link that leads in a circle; {A_FILE}",
    "pipe": f": found no ordinary file; {A_FILE}",
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
@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_no_text_is_refused_by_its_name(scpslab, place, words, name):
    assert scpslab("mn", *words, name) == (2, "", f"error: {name}{WRONG[name]}\n")


def test_text_is_read_as_python_reads_it(place):
    (place / "marked.py").write_bytes(b"\xef\xbb\xbfa = 'caf\xc3\xa9'\r\nb = 1\r\n")
    assert mn._text(place / "marked.py") == "a = 'café'\nb = 1\n"


A_TOPO = "one of the script's topos, with its arguments"


@pytest.mark.parametrize(
    ("option", "value", "shown", "expected"),
    [
        ("--max-wall", "0 s", '"0 s"', "at least 1 s"),
        ("--max-wall", "999 ms", '"999 ms"', "at least 1 s"),
        ("--topo", "", '""', A_TOPO),
        ("--topo", "x" * 400, f'"{"x" * 60}…"', A_TOPO),
        ("--topo", "a\nb", r'"a\nb"', A_TOPO),
    ],
)
def test_an_option_that_is_none_is_refused(scpslab, place, option, value, shown, expected):
    said = f"error: {option}: found {shown}; expected {expected}. Correct the option.\n"
    assert scpslab("mn", "net.py", option, value) == (2, "", said)


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
