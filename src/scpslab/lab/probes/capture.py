"""tcpdump on one interface.

It writes into memory; the cell copies the file out at its end, because a write to the user's machine in the middle of a run would change
the packets' timing from run to run.
"""

from __future__ import annotations

import signal
import subprocess

from scpslab.lab.place import LABTOOL
from scpslab.lab.probes.base import Probe
from scpslab.names import file_name
from scpslab.plan.probes import capture as planned

# What tcpdump says of a filter that libpcap cannot compile. That compiler is in the lab, but not on every machine that validates a scenario.
BAD_FILTER = "can't parse filter expression"


class FilterError(ValueError):
    """A filter that tcpdump does not understand."""


class Capture(Probe[planned.Capture]):
    """captures/<name>.pcap, nanosecond time stamps."""

    # The kernel hands tcpdump whole blocks of packets, the last one after a second; what it has not got when it is told to end is lost.
    settle_ns = 1_200_000_000

    def prepare(self) -> None:
        """Starts tcpdump and waits until it listens."""
        spec = self.spec
        path = self.context.folders.captures / file_name(self.name, suffix=".pcap")
        # Run from outside the node (its namespace is entered for the network only), so that the file lands in the cell's folder.
        argv = ["tcpdump", "--interface", spec.interface, "--snapshot-length", str(spec.snaplen_bytes), "-n", "-Z", "root"]
        argv += ["--time-stamp-precision", "nano", "-w", str(path), *([spec.filter_] if spec.filter_ else [])]
        prefix = [] if self.network.pid(spec.node) is None else [LABTOOL, "exec-net", str(self.network.pid(spec.node))]
        self.process = subprocess.Popen([*prefix, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        self.said: list[str] = []
        self.ended = False
        self.context.loop.on_lines(self.process.stderr, self.said.append)
        self.context.loop.on_exit(self.process, self._exit)
        self.context.loop.run_until(lambda: self.ended or any("listening on" in line for line in self.said))
        if self.ended and any(BAD_FILTER in line for line in self.said):
            what = " ".join(self.said).partition(BAD_FILTER)[2].strip(" :")
            raise FilterError(f'probe {self.name}: found the filter "{spec.filter_}" ({what}); expected one of pcap-filter(7). Correct the filter.')
        if self.ended:
            raise OSError(self.process.returncode, f"capture {self.name}: tcpdump: {' '.join(self.said)}")

    def _exit(self, _code: int) -> None:
        self.ended = True

    def stop(self) -> None:
        """Lets tcpdump write its last packets."""
        self.process.send_signal(signal.SIGTERM)
        self.context.loop.run_until(lambda: self.ended)
        with (self.context.folders.logs / file_name("capture", self.name, suffix=".log")).open("w") as log:
            log.writelines(line + "\n" for line in self.said)


KIND = Capture
