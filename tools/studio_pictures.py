"""Pictures of the studio for README: two cells of the demo that meet the same bit errors (`make studio-pictures`).

Needs Debian's chromium. The pictures follow the page and the cells' bytes; fonts are those of the machine.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "images"
CELLS = {"studio-cubic.png": "link=biterrors,stack=CUBIC,r1", "studio-scps.png": "link=biterrors,stack=SCPS-TP,r1"}
# The first seconds, the cursor where losses stand, and so much of the page that the first two plots end it.
PLACE = "#from=0&to=22000000000&at=9000000000"
WIDTH, LIMIT_MS = 860, 60_000
HEIGHT_OF_PLOTS = 382


def laboratory(*words: object) -> str:
    """What a command of the laboratory prints."""
    return subprocess.run([ROOT / "scpslab", *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout


def top_of(page: Page, name: str) -> float:
    """Where the first element of a selector begins."""
    box = page.locator(name).first.bounding_box()
    assert box is not None
    return box["y"]


def main() -> None:
    """Writes the pictures from a run of the demo."""
    run = sys.argv[1] if sys.argv[1:] else laboratory("demo").split()[-1]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, cell in CELLS.items():
            file = Path(folder) / "cell.html"
            laboratory("studio", run, cell, "--export", file)
            page = browser.new_page(viewport={"width": WIDTH, "height": 1600})
            page.set_default_timeout(LIMIT_MS)
            page.goto(file.as_uri() + PLACE)
            page.wait_for_selector("html[data-ready]", state="attached")
            page.wait_for_timeout(500)
            top = top_of(page, "section h2") - 14
            high = top_of(page, ".chart") + HEIGHT_OF_PLOTS - top
            page.screenshot(path=PICTURES / name, clip={"x": 0, "y": top, "width": WIDTH, "height": high})
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
