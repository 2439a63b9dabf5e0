"""The pages of cells in a browser: bytes, first paint beside that of an empty page, and frames a second while a person
scrubs.

Usage: studio.py RUN [SECONDS [ZOOM [CELL...]]]. Needs Debian's chromium. Three ways to scrub: the cursor over plots of
the whole cell; the strip with a window of a hundredth of the cell, or what ZOOM halvings leave (all plots are drawn
anew); and play.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.table import Table

from scpslab.analysis.run import open_run
from scpslab.studio.page import RunPages

EMPTY = "<!doctype html><title>empty</title><p>empty</p>"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
ROUNDS, LIMIT_MS = 5, 180_000
# Moves the pointer once a frame, there and back over the middle of an element; frames a second and the longest frame.
SCRUB = """([name, ms]) => new Promise(done => {
  const element = document.querySelector(name), box = element.getBoundingClientRect(), begin = performance.now();
  let [frames, before, longest] = [0, begin, 0];
  const frame = now => {
    const share = 0.5 - 0.4 * Math.cos((now - begin) / 700);
    const place = { clientX: box.left + share * box.width, clientY: box.top + box.height / 2, bubbles: true };
    element.dispatchEvent(new PointerEvent("pointermove", place));
    longest = Math.max(longest, now - before);
    before = now;
    frames += 1;
    if (now - begin < ms) requestAnimationFrame(frame);
    else done([frames * 1000 / (now - begin), longest]);
  };
  requestAnimationFrame(frame);
})"""


def scrubbed(page: Page, name: str, seconds: float) -> str:
    """Frames a second, and the longest frame, while the pointer drags in an element."""
    box = page.locator(name).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 10, box["y"] + 20)
    page.mouse.down()
    rate, longest = page.evaluate(SCRUB, [name, seconds * 1000])
    page.mouse.up()
    return f"{rate:.0f} ({longest:.0f} ms)"


def main() -> None:
    """Prints a line for each cell that has a record of packets."""
    run, (seconds, zoom, *chosen) = open_run(Path(sys.argv[1])), [*sys.argv[2:], *("4", "7")[len(sys.argv[2:]) :]]
    heads = ("cell", "packets", "page", "first paint", "empty page's", "ready", "cursor, frames/s", "strip", "play")
    table = Table(*heads, title=f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])

        def opened(path: Path) -> Page:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(LIMIT_MS)
            page.goto(path.as_uri())
            return page

        empty = Path(folder) / "empty.html"
        empty.write_text(EMPTY)
        for cell in (cell for cell in run.cells if cell.record and cell.id in (chosen or [cell.id])):
            file = Path(folder) / "page.html"
            file.write_text(RunPages([run]).page([cell.id], shown=(0,)).html)
            paints: dict[Path, float] = {}
            for path in (empty, file):
                times = []
                for _ in range(ROUNDS):
                    page = opened(path)
                    while not (painted := page.evaluate(PAINT)):
                        page.wait_for_timeout(20)
                    times.append(painted)
                    page.close()
                paints[path] = sorted(times)[ROUNDS // 2]
            page = opened(file)
            page.wait_for_selector("html[data-ready]", state="attached")
            ready = page.get_attribute("html", "data-ready")
            cursor = scrubbed(page, ".overlay", float(seconds))
            for _ in range(int(zoom)):
                page.keyboard.press("+")
            strip = scrubbed(page, "#cursor", float(seconds))
            page.keyboard.press("Home")
            page.select_option("#speed", "10")
            page.keyboard.press("Space")
            play = scrubbed(page, "h1", float(seconds))
            packets = sum(map(len, cell.record.by_place.values()))
            table.add_row(
                cell.id,
                f"{packets:,}",
                f"{file.stat().st_size / 1000:,.0f} kB",
                f"{paints[file]:.0f} ms",
                f"{paints[empty]:.0f} ms",
                f"{ready} ms",
                cursor,
                strip,
                play,
            )
            page.close()
        browser.close()
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
