"""What the processor would tell a program of the machine, virtual time answers: its clock, and C++'s random numbers."""

import json
import re
import shutil
import subprocess

import pytest

from scpslab.core.project import ROOT
from scpslab.setup import ensure, silent

# RDTSC and RDTSCP with both halves of the answer in one register, at places where a word of memory or a page ends.
CLOCK = """import ctypes, mmap, time
memory = mmap.mmap(-1, 8192, prot=7)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
def reader(offset, code):
    code = bytes.fromhex(code + "48c1e2204809d0c3")
    memory[offset : offset + len(code)] = code
    return ctypes.CFUNCTYPE(ctypes.c_uint64)(start + offset)
for offset in (0, 5, 6, 7, 4093, 4094, 4095):
    for code in ("0f31", "0f01f9"):
        read = reader(offset, code)
        print("clock", read(), time.clock_gettime_ns(time.CLOCK_MONOTONIC))
turns, end = 0, read() + 1000000
while read() < end:
    turns += 1
print("turns", turns)
"""
# As a C++ program that is linked to libstdc++ finds them: what is loaded first comes first.
DEVICE = """import ctypes
ctypes.CDLL("libstdc++.so.6", ctypes.RTLD_GLOBAL)
found, device = ctypes.CDLL(None), ctypes.create_string_buffer(5000)
text = ctypes.create_string_buffer(32)
name = ctypes.create_string_buffer(b"default")
text[0:16] = ctypes.addressof(name).to_bytes(8, "little") + (7).to_bytes(8, "little")
found._ZNSt13random_device7_M_initERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(device, text)
draw = found._ZNSt13random_device9_M_getvalEv
draw.restype = ctypes.c_uint
print("device", [draw(device) for _ in range(4)])
"""
# The page that programs map which must not be stopped for a look at the clock.
PAGE = """import ctypes, mmap, os, time
file = os.open("/proc/lab_clock", os.O_RDONLY)
map = ctypes.CDLL(None, use_errno=True).mmap
map.restype, map.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
page = ctypes.c_uint64.from_address(map(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, file, 0))
call, told = ctypes.CDLL(None).syscall, (ctypes.c_long * 2)()
for pause_s in (0, 0.0000005, 0.25, 7):
    time.sleep(pause_s)
    shown = page.value
    call(228, time.CLOCK_MONOTONIC, told)
    print("page", shown, told[0] * 10**9 + told[1])
write = mmap.PROT_READ | mmap.PROT_WRITE
for words in ((4096, write, mmap.MAP_SHARED), (4096, write, mmap.MAP_PRIVATE), (8192, mmap.PROT_READ, mmap.MAP_SHARED)):
    map(None, *words, file, 0)
    print("refused", ctypes.get_errno())
"""
# Clocks as programs ask for them, and as the kernel tells them.
CLOCKS = """import ctypes, time
call = ctypes.CDLL(None).syscall
def told(clock):
    at = (ctypes.c_long * 2)()
    call(228, clock, at)
    return at[0] * 10**9 + at[1]
for name in ("REALTIME", "MONOTONIC", "MONOTONIC_RAW", "BOOTTIME"):
    clock = getattr(time, "CLOCK_" + name)
    for pause_s in (0, 0.25):
        time.sleep(pause_s)
        reads = [time.clock_gettime_ns(clock) for _ in range(3)]
        print(name, reads[2] - reads[0], told(clock) - reads[2])
turns, end = 0, time.monotonic_ns() + 1000000
while time.monotonic_ns() < end:
    turns += 1
print("waited", turns)
"""
# A value in XMM15 while one system call is made again and again: signals whose handler clears it, forks, waits, threads.
REGISTERS = """import ctypes, mmap, os, signal, threading
memory = mmap.mmap(-1, 4096, prot=7)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
keep = bytes.fromhex("664c0f6eff 4989f1 4889d7 4889ce 4c89c8 0f05 49ffc8 75f6 664c0f7ef8 c3")
memory[: len(keep)] = keep
memory[256:261] = bytes.fromhex("450f57ff c3")
held = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * 5)(start)
ctypes.CDLL(None).signal(signal.SIGUSR1, ctypes.c_void_p(start + 256))
me, pause = os.getpid(), (ctypes.c_long * 2)(0, 1000)
at = ctypes.addressof(pause)
wrong = [name for name, words in (("signals", (62, me, 10, 50)), ("waits", (35, at, 0, 50))) if held(7, *words) != 7]
value = held(8, 57, 0, 0, 1)
if os.getpid() != me:
    os._exit(value != 8)
child = os.waitstatus_to_exitcode(os.wait()[1])
found = {}
def thread(number):
    found[number] = [held(number, *words) for words in ((24, 0, 0, 500), (35, at, 0, 50), (62, me, 10, 20)) * 3]
threads = [threading.Thread(target=thread, args=(number,)) for number in (21, 22, 23)]
for one in threads: one.start()
for one in threads: one.join()
wrong += [number for number, values in found.items() if set(values) != {number}]
print("registers", wrong, value, child, held(9, 35, at, 0, 3))
"""
# OpenSSL's are used by its engine of that name alone, and its variable hides them (OPENSSL_ia32cap); libstdc++'s are
# never reached.
WITH_RANDOM_INSTRUCTIONS = {"libcrypto.so.3", "libstdc++.so.6", "legacy.so"}
# RDRAND and RDSEED of a register, anywhere: few files have these bytes, and fewer the instructions.
BYTES = re.compile(rb"\x0f\xc7[\xf0-\xff]")


@pytest.fixture(scope="module")
def printed(run_once):
    """The words that the programs printed on a node, line by line, the same in two cold runs."""
    programs = dict(enumerate((CLOCK, DEVICE, PAGE, CLOCKS, REGISTERS), 1))
    steps = [
        {"at": f"{number} s", "node": "h1", "command": f"python3 -c '{program}'"}
        for number, program in programs.items()
    ]
    first, second = (run_once(f"events: {json.dumps(steps)}\n").cell for _ in range(2))
    assert first.status == "completed", first.reason
    said, again = ("".join(cell.log(f"events-{number}-h1") for number in programs) for cell in (first, second))
    assert said == again
    return [line.split(" ", 1) for line in said.splitlines()]


def test_the_processor_s_clock_is_virtual_and_moves(printed):
    """It says what the monotonic clock says, which counts in steps of 256 ns; a program that waits for it in a loop gets
    on, a step a turn.
    """
    clocks = [tuple(map(int, numbers.split())) for word, numbers in printed if word == "clock"]
    (turns,) = (int(number) for word, number in printed if word == "turns")

    assert len(clocks) == 14
    assert all(abs(monotonic - clock) <= 256 for clock, monotonic in clocks)
    assert turns < 1_000_000 // 256 + 200


def test_the_page_says_what_the_clock_says_and_is_for_reading_alone(printed):
    looks = [tuple(map(int, numbers.split())) for word, numbers in printed if word == "page"]
    apart = [monotonic - page for page, monotonic in looks]

    # Asking the kernel takes 256 ns, and the page is looked at before.
    assert len(looks) == 4
    assert max(apart) - min(apart) <= 256
    assert looks[2][0] - looks[1][0] >= 250_000_000
    assert looks[3][0] - looks[2][0] >= 7_000_000_000
    assert [numbers for word, numbers in printed if word == "refused"] == ["13", "1", "22"]


def test_reading_a_clock_is_no_system_call_and_who_waits_for_it_in_a_loop_gets_on(printed):
    """A call takes 256 ns, so reads that are none show the same time; from the 101st at one instant on they are calls."""
    for name in ("REALTIME", "MONOTONIC", "MONOTONIC_RAW", "BOOTTIME"):
        looks = [tuple(map(int, numbers.split())) for word, numbers in printed if word == name]
        assert [apart for apart, _ in looks] == [512 if name == "BOOTTIME" else 0] * 2
        assert all(0 < behind <= 512 for _, behind in looks)


def test_floating_point_registers_survive_signals_forks_waits_and_threads(printed):
    assert dict(printed)["registers"] == "[] 8 0 9"


def test_random_device_has_the_cell_s_numbers(printed):
    assert len(set(json.loads(dict(printed)["device"]))) == 4


def test_programs_of_the_guest_with_the_processor_s_random_numbers_are_known(tmp_path):
    """By disassembly of all that could have them; docs/virtual-time.md names them."""
    if not (shutil.which("objdump") and shutil.which("fsck.erofs")):
        pytest.skip("needs objdump (binutils) and fsck.erofs (erofs-utils)")
    root = tmp_path / "root"
    image = ensure(silent).boot_dir / "guest.erofs"
    subprocess.run(["fsck.erofs", f"--extract={root}", str(image)], check=True, capture_output=True)
    found = set()
    for file in (file for file in root.rglob("*") if file.is_file() and not file.is_symlink()):
        content = file.read_bytes()
        if content.startswith(b"\x7fELF") and BYTES.search(content):
            words = ["objdump", "--disassemble", "--no-show-raw-insn", str(file)]
            code = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            if re.search(r"\t(rdrand|rdseed)\b", code):
                found.add(re.sub(r"(\.so\.\d+)[.\d]*$", r"\1", file.name))

    assert found == WITH_RANDOM_INSTRUCTIONS
    page = (ROOT / "docs" / "virtual-time.md").read_text()
    assert all(f"`{name}`" in page for name in found)
