"""Transports: somebody's code is both ends. Right ones are measured, wrong ones named, hostile ones harmless."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests import golden
from tests.lab.ran import Cell, Ran

from scpslab.kinds.workloads.policy.lab import content

SCENARIO = """
links:
  hop:
    forward: {rate: 1 Mbit/s, delay: 100 ms, errors: {model: packet, loss: 10 %}, duplicate: 0.3}
    return: {rate: 1 Mbit/s, delay: 100 ms, errors: {model: packet, loss: 10 %}}
workloads:
  - {kind: transport, name: transfer, program: ends_0.py, from: h1, to: h2, size: 20 kB, timeout: 60 s}
probes:
  - {kind: capture, node: h1}
limits: {wall_time: 20 s}
"""
STOP_AND_WAIT = (Path(__file__).parents[1] / "same_bytes" / "stop_and_wait_ends.py").read_text()
# Methods of the sender or (with `room`) of the receiver.
METHODS = {
    "START": "def on_start(self, now):",
    "TIMER": "def on_timer(self, now):",
    "TAKE": "def on_datagram(self, now, datagram, room):",
    "WOKEN": "def on_timer(self, now, room):",
}
WRONG = {name: methods.split(" || ") for _, (name, methods) in golden.rows("wrong ends of a transport", 2)}


def code(methods: list[str]) -> str:
    """The two ends, with other methods, each behind its word of METHODS."""
    whole = [f"{METHODS[word]} {rest}" for word, _, rest in (method.partition(" ") for method in methods)]
    ends = {name: [one for one in whole if ("room" in one) == (name == "Receiver")] for name in ("Sender", "Receiver")}
    bodies = [f"\n\nclass {name}({name}):\n    " + "\n    ".join(own) for name, own in ends.items() if own]
    return STOP_AND_WAIT + "".join(bodies)


FILLS = """

def fill(base):
    class End(base):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            self.much = []
            try:
                while True:
                    self.much.append(b"x" * 1_000_000)
            except MemoryError:
                self.much.pop()
            print(len(self.much))

    return End


Sender, Receiver = fill(Sender), fill(Receiver)
"""
# Futexes on a page that both ends have mapped, clocks that are another process's by its number, and all else that the kernel
# could be asked for: whatever both ends may use is a way past the link.
ASKS = """

def asking(base):
    class End(base):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            import ctypes, errno, platform
            libc = ctypes.CDLL(None, use_errno=True)
            numbers, clock = {
                # The last two are for the kernel's own probes; it lets nobody refuse them, and does nothing without a probe.
                "x86_64": ({0, 1, 9, 10, 11, 25, 12, 13, 14, 15, 318, 60, 231, 335, 336}, 228),
                "aarch64": ({63, 64, 222, 226, 215, 216, 214, 134, 135, 139, 278, 93, 94}, 113),
            }[platform.machine()]
            page = ctypes.c_void_p(ctypes.cast(libc.printf, ctypes.c_void_p).value & ~4095)
            held = ctypes.create_string_buffer(16)

            def answered(number, *given):
                ctypes.set_errno(0)
                return libc.syscall(number, *given) != -1 or ctypes.get_errno() != errno.EPERM

            print([n for n in range(600) if n not in numbers | {clock} and answered(n, page, 1, 1, None, None, 0)])
            print([n for n in range(-80, 40) if answered(clock, ctypes.c_int(n), held)])

    return End


Sender, Receiver = asking(Sender), asking(Receiver)
"""
CODE = {
    "right": STOP_AND_WAIT,
    "curious": STOP_AND_WAIT + ASKS,
    "full of memory": STOP_AND_WAIT + FILLS,
    "an endless loop": code(["START \n        while True: pass"]),
    **{name: code(methods) for name, methods in WRONG.items()},
}
FILES = {name: f"ends_{number}.py" for number, name in enumerate(CODE)}


@pytest.fixture(scope="module")
def ran(run_once) -> Ran:
    """A run with a cell of every program."""
    for name, text in CODE.items():
        (run_once.folder / FILES[name]).write_text(text)
    files = json.dumps(list(FILES.values()))
    return run_once(f"{SCENARIO}sweep: {{program: {{set: [workloads.transfer.program], values: {files}}}}}\n")


@pytest.fixture(scope="module")
def cells(ran) -> dict[str, Cell]:
    """The cells by what their programs do."""
    by_file = ran.by("program")
    return {name: by_file[file] for name, file in FILES.items()}


def test_every_byte_is_delivered_and_what_it_took_is_counted(ran, cells):
    row = next(row for row in ran.rows if row["program"] == FILES["right"])
    forward, back = (cells["right"].account(direction) for direction in ("forward", "return"))

    assert (row["status"], row["bytes"]) == ("completed", "20000")
    # One round trip of 200 ms for each of 21 segments.
    assert float(row["transfer_s"]) > 21 * 0.2
    assert int(row["sent_packets"]) == forward["offered_packets"] > 21
    assert int(row["returned_packets"]) == back["offered_packets"] >= 21
    assert forward["duplicated_packets"] > 0
    assert int(row["sent_bytes"]) == pytest.approx(int(row["sent_packets"]) * 20_000 / 21 + 4, rel=0.06)
    assert float(row["efficiency"]) == pytest.approx(20_000 / int(row["sent_bytes"]))


@golden.each("wrong ends of a transport", "case name methods")
def test_a_wrong_or_hostile_end_ends_its_own_transfer_and_nothing_else(case, cells, name, methods):
    assert cells[name].status == "incomplete", methods
    case.hold(cells[name].reason.replace(FILES[name], "ends.py"))


def test_two_ends_that_fill_their_memory_leave_the_lab_enough(cells):
    assert cells["full of memory"].completed
    assert all(int(cells["full of memory"].log(f"transfer-{node}")) > 80 for node in ("h1", "h2"))


@pytest.mark.parametrize("node", ["h1", "h2"])
def test_the_kernel_answers_no_call_that_could_be_a_way_past_the_link(cells, node: str):
    assert cells["curious"].completed
    calls, clocks = cells["curious"].log(f"transfer-{node}").splitlines()
    assert (calls, clocks) == ("[]", str(list(range(12))))


def test_an_end_that_never_answers_ends_at_the_wall_limit(cells):
    assert cells["an endless loop"].status == "failed"
    assert "wall" in cells["an endless loop"].reason
    assert "policy_runner" in cells["an endless loop"].reason


# Sends everything at once; the receiver delivers what comes and tells its room.
AT_ONCE = (
    STOP_AND_WAIT
    + """

class Sender(Sender):
    def on_start(self, now):
        return [NUMBER.pack(number) + part for number, part in enumerate(self.parts)], None

    def on_datagram(self, now, datagram):
        return [], None


class Receiver(Receiver):
    def on_datagram(self, now, datagram, room):
        print(f"{now:.9f} {room}")
        return super().on_datagram(now, datagram, room)
"""
)


def test_a_slow_receiver_reads_at_its_rate_and_drops_what_its_buffer_cannot_hold(run):
    (run.folder / "ends_0.py").write_text(AT_ONCE)
    cell = run(
        SCENARIO,
        "links.hop.*.errors.model=none",
        "links.hop.forward.duplicate=0",
        "workloads.transfer.buffer=4 kB",
        "workloads.transfer.read_rate=100 kbit/s",
        "workloads.transfer.timeout=5 s",
    ).cell
    failed = cell.line("transfer", event="failed")
    told = [line.split() for line in cell.log("transfer-h2").splitlines()]
    distances = {round((float(two[0]) - float(one[0])) * 1e6) for one, two in pairwise(told)}

    # Of 21 datagrams of 8 ms on the link, each of which takes 78 ms to read, four wait and two are read meanwhile.
    assert len(told) + failed["unread_packets"] == 21
    assert len(told) == 6
    # The last segment is a short one.
    assert distances == {round(972 * 8 / 0.1), round(644 * 8 / 0.1)}
    assert all(0 < int(room) <= 4000 for _, room in told)
    assert failed["delivered_bytes"] < 968 * 6


def test_a_receiver_that_knows_the_bytes_delivers_none_before_they_came(run):
    (run.folder / "ends_0.py").write_text(STOP_AND_WAIT)
    (workload,) = run(SCENARIO).cell.plan.cell.workloads
    data = content(workload.payload_seed, 0, workload.bytes_)
    knows = f"return [], bytes.fromhex('{data[:2000].hex()}'), None"
    (run.folder / "ends_0.py").write_text(code([f"TAKE {knows}"]))

    reason = "found 2000 bytes delivered after 972 bytes of datagrams; expected nothing that has not arrived"
    assert reason in run(SCENARIO).cell.reason
