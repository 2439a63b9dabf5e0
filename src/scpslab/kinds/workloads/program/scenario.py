"""Kind `program`: a file by a server and a client of anybody's."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scpslab.core.problems import Problem
from scpslab.documents.parts import Spelt, key
from scpslab.documents.quantities import Duration, Port, PositiveDuration, Rate, Size
from scpslab.scenario.workloads import REQUIRED, Setting, Surroundings, Transfer, timeout_key

from scpslab.kinds.workloads.program import plan as planned

Command = Annotated[str, Field(min_length=1)]
KeptName = Annotated[str, Spelt(f"^{planned.KEPT_NAME}$", "the name of a file, without a folder")]


class Program(Transfer, kind="program"):
    """A file by programs of anybody's, with any protocol over IP: a server at one end, a client at the other
    ([programs](programs.md)).

    The lab writes the file, measures the time, and compares the hashes of what was sent and what arrived. Commands may
    contain {from}, {to} and {server} (addresses), {port}, {size} (bytes), {folder} (the workload's own folder on the
    node, in which commands start), {file} (the file to send) and {out} (where it has to arrive); {{ and }} are braces.

    Attributes:
        kind: The kind of workload.
        size: Bytes of the file.
        server: The command of the server; sh runs it before the epoch.
        client: The command of the client; sh runs it at `start`.
        server_at: Where the server runs: to: on the receiving host; from: on the sending host, as with HTTP.
        port: Port of the server: {port} in commands.
        ready_port: The server is ready when it accepts TCP connections at this port.
        ready_udp: The server is ready when something in its node has this UDP port.
        ready_command: The server is ready when this command, run again and again, ends with 0. Default: once it runs.
        settle: Time that a ready server gets before the epoch.
        expect: Exit code of a client that has succeeded.
        keep: Files in the workload's folders that the cell keeps, compressed: logs/NAME-NODE-FILE.gz.
        pace: Rate at which programs of the sending host send datagrams, headers of UDP and IP included, for protocols
            without rate control. It reaches programs that use the C library.
    """

    unmodified: ClassVar[str] = "program"

    kind: Literal["program"] = key(example="program")
    size: Size = key(example="2 MB")
    server: Command = key(example="exec my-server --port {port} {file}")
    client: Command = key(example="exec my-client {server} {port} {out}")
    server_at: Literal["from", "to"] = key("to", example="from")
    port: Port = key(4433, example=4433)
    ready_port: Port | None = key(None, example=8080)
    ready_udp: Port | None = key(None, example=4433)
    ready_command: Command | None = key(None, example="test -e {folder}/ready")
    settle: Duration = key("0 s", example="1 s")
    expect: int = key(0, least=0, most=255, example=0)
    keep: Annotated[tuple[KeptName, ...], Field(max_length=20)] = key((), example=["client.qlog"])
    pace: Rate | None = key(None, example="1.9 Mbit/s")
    timeout: PositiveDuration = timeout_key("900 s")
    required: bool = REQUIRED

    def serves(self) -> tuple[str, int]:
        """The server's host."""
        return self.receiver if self.server_at == "to" else self.sender, self.port

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        yield from planned.misfits(self)
        yield from super().problems(around)

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """The addresses of both ends."""
        server, client = (self.to, self.from_) if self.server_at == "to" else (self.from_, self.to)
        return {
            **super().derived(setting),
            "expect": self.expect or None,
            "server_ip": setting.addresses[server],
            "client_ip": setting.source(client, server),
        }
