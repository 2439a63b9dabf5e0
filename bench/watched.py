"""What watching costs a lab on the wall clock: the round trips of echoes, without and with a browser at its page.

Usage: watched.py [ROUNDS [COUNT]]. Needs Debian's chromium. A round is COUNT echoes over 20 ms each way beside a bulk
transfer of 10 Mbit/s, first with nobody at the page, then with the page open, drawing and playing.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import numpy as np
from playwright.sync_api import APIRequestContext, Page, sync_playwright
from rich.console import Console
from rich.table import Table

PROGRAM = Path(__file__).parents[1] / "scpslab"
SETTINGS = ("forward.delay=20 ms", "return.delay=20 ms", "forward.rate=20 Mbit/s", "return.rate=20 Mbit/s")
DUE_MS, POLL_S, LIMIT_S = 40.0, 1.0, 120


@contextmanager
def lab() -> Iterator[str]:
    """A lab with a page; its address."""
    said = [word for setting in SETTINGS for word in ("--set", f"links.hop.{setting}")]
    command = [str(PROGRAM), "studio", "--live", "point_to_point", *said]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def echoes(asking: APIRequestContext, address: str, count: int) -> list[float]:
    """Round trips of echoes in ms, beside a transfer."""
    lines = ("h2 iperf3 -s -D", f"h1 iperf3 -c h2 -u -b 10M -t {count // 10 + 2} >/dev/null &")
    for line in (*lines, f"h1 ping -i 0.1 -c {count} h2"):
        answer = asking.post(
            urljoin(address, "live"), data={"line": line}, headers={"Origin": urljoin(address, "/")[:-1]}
        )
        assert answer.ok, answer.text()
    ends = time.monotonic() + count / 10 + LIMIT_S
    while "rtt min" not in (text := asking.get(urljoin(address, "live?after=0&version=")).json()["text"]):
        if time.monotonic() > ends:
            raise SystemExit(f"the echoes did not end: {text[-500:]}")
        time.sleep(POLL_S)
    return [float(one) for one in re.findall(r"time=([\d.]+) ms", text)]


def main() -> None:
    """Prints how late echoes are, watched and not."""
    rounds, count = map(int, [*sys.argv[1:], *("3", "200")[len(sys.argv[1:]) :]])
    late: dict[str, list[float]] = {"nobody": [], "a page": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        asking = playwright.request.new_context()
        for _ in range(rounds):
            for who, found in late.items():
                with lab() as address:
                    page: Page | None = browser.new_page() if who == "a page" else None
                    if page:
                        page.goto(address)
                    found.extend(one - DUE_MS for one in echoes(asking, address, count))
                    if page:
                        page.close()
        browser.close()
    heads = ("watched by", "echoes", "late, median", "95 %", "99 %", "most")
    table = Table(*heads, title=f"load {os.getloadavg()[0]:.1f}")
    for who, found in late.items():
        shown = [f"{value:.3f} ms" for value in (*np.percentile(found, [50, 95, 99]), max(found))]
        table.add_row(who, str(len(found)), *shown)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
