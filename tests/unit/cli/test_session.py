"""What a session keeps while it lasts, from a folder that a guest writes and may fill with anything."""

import json
import os
from pathlib import Path

import pytest
import yaml

from scpslab.cli.session import Session, new_folder
from scpslab.core.errors import UsageError

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
