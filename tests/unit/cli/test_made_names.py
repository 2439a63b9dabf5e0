"""Names of what a command makes: characters that cannot be printed are refused before anything is made."""

import pytest

COMMANDS = {
    "export": ("export", "last", "--out"),
    "grade": ("grade", "a.submission.tar.gz", "--out"),
    "leaderboard": ("grade", "a.submission.tar.gz", "--leaderboard"),
    "texts": ("grade", "a.submission.tar.gz", "--texts"),
    "review": ("grade", "a.submission.tar.gz", "--review"),
    "gradescope": ("course", "gradescope", "first-steps", "--wheel", "a.whl", "--roster", "r.csv", "--out"),
    "submit": ("assignment", "submit", "--out"),
    "course": ("course", "new"),
    "new": ("new",),
    "run": ("run", "links/transfer", "--out"),
    "keep": ("verify", "a.tar.gz", "--keep"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31m", "a\u202eb"], ids=["line feed", "escape", "direction"])
def test_a_name_that_cannot_be_printed_is_refused(scpslab, tmp_path, monkeypatch, command, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tar.gz").write_text("")
    code, _, said = scpslab(*command, name)

    assert code != 0
    assert "found characters that cannot be printed; expected" in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]
