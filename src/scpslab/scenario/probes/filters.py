"""What is certainly wrong in a tcpdump filter (pcap-filter(7)), without libpcap, which is not on every machine:
neighbours that no filter has.

Only libpcap compiles filters, and the lab does so before anything is sent. Names of hosts, ports and networks are not
looked up here, and a filter that passes may still be refused there. A filter that is refused here is refused there too
(a test compares both).
"""

from __future__ import annotations

import re

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
