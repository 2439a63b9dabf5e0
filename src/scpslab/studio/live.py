"""A lab on the wall clock, as its page has it: what was printed and done, and the packets until now.

The lab writes its files while they are read here, and nothing in them is trusted.
"""

from __future__ import annotations

import base64
import os
import shlex
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from scpslab.analysis.run import RunCell
from scpslab.core import units
from scpslab.core.errors import ResultError
from scpslab.core.strict_json import JsonObject
from scpslab.plan import Plan
from scpslab.plan.disciplines import Queue
from scpslab.plan.error_models import BitErrorRate
from scpslab.plan.events import LinkStep
from scpslab.plan.flows import places
from scpslab.plan.links import FOR_EVER_NS
from scpslab.runs import CellFiles
from scpslab.studio.cell import CellData, cell_data
from scpslab.studio.page import Entry, Page

# The newest packets that a page gets again and again, and the end of what was printed.
MOST_PACKETS, MOST_PRINTED = 20_000, 1 << 17
LONGEST_LINE, LARGEST_FILE = 1000, 1 << 28
# After Ctrl-C the terminal forgets what is typed at once.
CTRL_C, ENDS_AFTER_S = b"\x03", 0.5
KEPT = "Kept in {0}. To repeat it in virtual time: scpslab run {0}"


class Live:
    """A session that pages look at and act in. `steps`: those of its transcript; `keep`: keeps it as a scenario."""

    def __init__(
        self, plan: Plan, steps: Sequence[Mapping[str, Any]], keep: Callable[[], Path], folder: Path, about: str
    ) -> None:
        """`folder`: for copies of the lab's files."""
        self.plan, self.steps, self.keep, self.about = plan, steps, keep, about
        self._copies = CellFiles(folder)
        self._copies.packets.parent.mkdir(parents=True)
        self._lock = Lock()
        self._printed, self._gone = b"", 0
        self._type: Callable[[bytes], object] = lambda _keys: None
        self._seen: tuple[int, ...] = ()
        self._made: tuple[tuple[int, ...], CellData] | None = None

    def show(self, printed: bytes) -> None:
        """Takes what the lab has printed."""
        with self._lock:
            self._printed += printed
            left_out = max(0, len(self._printed) - MOST_PRINTED)
            self._printed, self._gone = self._printed[left_out:], self._gone + left_out

    def lend(self, types: Callable[[bytes], object]) -> None:
        """Takes what types into the lab."""
        self._type = types

    def update(self, out: Path) -> None:
        """Copies the newest record of the lab's folder `out`."""
        theirs, own = CellFiles(out), self._copies
        # There may be none yet.
        with suppress(OSError), self._lock:
            self._seen = (_copied(theirs.packets, own.packets), _copied(theirs.states[0], own.states[0]))

    def act(self, said: JsonObject) -> JsonObject:
        """Does what a page asks for: a line for the prompt, Ctrl-C, the session's end, the scenario.

        Raises:
            ValueError: it asks for something else.
        """
        match said:
            case {"line": str(line)} if len(line) <= LONGEST_LINE and line.isprintable():
                self._type(line.encode() + b"\n")
            case {"do": "interrupt"}:
                self._type(CTRL_C)
            case {"do": "end"}:
                self._type(CTRL_C)
                time.sleep(ENDS_AFTER_S)
                self._type(b"exit\n")
            case {"do": "keep"}:
                path = self.keep()
                return {"said": KEPT.format(path), "text": path.read_text(encoding="utf-8")}
            case _:
                raise ValueError(f"found another act; expected a printable line of at most {LONGEST_LINE} characters.")
        return {}

    def state(self, after: int, version: str) -> dict[str, object]:
        """What is new to a page that knows the text until `after` and the data of a version."""
        with self._lock:
            printed, gone = self._printed, self._gone
        begin = min(max(after - gone, 0), len(printed))
        state: dict[str, object] = {"text": printed[begin:].decode("utf-8", "replace"), "at": gone + len(printed)}
        made, data = self.data()
        if made != version:
            columns = base64.b64encode(data.columns).decode()
            state |= {"version": made, "meta": data.meta, "columns": columns, "controls": self.controls()}
        return state

    def page(self) -> Page:
        """The page, with what is there now."""
        network = self.plan.network
        talking = {end.node for link in network.all_links for end in link.ends if end.ip}
        at = places(self.plan)
        hosts = sorted((name for name in network.hosts if name in talking), key=lambda name: at[name])
        entry = Entry(network.topology, ("", ""), "live", data=self.data()[1])
        return Page(f"{network.topology}, live", self.about, [entry], shown=(0,), live={"hosts": hosts}, asks=True)

    def data(self) -> tuple[str, CellData]:
        """The newest packets as a page has them, and their version."""
        key = (*self._seen, len(self.steps))
        if self._made is None or self._made[0] != key:
            self._made = key, self._data()
        return "-".join(map(str, self._made[0])), self._made[1]

    def _data(self) -> CellData:
        changes = tuple(step for step in self._changes() if step.change == "rate")
        plan = replace(self.plan, cell=replace(self.plan.cell, events=changes))
        views: dict[object, Any] = {}
        cell = RunCell(self._copies.path, plan, "completed", "", None, views=views)
        with self._lock:
            try:
                record, states = cell.record, cell.states
            except ResultError:
                record, states = None, ()
        packets = record.by_place if record else {}
        offered = np.sort(np.concatenate([[0], *(one.offered_ns for one in packets.values())]))
        since_ns = int(offered[-MOST_PACKETS]) if len(offered) > MOST_PACKETS else 0
        if record:
            record.by_place = {place: _rows_from(one, one.offered_ns, since_ns) for place, one in packets.items()}
        kept = tuple(_rows_from(one, one.t_ns, since_ns) for one in states if one.t_ns[-1] >= since_ns)
        views |= {"record": record, "states": kept}
        data = cell_data(cell)
        notes = [f"Packets before {since_ns / 1e9:.1f} s are left out here."] if since_ns else []
        for talk in data.meta["conversations"]:  # type: ignore[attr-defined]
            way = talk["data_way"]
            ends = [f"{talk['nodes'][one]} {talk['ends'][one].partition(':')[2]}" for one in (way, 1 - way)]
            talk["owner"] = " → ".join(ends)
        told = {"marks": list(self._marks()), "notes": notes, "links": list(self._links(data.meta["links"]))}
        own = {"id": self.plan.network.topology, "status": "live", "begin_ns": since_ns}
        return CellData({**data.meta, **told, **own}, data.columns)

    def _marks(self) -> Iterator[dict[str, object]]:
        for step in self.steps:
            told = {key: str(value) for key, value in step.items() if key not in ("at", "do", "required")}
            if told.get("command", "").startswith("bash -c "):
                told["command"] = shlex.split(told["command"])[2]
            if words := list(told.values()):
                at_ns = units.parse("duration", str(step["at"]))
                yield {"t_ns": at_ns, "kind": "event", "text": " ".join(words)[:LONGEST_LINE]}

    def _changes(self) -> Iterator[LinkStep]:
        """The changes of links until now."""
        for step in self.steps:
            link = next((one for one in self.plan.network.links if one.name == step.get("link")), None)
            if link is None or step["do"] != "link":
                continue
            names = tuple(one.name for one in link.directions if step.get("direction", one.name) == one.name)
            for change, kind in (("rate", "rate"), ("delay", "duration"), ("ber", ""), ("state", "")):
                if change in step:
                    value = units.parse(kind, str(step[change])) if kind else step[change]
                    at_ns = units.parse("duration", str(step["at"]))
                    yield LinkStep(t_ns=at_ns, link=link.name, directions=names, change=change, value=value)  # type: ignore[arg-type]

    def _links(self, links: Any) -> Iterator[dict[str, Any]]:
        """The links of a page, with the times in which somebody has taken them down."""
        for link in links:
            for way in link["directions"]:
                mine = self._changes_of(link["name"], way["name"])
                states = [(step.t_ns, step.value) for step in mine if step.change == "state"]
                ends = [*(t_ns for t_ns, _ in states[1:]), FOR_EVER_NS]
                spans = zip(states, ends, strict=False)
                way["outages"] += [[t_ns, end] for (t_ns, state), end in spans if state == "down"]
            yield link

    def _changes_of(self, link: str, way: str) -> Iterator[LinkStep]:
        return (step for step in self._changes() if step.link == link and way in step.directions)

    def controls(self) -> list[dict[str, Any]]:
        """What can be set of each direction that has a rate or a delay, and what it is now; the slowest first."""
        found = []
        for link in self.plan.network.links:
            for way in link.directions:
                is_paced = way.rate_bps and way.queue and way.queue.serialises
                now: dict[str, Any] = {"rate": way.rate_bps} if is_paced else {}
                now |= {"delay": way.first_delay_ns} if link.via is not None else {}
                if not now:
                    continue
                errors = self.plan.cell.errors(link.name, way.name)
                now["ber"] = errors.settings.ber if errors and isinstance(errors.settings, BitErrorRate) else 0
                now |= {step.change: step.value for step in self._changes_of(link.name, way.name)}
                own = {"link": link.name, "way": way.name, "ends": [way.from_, way.to], "now": now}
                found.append(own | {"queue": _queue(way.queue) if way.queue else ""})
        return sorted(found, key=lambda one: one["now"].get("rate", 0))


def _queue(queue: Queue) -> str:
    """What is said of a queue: it is set when the lab starts."""
    limit = units.text("size", queue.limit_bytes) if queue.limit_bytes else f"{queue.limit_packets} packets"
    return f"Queue: {queue.discipline}, {limit}; set before the start (--set)."


def _copied(source: Path, target: Path) -> int:
    """Copies a file of the lab if it has changed; returns when it did. A link there may lead anywhere, so none is
    followed.
    """
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_FILE:
            raise OSError
        if not target.exists() or target.stat().st_mtime_ns != facts.st_mtime_ns:
            target.write_bytes(file.read())
            os.utime(target, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
        return facts.st_mtime_ns


def _rows_from(table: Any, times: Any, since_ns: int) -> Any:
    """A table of columns from the first row on that is not before a time."""
    first = int(np.searchsorted(times, since_ns))
    columns = {one.name: getattr(table, one.name) for one in fields(table)}
    own = {name: column[first:] for name, column in columns.items() if np.shape(column)[:1] == np.shape(times)}
    own.pop("heads", None)
    return replace(table, **own)
