"""Kind `fp`: a file or a record of it by SCPS-FP."""

from collections.abc import Iterator, Mapping
from typing import Literal, Self

from pydantic import model_validator

from scpslab.core.problems import Problem, UnfitError
from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Seconds, Size
from scpslab.plan.stacks import SCPS
from scpslab.scenario.scps_ends import fits_mtu, same_network, scps_ends
from scpslab.scenario.workloads import MODE, REQUIRED, Setting, Surroundings, Transfer, timeout_key

# Shares of a file between which a transfer is stopped: in its middle, with enough left to go on with.
STOP_FROM, STOP_TO = 0.05, 0.75
# Every time that one program waits for the other.
WAITS = ("CONNTIMEOUT", "LOGINTIMEOUT", "IDLE", "REPLYTIMEOUT", "DATATIMEOUT")


class Fp(Transfer, kind="fp"):
    """A file, or a record of it, by SCPS-FP (`scps fp` and `scps fpd`), over the stack of each host; the client reports
    the time.

    Attributes:
        kind: The kind of workload.
        size: Bytes of the file; for a record, of the existing file.
        command: get, read: the client runs on the receiving host; put, insert, replace, delete: it runs on the sending
            host. read, insert, replace and delete concern one record of an existing file.
        record: Bytes of the record to read, insert, replace or delete.
        port: Port of the control connection.
        auto_restart: Automatic restart: a broken transfer resumes automatically from the stored bytes.
        bets: Best effort on data connections (SCPS-TP): fill gaps instead of waiting for their data.
        stop: Event in the middle of a get or put: the user interrupts and resumes it, or aborts and repeats it, or a
            program is killed; another client then resumes the transfer, or another server takes over.
        stop_at: Number of bytes moved when the stop happens. Default: drawn for each repeat, between a twentieth and
            three quarters of the file.
        data_timeout: Longest time without data on a data connection, in whole seconds (DATATIMEOUT).
        reply_timeout: Longest time that the client waits for a reply, in whole seconds (REPLYTIMEOUT).
        wait_timeout: Time, in whole seconds, that each program waits for the other, whatever for: to connect, to log
            in, for commands, replies and data. For round trips above half a minute. Default: those above, and the
            programs' own.
        restart_delay: First pause before an automatic restart, in whole seconds; each further pause is twice as long
            (RESTARTDELAY).
        segment: Data bytes per segment of SCPS-TP. Default: as many as the smallest MTU on the path allows.
    """

    kind: Literal["fp"] = key(example="fp")
    size: Size = key(example="100 kB")
    command: Literal["get", "put", "read", "insert", "replace", "delete"] = key("get", example="put")
    record: Size = key("512 B", example="2 kB")
    mode: Literal["active", "passive"] = MODE
    port: Port = key(2121, example=2121)
    auto_restart: bool = key(False, example=True)
    bets: bool = key(False, example=True)
    stop: Literal["none", "interrupt", "abort", "kill-client", "kill-server"] = key("none", example="interrupt")
    stop_at: Size | None = key(None, example="50 kB")
    data_timeout: Seconds = key("60 s", example="20 s")
    reply_timeout: Seconds = key("60 s", example="20 s")
    wait_timeout: Seconds | None = key(None, example="6 h")
    restart_delay: Seconds = key("5 s", example="2 s")
    segment: Size | None = key(None, example="512 B")
    timeout: PositiveDuration = timeout_key("900 s")
    required: bool = REQUIRED

    @property
    def from_client(self) -> bool:
        """Whether the client runs on the sending host."""
        return self.command not in ("get", "read")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.command in ("read", "replace", "delete") and self.record > self.size:
            raise UnfitError(
                f'a record of "{self.record.text}" in a file of "{self.size.text}"', "one that fits into it"
            )
        if self.stop != "none" and self.command not in ("get", "put"):
            raise UnfitError(f"stop {self.stop} with {self.command}", "it with get or put")
        if self.stop_at is not None and self.stop_at >= self.size:
            raise UnfitError(f'stop_at "{self.stop_at.text}" in a file of "{self.size.text}"', "less than the file")
        return self

    def serves(self) -> tuple[str, int]:
        """The server is where the client is not."""
        return self.receiver if self.from_client else self.sender, self.port

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        hosts = {end: around.hosts[end] for end in (self.sender, self.receiver)}
        others = [end for end, host in hosts.items() if host.carrier is not SCPS]
        if self.bets and others:
            found = f"best effort with the stack {hosts[others[0]].stack} on {others[0]}"
            yield Problem(("bets",), found, "scps at both ends", "Use stack scps, or no bets.")
        if self.segment is not None and len(others) < len(hosts):
            yield from fits_mtu(self, self.segment, around)
        yield from same_network(self, around)
        yield from super().problems(around)

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """Where it is stopped and where the record lies are drawn by repeat and name only: every stack and command
        meets the same.
        """
        (stop,), (record_at,) = setting.draws("stop", self.name, 1), setting.draws("record", self.name, 1)
        drawn = int(self.size * (STOP_FROM + (STOP_TO - STOP_FROM) * stop))
        from_scps, to_scps = scps_ends(self, self.segment, setting)
        server, server_scps = (self.to, to_scps) if self.from_client else (self.from_, from_scps)
        return {
            **super().derived(setting),
            "to_ip": to_scps.ip if to_scps else setting.addresses[self.to],
            "record_at": int(record_at * max(0, self.size - (self.record if self.command != "insert" else 0))),
            "stop_at": None if self.stop == "none" else drawn if self.stop_at is None else self.stop_at,
            "tunables": {
                "DATATIMEOUT": self.data_timeout // 10**9,
                "REPLYTIMEOUT": self.reply_timeout // 10**9,
                "RESTARTDELAY": self.restart_delay // 10**9,
                **({} if self.wait_timeout is None else dict.fromkeys(WAITS, self.wait_timeout // 10**9)),
            },
            "from_scps": from_scps,
            "to_scps": to_scps,
            "server_ip": server_scps.ip if server_scps else setting.addresses[server],
        }
