"""What values of a plan may be: the types that its parts are made of."""

import ipaddress
import re
from collections.abc import Callable
from functools import partial
from typing import Annotated

from scpslab.core import names
from scpslab.core.units import LARGEST
from scpslab.plan.schema import Range, Scalar, Text

LONGEST_TEXT = 1 << 16
LONGEST_LABEL = 300


def _matches(pattern: str) -> Callable[[str], bool]:
    fits = re.compile(pattern, re.ASCII).fullmatch
    return lambda text: fits(text) is not None


def _reads(make: Callable[[str], object]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        try:
            make(text)
        except ValueError:
            return False
        return True

    return holds


def _name_of(most: int) -> Text:
    return Text(f"a name: {names.EXPECTED}, at most {most}", partial(names.is_name, most=most))


def _is_plain(text: str) -> bool:
    return len(text) <= LONGEST_TEXT and "\0" not in text


def _is_label(text: str) -> bool:
    return 0 < len(text) <= LONGEST_LABEL and text.isprintable()


def _is_image(text: str) -> bool:
    return len(text) <= LONGEST_LABEL and re.fullmatch(names.IMAGE, text, re.ASCII) is not None


def _is_filter(text: str) -> bool:
    # tcpdump would take one that begins with a minus for an option.
    return _is_plain(text) and not text.lstrip().startswith("-")


def _is_address_with_prefix(text: str) -> bool:
    return "/" in text and text.rpartition("/")[2].isdecimal() and _reads(ipaddress.ip_interface)(text)


def _is_destination(text: str) -> bool:
    return text == "default" or _reads(ipaddress.ip_network)(text)


Name = Annotated[str, _name_of(names.LONGEST)]
CellId = Annotated[str, _name_of(names.LONGEST_CELL)]
Interface = Annotated[str, _name_of(names.LONGEST_INTERFACE)]
Label = Annotated[str, Text(f"one line of 1 to {LONGEST_LABEL} characters", _is_label)]
Word = Annotated[str, Text("a word of letters, digits, _ and -", _matches(r"[A-Za-z_][A-Za-z0-9_-]{0,63}"))]
PlainText = Annotated[str, Text(f"a text of at most {LONGEST_TEXT} characters, without NUL", _is_plain)]
Seed = Annotated[str, Text("64 hexadecimal digits", _matches(r"[0-9a-f]{64}"))]
KernelSeed = Annotated[str, Text('64 hexadecimal digits, or ""', _matches(r"([0-9a-f]{64})?"))]
Filter = Annotated[str, Text("a tcpdump filter, which does not begin with a minus", _is_filter)]
Ip = Annotated[str, Text("an IP address", _reads(ipaddress.ip_address))]
IpWithPrefix = Annotated[str, Text("an IP address with its prefix, such as 10.1.0.1/24", _is_address_with_prefix)]
Destination = Annotated[str, Text('an IP prefix such as 10.2.0.0/24, or "default"', _is_destination)]
Mac = Annotated[str, Text("a MAC address such as 02:00:00:00:00:01", _matches(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}"))]
# A node's kernel settings are those of its network namespace; other parts of /proc/sys are the whole machine's.
Sysctl = Annotated[str, Text("a setting of the network, such as net.ipv4.tcp_sack", _matches(r"net(\.[a-z0-9_]+)+"))]
Image = Annotated[str, Text("a reference to a Docker image, such as vendor/stack:1.0", _is_image)]
AbsolutePath = Annotated[str, Text("an absolute path", lambda text: text.startswith("/") and _is_plain(text))]
AxisValue = Annotated[bool | int | float | str, Scalar()]

Nanoseconds = Annotated[int, Range(0, LARGEST)]
Period = Annotated[int, Range(1, LARGEST)]
Size = Annotated[int, Range(0, LARGEST)]
Amount = Annotated[int, Range(1, LARGEST)]
Rate = Annotated[int, Range(1, LARGEST)]
Port = Annotated[int, Range(1, 65_535)]
Probability = Annotated[float, Range(0, 1)]
Metric = Annotated[int, Range(0, 2**32 - 1)]
WholeSeed = Annotated[int, Range(0, LARGEST)]
