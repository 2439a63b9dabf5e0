"""Routers of SCPS-NP: `scps router` on a node, started in the cell, before the epoch, until nothing is under way. Its counters become records/<node>.jsonl."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from scpslab.lab.clock import SECOND_NS
from scpslab.lab.loop import Loop
from scpslab.lab.network import LabNetwork
from scpslab.lab.np_settings import router_file
from scpslab.lab.records import Records
from scpslab.names import file_name
from scpslab.plan.nodes import ScpsRouter

START_LIMIT_NS = 60 * SECOND_NS
SETTINGS = "/tmp/scps-router.json"


class NpRouter:
    """One router of the plan."""

    def __init__(self, plan: ScpsRouter, network: LabNetwork, loop: Loop) -> None:
        self.plan, self.network, self.loop, self.name = plan, network, loop, plan.name
        self.said: list[dict[str, Any]] = []
        self.has_ended = False

    def set_up(self, now_ns: Callable[[], int], terminals: Mapping[str, str]) -> None:
        """Starts the program and waits until it forwards; `terminals`: the router's end of each of its serial links.

        Raises:
            OSError: the program ended, or did not start in time; the message names it.
        """
        node = self.network.node(self.name)
        self.network.inside(self.name, SETTINGS).write_text(json.dumps(router_file(self.plan, terminals), indent=1) + "\n")
        log = self.network.logs / file_name(self.name, "router", suffix=".log")
        with log.open("wb") as errors:
            argv = [node.program("scps"), "router", SETTINGS, "--seed", str(self.plan.seed)]
            self.process = node.start(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        assert self.process.stdout is not None
        self.loop.on_lines(self.process.stdout, lambda line: self.said.append(json.loads(line)))
        self.loop.on_exit(self.process, self._ended)
        self.loop.run_until(lambda: bool(self.said) or self.has_ended, now_ns() + START_LIMIT_NS)
        if not self.said:
            raise OSError(self.process.returncode or 0, f"router {self.name}: scps router did not start; see logs/{log.name}")

    def _ended(self, _code: int) -> None:
        self.has_ended = True

    def close(self, records: Records) -> dict[str, Any]:
        """Ends the program and writes what it counted; the counters by interface."""
        if not self.has_ended:
            self.process.send_signal(signal.SIGTERM)
        self.loop.run_until(lambda: self.has_ended)
        # The last line can still be on its way out of the pipe.
        self.loop.run_until(lambda: any(line["event"] == "counters" for line in self.said), 0)
        counters: dict[str, Any] = next((line for line in self.said if line["event"] == "counters"), {"interfaces": []})
        for line in self.said[1:]:
            records.write(**line)
        records.close()
        return {interface["name"]: interface for interface in counters["interfaces"]}
