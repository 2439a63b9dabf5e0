"""A file or a record of it by SCPS-FP: `scps fpd` on one node, `scps fp` on the other, over what carries transport on
each, timed as the client reports it.
"""

from __future__ import annotations

import hashlib
import json
import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scpslab.core.strict_json import JsonObject
from scpslab.lab.scps_end import stack_options, write_settings
from scpslab.lab.services import Service
from scpslab.lab.workloads import Workload
from scpslab.plan.stacks import ScpsEnd

from scpslab.kinds.workloads.fp import plan as planned

READY = "ready"


class FpServer(Service):
    """It serves `FOLDER/files` of a transfer's server; `options` are those of its transport."""

    what = "scps fpd"

    def __init__(self, transfer: Fp, options: Sequence[str], on_end: Callable[[int], None]) -> None:
        """`on_end` gets the exit code."""
        super().__init__(transfer.name, transfer.server, transfer.network, transfer.context.loop, on_end)
        self.folder, self.ip, self.port = transfer.folder, transfer.spec.server_ip, transfer.spec.port
        self.options = options

    def prepare(self) -> None:
        """Takes away what an earlier server said."""
        self.network.inside(self.node, f"{self.folder}/{READY}").unlink(missing_ok=True)

    def argv(self) -> list[str]:
        """The server and its options."""
        argv = [self.network.node(self.node).program("scps"), "fpd", "--listen", self.ip, "--port", str(self.port)]
        return [*argv, "--open", f"{self.folder}/files", "--ready-file", f"{self.folder}/{READY}", *self.options]

    def is_ready(self) -> bool:
        """Whether it has said that it serves."""
        return self.network.inside(self.node, f"{self.folder}/{READY}").exists()


LOOK_AGAIN_NS = 10_000_000
# A killed server stays away for this long: its clients have to notice, and its port is free again.
SERVER_PAUSE_NS = 2 * 10**9
# The file; the one before an edit; the client's own copy of the edit; what a file is called while it is on its way.
FILE, OLD, EDITED, PART = "file.bin", "old.bin", "edited.bin", ".fppart~file.bin"
# Of the sending host's SCPS-TP: one file for each start of its program.
COUNTERS = "counters"
TRANSFERS = ("get", "put", "resume", "raread", "raupdt")
# What the client's report of a command says of the transfer; the rest of it is text for people.
KEPT = (
    *("command", "status", "reply", "octets", "octets_after_restart", "size", "marker", "restarts", "markers"),
    *("seconds", "integrity", "crc", "filled"),
)


class Fp(Workload[planned.Fp], kind="fp"):
    """`put` and the edits: the sending host has the client; `get` and `read`: the receiving one."""

    def prepare(self) -> None:
        """Writes the files, starts the server and waits until it serves."""
        spec = self.spec
        from_client = spec.command not in ("get", "read")
        self.client, self.server = (spec.from_, spec.to) if from_client else (spec.to, spec.from_)
        self.client_scps, self.server_scps = (
            spec.from_scps if end == spec.from_ else spec.to_scps for end in (self.client, self.server)
        )
        self.text: list[str] = []
        self.starts = {"client": 0, "server": 0}
        self.folders = {node: self.network.inside(node, self.folder) for node in (self.client, self.server)}
        for folder in self.folders.values():
            (folder / "files").mkdir(parents=True)
        self._write_files()
        for node, end in ((self.client, self.client_scps), (self.server, self.server_scps)):
            write_settings(self.network, node, end)
        self._start_server(wait=True)

    def start(self) -> None:
        """Starts the client and the clock of its timeout."""
        spec = self.spec
        first, self.then = self._commands()
        self.timeouts_before = self.kernel_timeouts(spec.from_)
        self._start_client(first)
        if spec.stop in ("kill-client", "kill-server"):
            self._watch()
        self.give_up_after(spec.timeout_ns)

    def _write_files(self) -> None:
        """The file at its source; for a record the file before the edit at both ends, or the whole one to read from."""
        spec = self.spec
        draw = random.Random(spec.payload_seed)  # noqa: S311  # content, no secret
        whole, record = draw.randbytes(spec.bytes_), draw.randbytes(spec.record_bytes)
        at, end = spec.record_at, spec.record_at + spec.record_bytes
        sender, receiver = (self.folders[host] / "files" for host in (spec.from_, spec.to))
        wanted = {
            "insert": whole[:at] + record + whole[at:],
            "replace": whole[:at] + record + whole[end:],
            "delete": whole[:at] + whole[end:],
        }
        self.data = wanted.get(spec.command, whole[at:end] if spec.command == "read" else whole)
        if spec.command in wanted:
            for folder in (sender, receiver):
                (folder / OLD).write_bytes(whole)
        (sender / FILE).write_bytes(whole if spec.command == "read" else self.data)

    def _commands(self) -> tuple[list[str], list[str]]:
        """What the client is told, and what another one is told after a program was killed."""
        spec = self.spec
        options = [*(["autorestart"] if spec.auto_restart else []), *(["bets"] if spec.bets else [])]
        match spec.command:
            case "get" | "put":
                transfer = [f"{spec.command} {FILE}"]
            case "read":
                transfer = [f"raread {FILE} {FILE} {spec.record_at}-{spec.record_at + spec.record_bytes - 1}"]
            case _:
                transfer = [f"raupdt {OLD} {FILE} {OLD} {EDITED} diff:{FILE}"]
        resume = f"resume {spec.command} {FILE}"
        match spec.stop:
            case "interrupt":
                transfer = [f"interrupt {spec.stop_at}", *transfer, resume]
            case "abort":
                # Between the two, what was there before must be there again: nothing.
                there = f"size {FILE}" if spec.command == "put" else f"lsize {FILE}"
                transfer = [f"abort {spec.stop_at}", *transfer, there, *transfer]
        return [*options, *transfer], [*options, resume]

    def _start_server(self, *, wait: bool) -> None:
        self.service = FpServer(self, self._options(self.server_scps, "server", self.server), self._server_exit)
        self.serve(self.service, wait=wait)

    def _start_client(self, commands: list[str]) -> None:
        spec, end = self.spec, self.client_scps
        argv = [self.scps(self.client), "fp", "--folder", f"{self.folder}/files"]
        argv += [*(["--local", end.ip] if end else []), *self._options(end, "client", self.client)]
        argv += [*(["--passive"] if spec.mode == "passive" else []), "--keep-going", "--quiet"]
        argv += ["-e", "; ".join(commands)]
        self.text.clear()
        self.client_start_t_s = self.context.epoch.now_s()
        self.client_process = self.run(
            self.client, [*argv, spec.server_ip, str(spec.port)], self.text.append, self._client_exit
        )

    def _options(self, end: ScpsEnd | None, which: str, node: str) -> list[str]:
        transport = ["--transport", "tcp"]
        if end:
            options = stack_options(end, self.starts[which])
            transport = ["--transport", "tp", *options]
            if node == self.spec.from_:
                transport += ["--counters", f"{self.folder}/{COUNTERS}-{self.starts[which]}"]
        self.starts[which] += 1
        return [
            *transport,
            *(word for name, value in self.spec.tunables.items() for word in ("--set", f"{name}={value}")),
        ]

    def _watch(self) -> None:
        """Kills what is to be killed once enough is stored at the receiver."""
        if self.outcome or self.client_process.poll() is not None:
            return
        stored = max((path.stat().st_size for name in (PART, FILE) if (path := self._target(name)).exists()), default=0)
        if self.spec.stop_at is not None and stored < self.spec.stop_at:
            self.context.loop.at(self.context.now_ns() + LOOK_AGAIN_NS, self._watch)
            return
        self.records.write(event="stop", t_s=self.context.epoch.now_s(), what=self.spec.stop, stored_bytes=stored)
        if self.spec.stop == "kill-client":
            self.client_process.send_signal(signal.SIGKILL)
        else:
            self.service.kill()

    def _target(self, name: str) -> Path:
        return self.folders[self.spec.to] / "files" / name

    def _server_exit(self, _code: int) -> None:
        if not self.outcome and self.spec.stop == "kill-server" and self.starts["server"] == 1:
            self.context.loop.at(self.context.now_ns() + SERVER_PAUSE_NS, lambda: self._start_server(wait=False))

    def give_up(self) -> None:
        """Writes what has come, and gives up."""
        if not self.outcome:
            self._write_file()
        super().give_up()

    def _client_exit(self, code: int) -> None:
        reports: list[JsonObject] = [
            {key: line[key] for key in KEPT if key in line} for line in map(json.loads, self.text)
        ]
        self.records.write(
            event="client",
            start_t_s=self.client_start_t_s,
            end_t_s=self.context.epoch.now_s(),
            exit_code=code,
            reports=reports,
        )
        if self.outcome:
            return
        transfers = [report for report in reports if str(report["command"]).split()[0] in TRANSFERS]
        done = bool(transfers) and transfers[-1]["status"] == "complete"
        if not done and self.spec.stop.startswith("kill-") and self.starts["client"] == 1:
            self._start_client(self.then)
            return
        self._judge(code, reports, transfers, done=done)
        self.stop()

    def _judge(self, code: int, reports: list[JsonObject], transfers: list[JsonObject], *, done: bool) -> None:
        arrived = self._write_file()
        expected = {"interrupt": "interrupted", "abort": "aborted"}.get(self.spec.stop)
        left = next((report for report in reports if report["command"] in (f"size {FILE}", f"lsize {FILE}")), None)
        if not done:
            said = f"{transfers[-1]['command']}: {transfers[-1]['status']}" if transfers else "no transfer"
            self.fail(f"scps fp exit code {code}: {said}", log_of=self.client)
        elif arrived != self.data and not transfers[-1].get("filled"):
            said = f"{len(arrived)} bytes that differ from those sent"
            self.fail(f"found {said}; expected {len(self.data)} bytes as sent")
        elif expected and transfers[0]["status"] != expected:
            self.fail(f"found a transfer that is {transfers[0]['status']}; expected it to be {expected}")
        elif left is not None and left["status"] == "complete":
            self.fail("found a file after an aborted transfer; expected none")
        else:
            self.finish("completed")

    def _write_file(self) -> bytes:
        """Records what arrived beside what was sent; returns it."""
        path = self._target(FILE)
        arrived = path.read_bytes() if path.exists() else b""
        damage = compare(self.data, arrived)
        self.records.write(
            event="file",
            bytes=len(arrived),
            expected_bytes=len(self.data),
            sha256=hashlib.sha256(arrived).hexdigest(),
            sent_sha256=hashlib.sha256(self.data).hexdigest(),
            lost_bytes=damage.lost,
            duplicated_bytes=damage.duplicated,
            damaged_bytes=damage.damaged,
            part_left=self._target(PART).exists(),
        )
        self.records.write(event="sender", **self._sender_counts())
        return arrived

    def _sender_counts(self) -> dict[str, int]:
        """What the sending host's transport counted, control connection included; nothing if a killed program took its
        counts with it.
        """
        if not self.spec.from_scps:
            return {"rtos": self.kernel_timeouts(self.spec.from_) - self.timeouts_before}
        counts = [json.loads(path.read_text()) for path in self.folders[self.spec.from_].glob(f"{COUNTERS}-*[0-9]")]
        if len(counts) < self.starts["server" if self.spec.from_ == self.server else "client"]:
            return {}
        return {key: sum(count[key] for count in counts) for key in ("rtos", "retransmissions", "superfluous_resends")}


# Random content repeats no row of this many bytes by chance: 2^20 rows of 128 bits.
ROW_BYTES = 16


@dataclass(frozen=True)
class FileDamage:
    """Bytes sent that are missing in the file that arrived, bytes that it has more than once, and bytes in it that were
    not sent there.
    """

    lost: int
    duplicated: int
    damaged: int


def compare(sent: bytes, arrived: bytes) -> FileDamage:
    """Aligns the file that arrived with the file sent, row by row; a changed byte is damaged, not lost.

    The sent content must not repeat itself.
    """
    if arrived == sent:
        return FileDamage(0, 0, 0)
    covered = bytearray(len(sent))
    duplicated = damaged = 0
    gap_at = sent_end = 0
    for at, source, length in _matches(sent, arrived):
        wrong = _wrong_in_place(sent, arrived, covered, (sent_end, source), (gap_at, at))
        damaged += wrong
        duplicated += sum(covered[source : source + length])
        covered[source : source + length] = b"\1" * length
        gap_at, sent_end = at + length, source + length
    damaged += _wrong_in_place(sent, arrived, covered, (sent_end, len(sent)), (gap_at, len(arrived)))
    return FileDamage(covered.count(0), duplicated, damaged)


def _wrong_in_place(
    sent: bytes, arrived: bytes, covered: bytearray, source: tuple[int, int], found: tuple[int, int]
) -> int:
    """Bytes between two matches that are not the sent ones; those that stand in place of others count as arrived, wrong
    or right.
    """
    room = max(0, source[1] - source[0])
    length = found[1] - found[0]
    in_place = min(room, length)
    pairs = zip(sent[source[0] : source[0] + in_place], arrived[found[0] : found[0] + in_place], strict=True)
    wrong = sum(left != right for left, right in pairs)
    covered[source[0] : source[0] + in_place] = b"\1" * in_place
    return wrong + length - in_place


def _matches(sent: bytes, arrived: bytes) -> list[tuple[int, int, int]]:
    """Stretches of at least a row that are alike: where in `arrived`, where in `sent`, length; ascending in
    `arrived`.
    """
    rows = {sent[at : at + ROW_BYTES]: at for at in range(0, len(sent) - ROW_BYTES + 1, ROW_BYTES)}
    matches: list[tuple[int, int, int]] = []
    at, settled = 0, 0
    while at + ROW_BYTES <= len(arrived):
        source = rows.get(arrived[at : at + ROW_BYTES])
        if source is None:
            at += 1
            continue
        start = at
        while start > settled and source > 0 and arrived[start - 1] == sent[source - 1]:
            start, source = start - 1, source - 1
        length = _alike(sent, source, arrived, start)
        matches.append((start, source, length))
        at = settled = start + length
    return matches


def _alike(sent: bytes, source: int, arrived: bytes, at: int) -> int:
    """How many bytes are the same from two places on."""
    step, length = 1 << 16, 0
    while step:
        left, right = sent[source + length : source + length + step], arrived[at + length : at + length + step]
        if left == right and len(left) == step:
            length += step
        else:
            step //= 2
    return length
