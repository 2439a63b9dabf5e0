"""A router of SCPS-NP: `scps router` on a node, started in the cell, before the epoch, until nothing is under way.

Its counters become records/<node>.jsonl.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

from scpslab.core.names import file_name
from scpslab.core.strict_json import JsonObject, items
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.scps_end import tables
from scpslab.lab.services import Talking
from scpslab.plan.np import NpInterface

from scpslab.kinds.services.np_router.plan import NpRouterService

SETTINGS = "/tmp/scps-router.json"


def _terminal(path: str, _flags: int) -> int:
    return os.open(path, os.O_RDWR | os.O_NOCTTY)


class NpRouter(Talking, kind="np-router"):
    """One router of the plan."""

    what = "scps router"
    start_limit_ns = 60 * SECOND_NS
    carries_packets: ClassVar[bool] = True
    plan: NpRouterService

    @property
    def log(self) -> Path:
        """Where its errors go."""
        return self.network.logs / file_name(self.name, "router", suffix=".log")

    def argv(self) -> list[str]:
        """The router, with its settings."""
        return [self.network.node(self.node).program("scps"), "router", SETTINGS, "--seed", str(self.plan.seed)]

    def launch(self) -> None:
        """Starts the program with its terminals open."""
        with ExitStack() as opened:
            errors = opened.enter_context(self.log.open("wb"))
            # A container has terminals of its own; it gets those of the lines open.
            terminals = self.network.terminals.get(self.node, {})
            lines = {
                link: opened.enter_context(open(terminal, "rb", buffering=0, opener=_terminal)).fileno()
                for link, terminal in terminals.items()
            }
            paths = {link: str(Path("/dev/fd") / str(number)) for link, number in lines.items()}
            settings = router_file(self.plan, paths)
            self.network.inside(self.node, SETTINGS).write_text(json.dumps(settings, indent=1) + "\n")
            self.process = self._popen(subprocess.PIPE, errors.fileno(), keep=tuple(lines.values()))
        self.loop.on_lines(self.process.stdout, self.hear)
        self.loop.on_exit(self.process, self._ended)

    def end(self, limit_ns: int) -> None:
        """Ends the program, and takes what it counted."""
        super().end(limit_ns)
        # The last line can still be on its way out of the pipe.
        self.loop.run_until(lambda: any(line["event"] == "counters" for line in self.events), 0)
        counters: JsonObject = next((line for line in self.events if line["event"] == "counters"), {})
        self.counted = {str(interface["name"]): interface for interface in items(counters, "interfaces", dict)}

    def write_records(self, folder: Path) -> None:
        """Writes what it said after it was ready, its counters last."""
        self.write_lines(folder, self.events[1:])


def router_file(plan: NpRouterService, terminals: Mapping[str, str]) -> JsonObject:
    """The settings of a router; `terminals`: its end of each of its serial links."""
    return {
        "address": plan.ip,
        "default_precedence": plan.default_precedence,
        "hop_count": plan.hop_count,
        "tables": tables(plan.hosts, plan.next_hops),
        "interfaces": [_interface(interface, plan.device, terminals) for interface in plan.interfaces],
    }


def _interface(interface: NpInterface, device: str, terminals: Mapping[str, str]) -> JsonObject:
    carrier: JsonObject = {"kind": "ip", "device": device}
    if interface.line is not None:
        carrier = {"kind": "serial", "line": terminals[interface.line], "bits_per_octet": interface.bits_per_byte}
    settings: JsonObject = {
        "name": interface.name,
        "carrier": carrier,
        "neighbours": list(interface.neighbours),
        "mtu": interface.mtu_bytes,
    }
    if interface.rate_bps is not None:
        settings["rate"] = str(interface.rate_bps)
    if interface.sp is not None:
        settings["sp"] = interface.sp
    return settings | {"queue": asdict(interface.queue)}
