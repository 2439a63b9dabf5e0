"""What other programs make of our files: Wireshark, a browser, a shell, git, rsync; and the lab's loop of theirs."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scpslab.analysis.lost_packets import find_losses
from scpslab.analysis.report import render, write_report
from scpslab.analysis.run import open_cell
from scpslab.cli.app import program
from scpslab.core.installation import commit_of, version
from scpslab.core.project import ROOT
from scpslab.lab.loop import Loop


def listed(name: str) -> list[str]:
    """A list of the Vagrantfile."""
    return json.loads(re.search(rf"^ *{name} = (\[.*\])$", (ROOT / "Vagrantfile").read_text(), re.MULTILINE)[1])


FAKE = ROOT / "tests" / "data" / "run_with_fake_engine.py"


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_wireshark_reads_the_comments_on_lost_packets(cell, tmp_path):
    out = tmp_path / "packets.pcapng"
    CliRunner().invoke(program(["packets"]), ["packets", str(cell.parents[1]), "--pcapng", str(out)])
    command = [
        "tshark",
        "-r",
        str(out),
        "-Y",
        'frame.comment contains ", corrupt, "',
        "-T",
        "fields",
        "-e",
        "frame.number",
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert len(found) == len(find_losses(open_cell(cell), "a run").lost)


MEASURE = """<script>addEventListener("load", () => {
  const images = [...document.images];
  document.body.dataset.measured = [document.documentElement.scrollWidth, innerWidth, images.length, images.filter(i => i.naturalWidth > 0).length].join(" ");
});</script></body>"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed (apt-get install chromium)")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_a_report_on_a_phone_and_a_desk(campaign_dir, tmp_path, width):
    """No error on the console, every picture decoded, nothing wider than the window."""
    copy = tmp_path / "report.html"
    text = write_report(campaign_dir).read_text()
    # The page allows no script; the copy allows the one that measures.
    text = text.replace("style-src", "script-src 'unsafe-inline'; style-src")
    copy.write_text(text.replace(' loading="lazy"', "").replace("</body>", MEASURE))
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--window-size={width},900"]
    options += [f"--user-data-dir={tmp_path / 'profile'}"]
    options += ["--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom", copy.as_uri()]
    shown = subprocess.run(["chromium", *options], capture_output=True, text=True, timeout=120, check=True)

    scroll_width, window_width, images, decoded = map(
        int, re.search(r'data-measured="([\d ]+)"', shown.stdout)[1].split()
    )
    assert "CONSOLE" not in shown.stderr
    assert scroll_width <= window_width
    assert images == decoded > 0


SETTINGS = (
    "workloads.transfer.size=100 kB",
    "workloads.transfer.segment=512 B",
    "links.hop.forward.rate=1 Mbit/s",
    "links.hop.forward.delay=100 ms",
    "sweep.ber=[0, 1e-05]",
    'title=It\'s $HOME; `more` "words" & <b>',
)


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Runs a line in a shell whose `scpslab` starts no lab; gives the folder `runs` of that line."""
    programs, memory = tmp_path / "bin", tmp_path / "memory"
    programs.mkdir()
    memory.mkdir()
    (programs / "scpslab").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "{memory}" 0 "$@"\n')
    (programs / "scpslab").chmod(0o755)
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "cache"))

    def run(line: str, name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-c", line], cwd=folder, check=True, capture_output=True, env=environment)
        return folder / "runs"

    return run


def plans_of(runs: Path) -> dict[str, str]:
    return {str(path.relative_to(runs)): path.read_text() for path in runs.glob("*/cells/*/plan.json")}


@pytest.mark.slow
def test_the_line_in_the_report_gives_the_same_plans_again(shell):
    line = "scpslab run fy97/fig04:test " + " ".join(
        f"--set '{text.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'" for text in SETTINGS
    )
    first = shell(line, "first")
    (run,) = first.iterdir()
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["settings"] == list(SETTINGS)
    assert manifest["program"]["version"] == version()

    page = render(run)
    shown = html.unescape(re.search(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)[1])
    assert shown == manifest["command"]
    assert plans_of(shell(shown, "second")) == plans_of(first) != {}
    assert all(html.escape(text, quote=False).split("&")[0].split('"')[0].split("'")[0] in page for text in SETTINGS)
    assert f"<dt>Program</dt><dd>scpslab {version()}" in page
    assert "This run changed conditions of its scenario, so it decides no finding" in page
    assert "<li>workloads.transfer.segment=512 B</li>" in page
    assert "What the scenario says of itself, without these changes: 4,000,000 bytes" in page


@pytest.mark.slow
def test_a_variant_is_not_described_as_the_whole_scenario(shell):
    (run,) = shell("scpslab run fy97/fig04:test", "runs-of-test").iterdir()
    page = render(run)
    assert "This run changed conditions" not in page
    assert "What the whole scenario says of itself; this is its variant test: 4,000,000 bytes" in page


def git(folder: Path, *words: str) -> str:
    words = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words)
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def test_a_clone_s_commit_is_known_and_whether_the_program_was_changed(tmp_path):
    assert commit_of(tmp_path) is None
    git(tmp_path, "init", "-q")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    found = commit_of(tmp_path)
    assert found is not None
    assert (found.id, found.changed) == (git(tmp_path, "rev-parse", "HEAD"), False)
    (tmp_path / "mine.yaml").write_text("a scenario of the user's")
    assert commit_of(tmp_path) == found
    (tmp_path / "src" / "b.py").write_text("2")
    assert commit_of(tmp_path).changed
    assert commit_of(tmp_path / "src") is None, "a folder in a clone of something else"


def test_scripts_have_unix_line_ends_on_every_system():
    asked = subprocess.run(
        ["git", "check-attr", "eol", "--", "scpslab", "tools/packages", "playbooks/site.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.rsplit(": ", 1)[1] for line in asked.stdout.splitlines()] == ["lf"] * 3


@pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")
def test_what_was_made_and_changed_inside_stays(tmp_path):
    here, inside = tmp_path / "clone", tmp_path / "machine"
    for folder in (here, inside):
        (folder / "scenarios").mkdir(parents=True)
    (inside / "mine").mkdir()
    for name, in_clone_s, in_machine_s in (("changed.yaml", 100, 200), ("pulled.yaml", 300, 200)):
        for folder, time_s in ((here, in_clone_s), (inside, in_machine_s)):
            (folder / "scenarios" / name).write_text(folder.name)
            os.utime(folder / "scenarios" / name, (time_s, time_s))
    (here / "mine").mkdir()
    (here / "mine" / "own.yaml").write_text("clone")
    (inside / "mine" / "own.yaml").write_text("machine")
    (inside / "scenarios" / "own.yaml").write_text("machine")
    without = [f"--exclude={name}" for name in listed("left_out")]
    subprocess.run(["rsync", *listed("copying"), *without, f"{here}/", f"{inside}/"], check=True)
    found = {str(file.relative_to(inside)): file.read_text() for file in inside.rglob("*.yaml")}
    own = {"mine/own.yaml": "machine", "scenarios/own.yaml": "machine"}
    assert found == own | {"scenarios/changed.yaml": "machine", "scenarios/pulled.yaml": "clone"}


def test_output_and_exits_wake_the_lab_s_loop():
    loop, lines, codes = Loop(), [], []
    process = subprocess.Popen(["sh", "-c", "echo one; exit 3"], stdout=subprocess.PIPE)
    loop.on_lines(process.stdout, lines.append)
    loop.on_exit(process, codes.append)
    loop.run_until(lambda: bool(codes) and bool(lines))

    assert (lines, codes) == (["one"], [3])
