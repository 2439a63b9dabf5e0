"""`scpslab docs`, and the pages that messages, help and handouts name."""

import re

import pytest

from scpslab.cli import docs, terminal
from scpslab.cli.tables import plain_console
from scpslab.cli.terminal import for_readers
from scpslab.core.project import ROOT

CLI = ROOT / "docs" / "cli.md"
NAMED = re.compile(r"(?<![\w./-])docs/([\w/-]+\.md)")
COMMAND = re.compile(r"scpslab docs ([\w/-]+)(?:#([\w-]+))?")


def test_without_a_page_all_pages_are_listed_with_their_titles(scpslab):
    code, out, _ = scpslab("docs")
    assert code == 0
    listed = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in out.splitlines()[1:])
    assert listed["cli"] == "Command line and prompt"
    assert listed["protocol/scps-tp"].startswith("SCPS-TP")
    top = {path.stem for path in CLI.parent.glob("*.md")} - {"index"}
    assert top <= set(listed)


@pytest.mark.parametrize("page", ["cli", "cli.md"])
def test_a_page_is_markdown_where_no_terminal_is(scpslab, page):
    assert scpslab("docs", page) == (0, CLI.read_text(), "")


def test_a_heading_gives_the_part_below_it(scpslab):
    code, out, _ = scpslab("docs", "cli#exit-codes")
    assert code == 0
    assert out.startswith("## Exit codes\n")
    assert "## Error messages" not in out
    assert "| 130 | interrupted" in out


def test_the_last_heading_goes_to_the_end(scpslab):
    assert CLI.read_text().endswith(scpslab("docs", "cli#error-messages")[1])


def test_the_path_is_that_of_the_file(scpslab):
    assert scpslab("docs", "protocol/scps-tp", "--path") == (0, f"{ROOT / 'docs/protocol/scps-tp.md'}\n", "")


def test_a_terminal_gets_no_markdown(scpslab, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    _, out, _ = scpslab("docs", "cli", "--print")
    assert "Exit codes" in out
    assert "\n## Exit codes\n" not in out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see docs/platforms.md", "see scpslab docs platforms"),
        ("(docs/scale.md#certificates).", "(scpslab docs scale#certificates)."),
        ("docs/mine.md:3: found", "docs/mine.md:3: found"),
        ("/home/me/docs/cli.md: found", "/home/me/docs/cli.md: found"),
    ],
)
def test_messages_name_the_command_that_shows_a_page(capsys, text, shown):
    assert for_readers(text) == shown
    terminal.warn(text)
    plain_console(width=100).print(text)
    said = capsys.readouterr()
    assert said.err == f"warning: {shown}\n"
    assert said.out == f"{shown}\n"


def test_pages_that_messages_help_and_handouts_name_are_there():
    sources = [
        path
        for folder in ("src", "assignments", "tools/build", "tools/reference")
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in {".py", ".md", ".yaml"}
    ]
    named = [(path, name) for path in sources for name in NAMED.findall(path.read_text())]
    assert len(named) > 50
    assert [(path, name) for path, name in named if not (ROOT / "docs" / name).is_file()] == []
    pages = dict(docs._pages())
    commands = [
        (path, *found) for path in [*sources, *CLI.parent.glob("*.md")] for found in COMMAND.findall(path.read_text())
    ]
    assert len(commands) > 10
    for path, page, heading in commands:
        assert page in pages, path
        assert not heading or docs._part(pages[page].read_text(), heading, page)
