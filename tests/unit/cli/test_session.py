"""What a session keeps while it lasts, from a folder that a guest writes and may fill with anything. What a person did
at the prompt is a scenario, and means the same there. `scpslab mn`: files and options that are none are refused
before a guest starts; what a script said is told.
"""

import json
import os
from pathlib import Path

import pytest
import yaml

from scpslab import scenario
from scpslab.cli import mn
from scpslab.cli.shell import Session, new_folder, transcript
from scpslab.core import units
from scpslab.core.errors import UsageError
from scpslab.lab.place import END_OF_SCRIPT
from scpslab.plan import write
from scpslab.runs import CellFiles
from scpslab.scenario import planning
from tests import golden
from tests.cases import refusal

RUN = {"at": "1 s", "do": "run", "node": "h1", "command": "ping 10.0.0.2"}
LINK = {"at": "2 s", "do": "link", "link": "hop", "ber": 1e-05}


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out" / "captures").mkdir(parents=True)
    return tmp_path / "out"


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path / "kept", "point_to_point", {})


def events(session):
    """What the transcript of a session has, as the lab notes it."""
    found = yaml.safe_load((session.folder / "transcript.yaml").read_text())["events"]
    return [{"do": "run" if "node" in step else "link", **step} for step in found]


def test_steps_are_there_as_soon_as_their_line_is_whole(out, session):
    session.update(out)
    assert list(session.folder.iterdir()) == []
    lines = json.dumps(RUN) + "\n" + json.dumps(LINK)
    for length, steps in ((len(lines) - 5, [RUN]), (len(lines), [RUN]), (len(lines) + 1, [RUN, LINK])):
        (out / "transcript.jsonl").write_text((lines + "\n")[:length])
        session.update(out)
        assert events(session) == steps


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ([RUN, {"at": "3 s", "do": "interrupted"}, LINK], [{**RUN, "required": False}, LINK]),
        ([LINK, RUN, {"at": "3 s", "do": "not found"}, RUN], [LINK, RUN]),
    ],
    ids=["nothing waits for a command that was interrupted", "one that is not there is left out"],
)
def test_what_became_of_a_command_counts(out, session, steps, kept):
    (out / "transcript.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    session.update(out)
    assert events(session) == kept


def test_a_folder_that_nobody_named_is_made_for_a_capture_only(out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "session-1").mkdir()
    session = Session(new_folder(), "point_to_point", {}, is_asked_for=False)
    (out / "transcript.jsonl").write_text(json.dumps(RUN) + "\n")
    session.update(out)
    assert not session.folder.exists()
    (out / "captures" / "h1.pcap").write_bytes(b"head")
    session.update(out)
    session.update(out)
    assert sorted(path.name for path in (tmp_path / "session-2").iterdir()) == ["h1.pcap", "transcript.yaml"]
    assert events(session) == [RUN]


def test_captures_grow_with_the_lab_s(out, session):
    capture = out / "captures" / "h1.pcap"
    for piece in (b"head", b"", b"packet", b"packet"):
        with capture.open("ab") as file:
            file.write(piece)
        session.update(out)
        assert (session.folder / "h1.pcap").read_bytes() == capture.read_bytes()
    assert session.files == [session.folder / "h1.pcap"]


@pytest.mark.parametrize("left", ["h1.pcap", "transcript.yaml", "net.py"])
def test_a_named_folder_loses_nothing_of_an_earlier_session(tmp_path, monkeypatch, left):
    (tmp_path / "kept").mkdir()
    (tmp_path / "net.py").write_text("mine")
    (tmp_path / "kept" / left).write_text("earlier")
    with pytest.raises(UsageError, match=f"found .*{left}; expected a folder without a session"):
        Session(tmp_path / "kept", str(tmp_path / "net.py"), {})
    assert (tmp_path / "kept" / left).read_text() == "earlier"
    # The user's own file beside which the session is kept is not another one.
    monkeypatch.chdir(tmp_path)
    assert Session(Path(), "./net.py", {}).folder == Path()


def test_sessions_of_one_place_have_folders_of_their_own(out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sessions = [Session(new_folder(), "point_to_point", {}, is_asked_for=False) for _ in range(2)]
    for number, session in enumerate(sessions):
        (out / "transcript.jsonl").write_text(json.dumps(RUN) + "\n")
        (out / "captures" / "h1.pcap").write_bytes(b"%d" % number)
        session.update(out)
        session.update(out)
    assert [path.read_bytes() for path in sorted(tmp_path.glob("session-*/h1.pcap"))] == [b"0", b"1"]
    assert [events(session) for session in sessions] == [[RUN], [RUN]]


def test_links_and_pipes_of_a_guest_are_not_opened(out, session, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(json.dumps(RUN) + "\n")
    (out / "transcript.jsonl").symlink_to(secret)
    (out / "captures" / "h1.pcap").symlink_to(secret)
    os.mkfifo(out / "captures" / "h2.pcap")
    (out / "captures" / "transcript.yaml").write_text("not a capture")
    session.update(out)
    assert list(session.folder.iterdir()) == []

    (out / "captures").rename(tmp_path / "elsewhere")
    (out / "captures").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "h3.pcap").write_bytes(b"packet")
    session.update(out)
    assert list(session.folder.iterdir()) == []


STEPS = [
    {"at": "220 ms", "do": "run", "node": "h1", "command": "iperf3 -c 10.0.0.2 -t 12", "required": False},
    {"at": "2.385 s", "do": "link", "link": "hop", "direction": "forward", "rate": "1 Mbit/s"},
    {"at": "2.412 s", "do": "link", "link": "hop", "ber": 1e-05},
    {"at": "4.459 s", "do": "link", "link": "hop", "state": "down"},
]


def plan_of(tmp_path, steps):
    path = tmp_path / "transcript.yaml"
    path.write_text(transcript(steps, "point_to_point", {"links": {"hop": {"forward": {"rate": "4 Mbit/s"}}}}, {}))
    loaded = scenario.load(str(path))
    (cell,) = scenario.cells(loaded)
    return write(planning.plan(cell))


def test_a_transcript_is_a_scenario_with_the_same_steps(tmp_path):
    """Commands, and changes of one direction or both, each with errors of its own."""
    plan = plan_of(tmp_path, STEPS)
    run, rate, ber, down = plan["cell"]["events"]

    assert (run["node"], run["command"], run["required"]) == ("h1", STEPS[0]["command"], False)
    assert (rate["directions"], rate["change"], rate["value"]) == (["forward"], "rate", 10**6)
    assert (ber["directions"], ber["value"], len(set(ber["seeds"]))) == (["forward", "return"], 1e-5, 2)
    assert (down["change"], down["value"], down["t_ns"]) == ("state", "down", units.parse("duration", "4.459 s"))
    assert plan["network"]["links"][0]["directions"][0]["rate_bps"] == 4 * 10**6


@golden.each("step of a transcript")
def test_steps_that_cannot_be_are_refused(case, tmp_path):
    """Before anything runs, with the place and what to do."""
    case.hold(refusal(plan_of, tmp_path, [yaml.safe_load(case)]), tmp_path)


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
