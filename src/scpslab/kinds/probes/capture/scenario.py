"""Kind `capture`: the frames that pass an interface.

What is certainly wrong in a tcpdump filter (pcap-filter(7)) is found without libpcap, which is not on every machine:
neighbours that no filter has. Only libpcap compiles filters, and the lab does so before anything is sent. Names of
hosts, ports and networks are not looked up here, and a filter that passes may still be refused there. A filter that is
refused here is refused there too (a test compares both).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from scpslab.core.choices import one_of
from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, Snaplen
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.scenario.probes import Observer

PCAP_RECORD_BYTES = 16
# Words that stand alone or before others.
PROTOCOLS = re.findall(
    r"\S+",
    """
    ether link ppp slip fddi tr wlan ip ip6 arp rarp tcp udp sctp icmp icmp6 igmp igrp pim vrrp carp ah esp atalk aarp
    decnet lat sca moprc mopdl iso esis es-is isis is-is l1 l2 iih lsp snp csnp psnp clnp stp ipx netbeui radio lane llc
    metac bcc sc ilmic oam oamf4 oamf4ec oamf4sc connectmsg metaconnect fisu lssu lsu msu hfisu hlssu hmsu broadcast
    multicast inbound outbound vlan mpls pppoed pppoes geneve vxlan len length
    """,
)
# Words that need a value, or a group of values in parentheses.
NEEDY = re.findall(
    r"\S+",
    """
    host net mask port portrange proto protochain gateway src dst less greater type subtype dir direction addr1 addr2
    addr3 addr4 address1 address2 address3 address4 ra ta byte ifindex vpi vci on ifname rset ruleset rnr rulenum srnr
    subrulenum reason action sio opc dpc sls hsio hopc hdpc hsls
    """,
)
AFTER_A_VALUE = ("mask", "subtype")
TOKENS = re.compile(
    r"""\s*(?:
    (?P<either>(?:src|dst)\s+(?:or|and|\|\||&&)\s+(?:src|dst)\b)
  | (?P<relation><=|>=|==|!=|<(?!<)|>(?!>)|=)
  | (?P<logic>&&|\|\||(?:and|or)(?![-\w.]))
  | (?P<negation>!|not(?![-\w.]))
  | (?P<opened>[(\[])
  | (?P<closed>[)\]])
  | (?P<value>\\[^\s!()]+|\$[0-9A-Fa-f]+|[0-9A-Fa-f]*(?:[:.-][0-9A-Fa-f]+){5}
    |[0-9A-Fa-f]*(?::[0-9A-Fa-f]*)+|[A-Za-z0-9](?:[-\w.]*[.A-Za-z0-9])?)
  | (?P<operator><<|>>|[-+*/&|%^:])
    )""",
    re.VERBOSE,
)
# What ends a thing, and so cannot be followed by another one without "and" or "or".
ENDS = ("value", "closed")
BEGINNINGS = ("value", "protocol", "needy", "either", "negation")
UNFINISHED = ("logic", "negation", "relation", "operator", "needy", "either")


class Capture(Observer):
    """The frames that pass one interface of a node, with nanosecond time stamps: captures/NAME.pcap."""

    kind: Literal["capture"] = key(says="The kind of probe.", example="capture")
    name: Name | None = key(None, says="Name of the file. Default: the node's name.", example="sink")
    node: Name = key(says="Where.", example="ws2")
    link: str | None = key(
        None, says="Capture on the node's interface to this link. Default: its first interface.", example="hop"
    )
    snaplen: Snaplen = key("96 B", says="Bytes kept of each packet: 96 hold all headers and options.", example="96 B")
    filter: str = key(
        "",
        says="tcpdump filter, as in pcap-filter(7). `validate` finds most mistakes, and the lab the others before "
        "anything is sent.",
        example="tcp port 5001",
    )

    @property
    def default_name(self) -> str:
        """The node."""
        return self.node

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """What does not fit."""
        near = list(dict.fromkeys(link for link, _ in network.interfaces(self.node)))
        if self.filter.lstrip().startswith("-"):
            found = f'found "{self.filter}", which tcpdump would take for an option'
            yield ("filter",), f'{found}; expected a filter. Write "not" for a minus.'
        elif mistake := certain_mistake(self.filter):
            expected = 'expected a filter as in pcap-filter(7), such as "tcp port 5001"'
            yield ("filter",), f'found "{self.filter}": {mistake}; {expected}. Correct the filter.'
        elif near and self.link not in (None, *near):
            yield ("link",), f'found "{self.link}"; {one_of(self.link, near)}'
        else:
            yield from super().problems(network)

    def derived(self, network: NetworkPlan) -> Mapping[str, object]:
        """The first interface that fits."""
        fitting = (name for link, name in network.interfaces(self.node) if self.link in (None, link))
        return {"interface": next(fitting, "")}

    def memory_bytes(self, packets: int) -> int:
        """The file, which is written out at the cell's end."""
        return packets * (self.snaplen + PCAP_RECORD_BYTES)


def certain_mistake(text: str) -> str | None:
    """What is certainly wrong in a filter: what was found, for a sentence that begins with "found"; None if nothing is
    certain.
    """
    open_brackets: list[str] = []
    previous, before = "start", ""
    at = 0
    while text[at:].strip():
        match = TOKENS.match(text, at)
        if match is None:
            return f'"{text[at:].split(maxsplit=1)[0]}", with a character that no filter has'
        at = match.end()
        word, kind = match[0].strip(), _kind(match)
        if kind == "opened":
            open_brackets.append(word)
        if kind == "closed" and (not open_brackets or open_brackets.pop() + word not in ("()", "[]")):
            return f'"{word}" without its opening bracket'
        if mistake := _neighbours(previous, before, kind, word):
            return mistake
        previous, before = kind, word
    if open_brackets:
        return f'"{open_brackets[-1]}" without its closing bracket'
    return f'"{before}" at the end' if previous in UNFINISHED else None


def _kind(match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    if kind == "value":
        return "protocol" if match["value"] in PROTOCOLS else "needy" if match["value"] in NEEDY else "value"
    return kind


def _neighbours(previous: str, before: str, kind: str, word: str) -> str | None:
    """Whether a token cannot stand behind the one before it."""
    if previous in ENDS and kind in BEGINNINGS and not (previous == "value" and word in AFTER_A_VALUE):
        return f'"{word}" behind "{before}" without "and" or "or"'
    if previous in ENDS and word == "(":
        return f'"(" behind "{before}" without "and" or "or"'
    if previous in UNFINISHED and kind in ("logic", "relation", "closed"):
        return f'"{word}" behind "{before}"'
    if previous in ("start", "opened") and kind in ("logic", "relation", "closed"):
        return f'"{word}" behind "{before}"' if before else f'"{word}" at the start'
    if previous in ("needy", "either") and word == "[":
        return f'"[" behind "{before}"'
    return None


KIND = Capture
