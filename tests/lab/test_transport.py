"""Transports: somebody's code is both ends. Right ones are measured, wrong ones named, hostile ones harmless."""

import json
import textwrap
from pathlib import Path

import pytest

from tests.lab.ran import Cell, Ran

SCENARIO = """
parameters: {data_delay: 100 ms, ack_delay: 100 ms, data_rate: 1 Mbit/s, ack_rate: 1 Mbit/s}
links:
  hop:
    forward: {errors: {model: packet, loss: 10 %}, duplicate: 0.1}
    return: {errors: {model: packet, loss: 10 %}}
workloads:
  - {kind: transport, name: transfer, program: right.py, from: h1, to: h2, size: 20 kB, timeout: 60 s}
probes:
  - {kind: capture, node: h1}
limits: {wall_time: 20 s}
"""
STOP_AND_WAIT = (Path(__file__).parents[1] / "same_bytes" / "stop_and_wait_ends.py").read_text()
# Methods that take the place of those of STOP_AND_WAIT, and words of the reason that the cell gives.
WRONG = {
    "a wrong byte": ("on_datagram(self, now, datagram, room): return [], datagram[4:99] + b'?', None", "offset 95 of"),
    "bytes twice": ("on_datagram(self, now, datagram, room): return [], datagram[4:] * 2, None", "offset 968 of"),
    "bytes that never came": (
        "on_datagram(self, now, datagram, room): return [], datagram[:1] * 99, None",
        "a wrong byte at offset",
    ),
    "no bytes": ("on_datagram(self, now, datagram, room): return [], 5, None", "found the answer ([], 5, None)"),
    "two parts": ("on_datagram(self, now, datagram, room): return [], None", "expected (datagrams, delivered, wake)"),
    "an exception": ("on_datagram(self, now, datagram, room): return 1 // 0", ": ZeroDivisionError"),
    "a datagram too long": ("on_start(self, now): return [b'x' * 973], None", "of 973 bytes; expected 1 to 972"),
    "an empty datagram": ("on_start(self, now): return [b''], None", "a datagram of 0 bytes; expected 1 to 972"),
    "a text": ("on_start(self, now): return ['x'], None", "TypeError: on_start: found the answer (['x'], None)"),
    "a flood": (
        "on_start(self, now): return [b'x'] * 500, now\n    def on_timer(self, now): return [b'x'] * 500, now",
        "datagrams sent for 21 segments; expected at most 20 times as many",
    ),
    "a flood of acknowledgements": (
        "on_datagram(self, now, datagram, room): return [b'x'] * 9000, b'', None",
        "1420 datagrams sent for 21 segments",
    ),
    "more than a line holds": ("on_start(self, now): return [b'x' * 972] * 900, None", "expected one answer to each"),
    "no sleep": (
        "on_datagram(self, now, datagram, room): return [], b'', now\n    def on_timer(self, now, room): return [], b'', now",
        "10420 events",
    ),
    "silence": ("on_start(self, now): return [], None", "the timeout ran out"),
    "an answer that nobody asked for": (
        "on_datagram(self, now, datagram, room):\n        import os\n        os.write(1, b'{}\\n' * 3)",
        "expected one answer to each event",
    ),
    "digits that are none": (
        "on_datagram(self, now, datagram, room):\n        import os\n"
        "        os.write(1, b'{\"send\": [], \"deliver\": \"xy\", \"wake\": null}\\n'); return [], b'', None",
        "found xy for bytes",
    ),
    "printing without end": ("on_start(self, now):\n        while True: print('x' * 100_000)", "File too large"),
    "memory": ("on_start(self, now): return [b'x' * (1 << 30)], None", "MemoryError"),
    "a file": ("on_start(self, now): return [open('/tmp/x', 'rb').read()], None", ": PermissionError"),
    "a name for the other end to read": ("on_start(self, now):\n        import os; os.mkdir('/tmp/x')", "PermissionErr"),
    "a signal to the other end": ("on_start(self, now):\n        import os; os.kill(-1, 15)", ": PermissionError"),
    "the other end's class": ("on_start(self, now): return [Receiver.left], None", ": AttributeError"),
}
CODE = {
    name: STOP_AND_WAIT.replace(f"def {does.split('(')[0]}(", f"def {does}\n\n    def former(")
    if "room" not in does
    else STOP_AND_WAIT.replace("    def on_datagram(self, now, datagram, room)", f"    def {does}\n\n    def former(*_)")
    for name, (does, _) in WRONG.items()
}
CODE["the other end's class"] = CODE["the other end's class"].replace("largest):\n", "largest):\n        Receiver.left = b''\n")
CODE["right"] = STOP_AND_WAIT
CODE["an endless loop"] = STOP_AND_WAIT.replace("def on_start(self, now):", "def on_start(self, now):\n        while True: pass")
FILES = {name: f"ends_{number}.py" for number, name in enumerate(CODE)}
