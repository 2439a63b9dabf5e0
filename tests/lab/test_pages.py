"""The pages that begin with a folder of one's own: their files and commands, as written, outside of the clone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("write-a-topology", "write-a-figure", "results-in-pandas-and-r")
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PNG = b"\x89PNG"
HAS_R = shutil.which("Rscript") is not None
HAS_PANDAS = subprocess.run(["python3", "-c", "import pandas, scipy"], capture_output=True, check=False).returncode == 0

pytestmark = pytest.mark.lab


def blocks(page):
    """Language, file and text of every block of a page."""
    return BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder in which the pages have been followed, one after the other, and what the commands printed."""
    folder = tmp_path_factory.mktemp("own")
    environment = {**os.environ, "PATH": f"{ROOT}:{os.environ['PATH']}"}
    # Modules with these names are not taken from the folder in which scpslab is called.
    (folder / "yaml.py").write_text("raise SystemExit('found yaml.py of the current folder')\n")
    printed = {}
    for page in PAGES:
        for language, name, text in blocks(page):
            if name:
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text)
            if language != "sh":
                continue
            for line in text.splitlines():
                if (line.startswith("Rscript") and not HAS_R) or (line.startswith("python3") and not HAS_PANDAS):
                    continue
                done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)
                assert done.returncode == 0, f"{page}: {line}\n{done.stdout}\n{done.stderr}"
                assert "warning:" not in done.stderr, f"{page}: {line}\n{done.stderr}"
                printed[line] = done.stdout + done.stderr
    return folder, printed


def test_every_page_has_files_and_commands():
    for page in PAGES:
        found = blocks(page)
        assert [language for language, name, _ in found if name]
        assert "sh" in [language for language, _, _ in found]


def test_the_topology_is_checked_run_and_verified(place):
    folder, printed = place
    assert "20 cells, all planned" in printed["scpslab validate rover.yaml"]
    assert "was not run" in printed["scpslab verify rover.scpslab.tar.gz"]
    assert "the same bytes in all" in printed["scpslab verify rover.scpslab.tar.gz"]
    (run,) = (folder / "runs").iterdir()
    assert (run / "relay.py").read_bytes() == (folder / "relay.py").read_bytes()


def test_the_message_of_the_page_is_the_program_s(place, tmp_path):
    folder, _ = place
    shown = next(text for language, _, text in blocks("write-a-topology") if language == "text").strip()
    for name in ("relay.py", "rover.yaml"):
        (tmp_path / name).write_text((folder / name).read_text())
    lines = (tmp_path / "relay.py").read_text().replace('p["data_rate"]', 'p["rate"]')
    (tmp_path / "relay.py").write_text(lines)
    done = subprocess.run([ROOT / "scpslab", "validate", "rover.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert re.sub(r"py:\d+", "py", done.stderr.strip()) == re.sub(r"py:\d+", "py", shown)


def test_figures_and_claims_of_the_page_are_drawn_and_tested(place):
    folder, printed = place
    (run,) = (folder / "runs").iterdir()
    pictures = {path.name for path in (run / "figures").iterdir() if path.read_bytes().startswith(PNG)}
    assert {"goodput.png", "window.png"} <= pictures
    assert (run / "figures" / "goodput.pdf").is_file()
    assert "rover,delay-costs,headline,period,reproduced" in printed["scpslab claims last --paper rover --format csv"]
    assert "goodput" in (run / "report.html").read_text()


def test_pandas_and_r_read_the_results(place):
    folder, printed = place
    if not HAS_PANDAS and not HAS_R:
        pytest.skip("neither pandas nor R is installed")
    if HAS_PANDAS:
        assert re.search(r"completed +20", printed["python3 means.py"])
        assert (folder / "means.csv").read_text().startswith("stack,delay_ms,mean")
        assert printed["python3 records.py"].startswith("runs/rover-")
    if HAS_R:
        assert (folder / "transfer.png").read_bytes().startswith(PNG)
