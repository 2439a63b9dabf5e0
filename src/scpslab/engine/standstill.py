"""Finds out why virtual time stands still: looks from the host at a guest that has reached its wall limit, before the
guest is ended.

A guest's programs are processes of the host, children of its kernel. A program that only computes, or makes one system
call after the other, lets no virtual time pass.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SAMPLE_S = 0.5
# Share of the activity of all processes of a guest in a sample.
MOST = 0.8
# A guest that works normally switches between its programs less often than one program that polls.
POLLS_PER_S = 5000
PAGE_BYTES = 4096
# The strings of a program are on one of its uppermost pages, behind the kernel's own pages.
PAGES_LOOKED_AT = 12
SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
LONGEST_SHOWN = 120


@dataclass(frozen=True)
class Use:
    """The resources that a process has used so far: processor time in clock ticks, and the number of times that it has
    stopped by itself.
    """

    ticks: int
    stops: int


def standstill(kernel: int) -> str:
    """Which activity of a guest lets no virtual time pass, as the rest of a sentence; "" if this cannot be found out.

    Takes half a second.
    """
    before = _uses(kernel)
    time.sleep(SAMPLE_S)
    after = _uses(kernel)
    grown = {
        pid: Use(use.ticks - before[pid].ticks, use.stops - before[pid].stops)
        for pid, use in after.items()
        if pid in before
    }
    programs = {pid: use for pid, use in grown.items() if pid != kernel}
    if not programs:
        return ""
    computes = max(programs, key=lambda pid: programs[pid].ticks)
    if programs[computes].ticks > MOST * sum(use.ticks for use in grown.values()) > 0 and not programs[computes].stops:
        return (
            f"; virtual time stood still, because {_named(computes)} computed without any system call. "
            "Let the program sleep, or wait for something"
        )
    polls = max(programs, key=lambda pid: programs[pid].stops)
    if programs[polls].stops > max(MOST * sum(use.stops for use in programs.values()), POLLS_PER_S * SAMPLE_S):
        return (
            f"; virtual time hardly passed, because {_named(polls)} made system calls without sleeping. "
            "Let the program sleep, or wait for something"
        )
    return ""


def _uses(kernel: int) -> dict[int, Use]:
    found = {}
    for pid in (kernel, *_children(kernel)):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        stops = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)
        found[pid] = Use(int(fields[11]) + int(fields[12]), int(stops[1]) if stops else 0)
    return found


def _children(pid: int) -> Iterator[int]:
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from map(int, tasks.read_text().split())
        except OSError:
            continue


def _named(pid: int) -> str:
    words = command_line(_upper_pages(pid))
    shown = " ".join(" ".join(words).split())
    return f'"{shown if len(shown) <= LONGEST_SHOWN else shown[: LONGEST_SHOWN - 1] + "…"}"' if words else "a program"


def _upper_pages(pid: int) -> Iterator[bytes]:
    """The last pages of a process's mappings, from the uppermost one of the guest's memory on."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            for line in reversed([line for line in lines if " /" in line][-PAGES_LOOKED_AT:]):
                end = int(line.split()[0].partition("-")[2], 16)
                try:
                    memory.seek(end - PAGE_BYTES)
                    page = memory.read(PAGE_BYTES)
                except OSError:
                    continue
                yield page
    except OSError:
        return


def command_line(pages: Iterator[bytes]) -> list[str]:
    """The words of a program's command line: the first page that ends as Linux begins a stack has them before the
    settings and the program's file.
    """
    for page in pages:
        words = [part.decode(errors="replace") for part in page.rstrip(b"\0").split(b"\0") if part]
        settings = [index for index, word in enumerate(words) if SETTING.match(word)]
        # The command line lies between the name of the machine, which follows random bytes, and the first setting.
        first = next((index for index, word in enumerate(words, 1) if word.endswith(os.uname().machine)), None)
        if not settings or first is None or not words[-1].startswith(("/", "./")):
            continue
        return words[first : next((index for index in settings if index >= first), first)] or words[-1:]
    return []
