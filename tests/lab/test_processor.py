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
# OpenSSL's are used by its engine of that name alone, and its variable hides them (OPENSSL_ia32cap); libstdc++'s are
# never reached.
WITH_RANDOM_INSTRUCTIONS = {"libcrypto.so.3", "libstdc++.so.6", "legacy.so"}
# RDRAND and RDSEED of a register, anywhere: few files have these bytes, and fewer the instructions.
BYTES = re.compile(rb"\x0f\xc7[\xf0-\xff]")


@pytest.fixture(scope="module")
def printed(run_once):
    """The words that both programs printed on a node, line by line, the same in two cold runs."""
    steps = [
        {"at": f"{number} s", "node": "h1", "command": f"python3 -c '{program}'"}
        for number, program in enumerate((CLOCK, DEVICE), 1)
    ]
    first, second = (run_once(f"events: {json.dumps(steps)}\n").cell for _ in range(2))
    assert first.status == "completed", first.reason
    said, again = ("".join(cell.log(f"events-{number}-h1") for number in (1, 2)) for cell in (first, second))
    assert said == again
    return [line.split(" ", 1) for line in said.splitlines()]


def test_the_processor_s_clock_is_virtual_and_moves(printed):
    """It says what the monotonic clock says, to 1 us; a program that waits for it in a loop gets on, 256 ns a turn."""
    clocks = [tuple(map(int, numbers.split())) for word, numbers in printed if word == "clock"]
    (turns,) = (int(number) for word, number in printed if word == "turns")

    assert len(clocks) == 14
    assert all(0 <= monotonic - clock < 1000 for clock, monotonic in clocks)
    assert turns < 1_000_000 // 256 + 200


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
