"""Pages whose files and commands are followed as written, outside of the clone, and what `scpslab new` copies."""

import os
import re
import shutil
import subprocess

import pytest

from tests.lab.command import scpslab
from tests.lab.pages import DOCS, FENCE, ROOT, File, follow, save, steps, type_in

PAGES = ("write-a-topology", "write-a-figure", "results-in-pandas-and-r")
PNG = b"\x89PNG"
HAS_R = shutil.which("Rscript") is not None
HAS_PANDAS = subprocess.run(["python3", "-c", "import pandas, scipy"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("name", ["demo", "transfer", "congestion", "bufferbloat"])
def test_a_new_scenario_completes(run, name):
    result = run(f"start/{name}:test").ended
    assert result[0] > 0
    assert result[1:] == (0, 0)


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "tour.md", DOCS / "tutorial.md"])
def test_what_a_newcomer_sees_first_is_printed_to_the_digit(page, tmp_path):
    assert not (wrong := follow(page, tmp_path, as_close_as=0)), "\n".join(wrong)


@pytest.mark.parametrize("page", ["compare-transports", "teaching", "assignments", "mininet"])
def test_a_page_s_commands_do_what_the_page_says(page, tmp_path):
    assert not (wrong := follow(DOCS / f"{page}.md", tmp_path)), "\n".join(wrong)
    assert page != "mininet" or (tmp_path / "kept/records/accounting.jsonl").is_file()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder in which the pages have been followed, one after the other, and what the commands printed."""
    folder = tmp_path_factory.mktemp("own")
    environment = {"PATH": f"{ROOT}:{os.environ['PATH']}"}
    # Modules with these names are not taken from the folder in which scpslab is called.
    (folder / "yaml.py").write_text("raise SystemExit('found yaml.py of the current folder')\n")
    printed = {}
    for page in PAGES:
        for step in steps(DOCS / f"{page}.md"):
            if isinstance(step, File):
                save(step, folder)
            elif not (step.line.startswith("Rscript") and not HAS_R) and not (
                step.line.startswith("python3") and not HAS_PANDAS
            ):
                done = type_in(step, folder, environment)
                assert done.returncode == 0, f"{page}: {step.line}\n{done.stdout}"
                assert "warning:" not in done.stdout, f"{page}: {step.line}\n{done.stdout}"
                printed[step.line] = done.stdout
    return folder, printed


def test_the_topology_is_checked_run_and_verified(place):
    folder, printed = place
    assert "40 cells, all planned" in printed["scpslab validate rover.yaml"]
    assert "was not run" in printed["scpslab verify rover.scpslab.tar.gz"]
    assert "the same bytes in all" in printed["scpslab verify rover.scpslab.tar.gz"]
    (run,) = (folder / "runs").iterdir()
    assert (run / "relay.py").read_bytes() == (folder / "relay.py").read_bytes()


def test_the_message_of_the_page_is_the_program_s(place, tmp_path):
    folder, _ = place
    shown = next(
        text for language, _, text in FENCE.findall((DOCS / "write-a-topology.md").read_text()) if language == "text"
    ).strip()
    for name in ("relay.py", "rover.yaml"):
        (tmp_path / name).write_text((folder / name).read_text())
    lines = (tmp_path / "relay.py").read_text().replace('p["mtu"]', 'p["mut"]')
    (tmp_path / "relay.py").write_text(lines)
    message = scpslab("validate", "rover.yaml", folder=tmp_path, code=2)
    assert re.sub(r"py:\d+", "py", message.strip()) == re.sub(r"py:\d+", "py", shown)


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
        assert re.search(r"completed +40", printed["python3 means.py"])
        assert (folder / "means.csv").read_text().startswith("stack,delay_ms,mean")
        assert printed["python3 records.py"].startswith("runs/rover-")
    if HAS_R:
        assert (folder / "transfer.png").read_bytes().startswith(PNG)
