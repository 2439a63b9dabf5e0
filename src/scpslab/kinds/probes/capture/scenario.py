"""Kind `capture`: the frames that pass an interface.

Only libpcap reads a filter (pcap-filter(7)): the lab's does so before anything is sent, and this machine's, if there is
one, does so for whoever validates a scenario.
"""

import ctypes
import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Literal

from scpslab.core.choices import choice
from scpslab.core.errors import LimitError
from scpslab.core.limited import WorkLimits, limited
from scpslab.core.problems import Problem
from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, Snaplen
from scpslab.plan.network import NetworkPlan
from scpslab.scenario.probes import Observer

PCAP_RECORD_BYTES = 16
LIBPCAP = ("libpcap.so.0.8", "libpcap.so.1")
# What interfaces of the lab carry: Ethernet, and IP without a frame (pcap-linktype(7)).
LINK_TYPES = (1, 12)
NOBODY = 65534
LIMITS = WorkLimits(cpu_s=2, wall_s=5, answer_bytes=1 << 16)


class Capture(Observer, kind="capture"):
    """The frames that pass one interface of a node, with nanosecond time stamps: captures/NAME.pcap.

    Attributes:
        kind: The kind of probe.
        name: Name of the file. Default: the node's name.
        node: Where.
        link: Capture on the node's interface to this link. Default: its first interface.
        snaplen: Bytes kept of each packet: 96 hold all headers and options.
        filter: tcpdump filter, as in pcap-filter(7). `validate` checks it where there is libpcap, and the lab before
            anything is sent.
    """

    kind: Literal["capture"] = key(example="capture")
    name: Name | None = key(None, example="sink")
    node: Name = key(example="ws2")
    link: str | None = key(None, example="hop")
    snaplen: Snaplen = key("96 B", example="96 B")
    filter: str = key("", example="tcp port 5001")

    @property
    def default_name(self) -> str:
        """The node."""
        return self.node

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """What does not fit."""
        near = list(dict.fromkeys(link for link, _ in network.interfaces(self.node)))
        if self.filter.lstrip().startswith("-"):
            found = f'"{self.filter}", which tcpdump would take for an option'
            yield Problem(("filter",), found, "a filter", 'Write "not" for a minus.')
        elif near and self.link not in (None, *near):
            yield Problem(("link",), f'"{self.link}"', *choice(self.link, near))
        else:
            yield from super().problems(network)

    def asked(self) -> Iterator[Problem]:
        """What libpcap says of the filter."""
        if self.filter and (said := refusal(self.filter)):
            expected = 'a filter as in pcap-filter(7), such as "tcp port 5001"'
            yield Problem(("filter",), f'"{self.filter}" ({said})', expected, "Correct the filter.")

    def derived(self, network: NetworkPlan) -> Mapping[str, object]:
        """The first interface that fits."""
        fitting = (name for link, name in network.interfaces(self.node) if self.link in (None, link))
        return {"interface": next(fitting, "")}

    def memory_bytes(self, packets: int) -> int:
        """The file, which is written out at the cell's end."""
        return packets * (self.snaplen + PCAP_RECORD_BYTES)


@cache
def refusal(filter_: str) -> str:
    """What libpcap of this machine finds wrong in a filter; "" if it finds nothing, or there is none."""
    try:
        said = str(limited(lambda: _compiled(filter_), LIMITS))
    except LimitError:
        return ""
    # A name that this machine was not asked about.
    return "" if said.startswith("unknown ") else said.removeprefix("can't parse filter expression: ")


def _compiled(filter_: str) -> str:
    """Compiles a filter in a child without rights and without files: a stranger's looks nothing up in the network."""
    pcap: Any = None
    for name in LIBPCAP:
        with suppress(OSError):
            pcap = pcap or ctypes.CDLL(name)
    if pcap is None:
        return ""
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    pcap.pcap_open_dead.restype, pcap.pcap_geterr.restype = ctypes.c_void_p, ctypes.c_char_p
    # A struct bpf_program: a number and a pointer.
    program = (ctypes.c_void_p * 2)()
    handles = [ctypes.c_void_p(pcap.pcap_open_dead(link_type, 1 << 16)) for link_type in LINK_TYPES]
    if any(pcap.pcap_compile(handle, program, filter_.encode(), 1, 0) == 0 for handle in handles):
        return ""
    return str(pcap.pcap_geterr(handles[0]).decode(errors="replace"))
