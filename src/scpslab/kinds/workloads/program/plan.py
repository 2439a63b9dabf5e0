"""Workload `program`: a file from a server to a client of anybody's, or the other way round."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from scpslab.core.names import file_name
from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.schema import Items, Range, Text
from scpslab.plan.values import Ip, Nanoseconds, Period, PlainText, Port, Rate, WholeSeed
from scpslab.plan.workloads import Transfer

# The file at either end, in the workload's folder there.
FILE = "file.bin"
# `{word}` is a word that the lab fills in, `${word}` is the shell's; `{{` and `}}` are braces.
BRACES = re.compile(r"\{\{|\}\}|(?<!\$)\{([a-z_]+)\}", re.ASCII)
WORDS = ("from", "to", "server", "port", "size", "folder", "file", "out")
KEPT_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
KeptName = Annotated[str, Text("the name of a file", lambda name: re.fullmatch(KEPT_NAME, name, re.ASCII) is not None)]


def filled(command: str, words: Mapping[str, str]) -> str:
    """A command with the lab's words in the places of their names; names that have none stay."""
    braces = {"{{": "{", "}}": "}"}
    return BRACES.sub(lambda found: braces.get(found[0], words.get(found[1] or "", found[0])), command)


def unknown_words(command: str) -> list[str]:
    """The words of a command that the lab does not know."""
    found = (match[1] for match in BRACES.finditer(command))
    return sorted({word for word in found if word is not None and word not in WORDS})


def misfits(part: object) -> Iterator[Problem]:
    """What does not fit of a workload's commands, in a scenario and in a plan: words that the lab does not know, and
    two questions.
    """
    for key in ("server", "client", "ready_command"):
        if unknown := unknown_words(getattr(part, key) or ""):
            expected = f"{{{'}, {'.join(WORDS)}}}"
            yield Problem((key,), f"{{{unknown[0]}}}", expected, "Correct the word, or double the braces.")
    asked = [key for key in ("ready_port", "ready_udp", "ready_command") if getattr(part, key) is not None]
    if len(asked) > 1:
        yield Problem((asked[1],), f"it beside {asked[0]}", "one of them", "Remove one.")


class Program(Transfer, kind="program"):
    """A file from `from` to `to` by programs: `server` runs at `server_at`, `client` at the other end; both are
    commands of a shell in which {from}, {to}, {server}, {port}, {size}, {folder}, {file} and {out} are filled in.

    `expect`: the client's exit code, if not 0. `pace_bps`: the sending host's programs send their datagrams at this
    rate of IP packets.
    """

    kind: Literal["program"] = "program"
    server_at: Literal["from", "to"]
    server: PlainText
    client: PlainText
    port: Port
    ready_port: Port | None = None
    ready_udp: Port | None = None
    ready_command: PlainText | None = None
    settle_ns: Nanoseconds
    expect: Annotated[int, Range(0, 255)] | None = None
    keep: Annotated[tuple[KeptName, ...], Items(0, 20)]
    pace_bps: Rate | None = None
    payload_seed: WholeSeed
    timeout_ns: Period
    server_ip: Ip
    client_ip: Ip

    knows_images: ClassVar[bool] = True

    @property
    def server_node(self) -> str:
        """The host with the server."""
        return self.from_ if self.server_at == "from" else self.to

    @property
    def opener(self) -> str:
        """The host with the client."""
        return self.to if self.server_at == "from" else self.from_

    @property
    def contacted_ip(self) -> str:
        """The server's address."""
        return self.server_ip

    @property
    def words(self) -> dict[str, str]:
        """What commands have in place of the lab's words."""
        ends = (self.server_ip, self.client_ip)
        sender, receiver = ends if self.server_at == "from" else ends[::-1]
        folder = f"/tmp/{file_name(self.name)}"
        found = (sender, receiver, self.server_ip, str(self.port), str(self.bytes_), folder)
        return dict(zip(WORDS, (*found, f"{folder}/{FILE}", f"{folder}/{FILE}"), strict=True))

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """Words that the lab does not know, and two questions."""
        yield from misfits(self)
        if self.pace_bps is not None and network.containers == "docker":
            yield Problem(("pace_bps",), "it with containers: docker", "processes", "Remove one of the keys.")
