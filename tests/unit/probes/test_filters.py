"""Mistakes in filters that are certain: libpcap, where it is, refuses every filter that scpslab refuses."""

import ctypes
import random
from importlib import import_module

import pytest

from scpslab.scenario.probes import KINDS

capture = import_module(KINDS["capture"].__module__)
# Ethernet, PPP, raw IP, 802.11, cooked, SUNATM, MTP2: link types with primitives of their own.
LINK_TYPES = (1, 9, 12, 105, 113, 123, 140)
# Those of pcap-filter(7) that need no names of hosts, and others that people write.
VALID = """
tcp
tcp port 5001
host 10.0.0.1
net 10.0.0.0/8
net 10.0.0.0 mask 255.0.0.0
src host 10.0.0.1
src or dst port 80
src net 10 and not dst port 20
tcp src or dst portrange 6000-6008
ip6 host fe80::1
ether host 00:11:22:33:44:55
ether proto \\ip
ip proto 6
ip proto \\tcp
ip6 protochain 6
ip and ether dst 00:11:22:33:44:55
not port not 80
!tcp and !(udp or icmp)
port 80 or 443
port (80 or 443) && host (10.0.0.1 or 10.0.0.2)
tcp[13] & 2 != 0
tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and not src and dst net 10.0.0.0/24
tcp port 80 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)
ip[2:2] > 576
ether[0] & 1 = 0 and ip[16] >= 224
icmp[icmptype] != icmp-echo and icmp[icmptype] != icmp-echoreply
ip[0] & 0xf != 5
ip[6:2] & 0x1fff = 0
len > 100 and len - 5 < 200
less 100
greater 1000
broadcast
ether multicast
vlan 5 and tcp
vlan and ip
mpls 1024
type mgt subtype beacon
wlan addr1 00:11:22:33:44:55
dir tods
""".strip().splitlines()
WRONG = {
    "tcp prot 5001": '"5001" behind "prot" without "and" or "or"',
    "tpc port 5001": '"port" behind "tpc" without "and" or "or"',
    "tcp port 5001 udp": '"udp" behind "5001" without "and" or "or"',
    "host 10.0.0.1 (tcp)": '"(" behind "10.0.0.1" without "and" or "or"',
    "port": '"port" at the end',
    "tcp and": '"and" at the end',
    "and tcp": '"and" at the start',
    "port or 80": '"or" behind "port"',
    "tcp and or udp": '"or" behind "and"',
    "()": '")" behind "("',
    "port [1]": '"[" behind "port"',
    "(tcp": '"(" without its closing bracket',
    "tcp)": '")" without its opening bracket',
    "tcp[13)": '")" without its opening bracket',
    "tcp;udp": '";udp", with a character that no filter has',
    "port 80, 443": '",", with a character that no filter has',
}
MOST_WORDS = 6


@pytest.mark.parametrize("text", ["", "   ", *VALID, "host example.org", "tcp dst port iperf", *WRONG])
def test_certain_mistakes_are_named_and_all_else_passes(text):
    said = capture.certain_mistake(text)
    assert WRONG[text] in (said or "") if text in WRONG else said is None


class Program(ctypes.Structure):
    """libpcap's compiled filter."""

    _fields_ = (("number", ctypes.c_uint), ("instructions", ctypes.c_void_p))


@pytest.fixture(scope="module")
def is_filter():
    """Whether libpcap compiles a text for any of the link types."""
    try:
        pcap = ctypes.CDLL("libpcap.so.0.8")
    except OSError:
        pytest.skip("libpcap.so.0.8 is not on this machine")
    pcap.pcap_open_dead.restype = ctypes.c_void_p
    pointer = ctypes.POINTER(Program)
    pcap.pcap_compile.argtypes = [ctypes.c_void_p, pointer, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint32]
    pcap.pcap_freecode.argtypes = [pointer]
    handles = [pcap.pcap_open_dead(kind, 96) for kind in LINK_TYPES]

    def compiles(text: str) -> bool:
        program = Program()
        found = any(pcap.pcap_compile(handle, ctypes.byref(program), text.encode(), 1, 0) == 0 for handle in handles)
        pcap.pcap_freecode(ctypes.byref(program))
        return found

    return compiles


def test_the_examples_are_filters_for_libpcap_or_not(is_filter):
    assert [text for text in VALID if not is_filter(text)] == []
    assert [text for text in WRONG if is_filter(text)] == []


def test_libpcap_refuses_whatever_is_refused(is_filter):
    """Sequences of words, and filters with one word changed, left out, doubled or moved.

    Names are this machine's own: nothing asks a name server.
    """
    draws = random.Random(7)
    words = (
        capture.PROTOCOLS
        + capture.NEEDY
        + ["and", "or", "not", "!", "&&", "||"] * 6
        + ["(", ")", "[", "]"] * 5
        + ["tcp", "port", "host", "src", "dst", "ip"] * 8
    )
    words += ["80", "10.0.0.1", "localhost", "::1", "00:11:22:33:44:55", "tcp-syn", "5-9", "0x10"] * 8
    words += ["=", "!=", "<", ">=", "+", "-", "&", "<<", ":", "/"] * 3
    texts = [" ".join(draws.choice(words) for _ in range(draws.randint(1, MOST_WORDS))) for _ in range(6000)]
    for _ in range(4000):
        parts = draws.choice(VALID).split()
        place = draws.randrange(len(parts))
        parts[place : place + draws.randint(0, 1)] = draws.choice(([], [draws.choice(words)], [parts[place]] * 2))
        texts.append(" ".join(parts))
    refused = [text for text in texts if capture.certain_mistake(text)]

    assert [text for text in refused if is_filter(text)] == []
    # It is of use: most of what libpcap refuses is found.
    assert len(refused) > 0.6 * sum(not is_filter(text) for text in texts)
