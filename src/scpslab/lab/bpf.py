"""Loading eBPF programs from an object file, and maps that are read and written as memory.

A loader of 150 lines and not libbpf, because the lab needs maps whose sizes follow from the plan and shared between
programs, and because starting `tc` with its own loader costs more than the whole set-up of a link. Sources: bpf(2),
ELF-64 object file format.
"""

import ctypes
import mmap
import os
import platform
import struct
from pathlib import Path

MAP_CREATE, MAP_UPDATE, PROG_LOAD, OBJ_PIN, PROG_ATTACH = 0, 2, 5, 6, 8
MAP_HASH, MAP_ARRAY, MAP_LRU_HASH = 1, 2, 9
MMAPABLE = 1 << 10
PROG_SCHED_CLS, PROG_CGROUP_SKB, PROG_SOCK_OPS = 3, 8, 13
ATTACH_INGRESS, ATTACH_EGRESS, ATTACH_SOCK_OPS = 0, 1, 3
PSEUDO_MAP_FD = 1
SYSCALL_NUMBER = {"x86_64": 321, "aarch64": 280}

_libc = ctypes.CDLL(None, use_errno=True)


class BpfError(OSError):
    """The kernel refused a program or map; the message ends with the verifier's last lines."""


def _bpf(command: int, attr: bytes, what: str, log: ctypes.Array[ctypes.c_char] | None = None) -> int:
    buffer = ctypes.create_string_buffer(attr.ljust(144, b"\0"))
    result = _libc.syscall(SYSCALL_NUMBER[platform.machine()], command, buffer, len(buffer))
    if result < 0:
        error = ctypes.get_errno()
        tail = " | ".join(log.value.decode(errors="replace").strip().splitlines()[-4:]) if log else ""
        raise BpfError(error, f"{what}: {os.strerror(error)} {tail}".strip())
    return int(result)


class ArrayMap:
    """A BPF array in memory that this process shares with the kernel's programs: `value_bytes` × `entries`."""

    def __init__(self, name: str, value_bytes: int, entries: int) -> None:
        self.stride = (value_bytes + 7) & ~7
        attr = struct.pack("=IIIII", MAP_ARRAY, 4, value_bytes, max(entries, 1), MMAPABLE)
        self.fd = _bpf(MAP_CREATE, attr.ljust(28, b"\0") + name.encode()[:15].ljust(16, b"\0"), f"map {name}")
        length = -(-self.stride * max(entries, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.memory = mmap.mmap(self.fd, length, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)

    def write(self, entry: int, value: bytes) -> None:
        """Puts `value` at an entry; several entries at once when it is longer than one."""
        self.memory[entry * self.stride : entry * self.stride + len(value)] = value

    def read(self, entry: int, size: int) -> bytes:
        """`size` bytes from an entry on."""
        return self.memory[entry * self.stride : entry * self.stride + size]


class HashMap:
    """A BPF hash of eight bytes to u32, or to what programs alone put there; `forgets`: it makes room for new ones."""

    def __init__(self, name: str, entries: int, value_bytes: int = 4, *, forgets: bool = False) -> None:
        attr = struct.pack("=IIIII", MAP_LRU_HASH if forgets else MAP_HASH, 8, value_bytes, entries, 0)
        self.fd = _bpf(MAP_CREATE, attr.ljust(28, b"\0") + name.encode()[:15].ljust(16, b"\0"), f"map {name}")

    def put(self, key: bytes, value: int) -> None:
        """Stores one value."""
        key_buffer, value_buffer = map(ctypes.create_string_buffer, (key, struct.pack("=I", value)))
        attr = struct.pack("=IxxxxQQQ", self.fd, ctypes.addressof(key_buffer), ctypes.addressof(value_buffer), 0)
        _bpf(MAP_UPDATE, attr, "map entry")


class ObjectFile:
    """An object file that clang made for the bpf target."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        table, count, names = struct.unpack_from("<40xQ12xHH", self.data)
        self.headers = [struct.unpack_from("<IIQQQQIIQQ", self.data, table + 64 * i) for i in range(count)]
        self.names = [self._text(self.headers[names][4] + header[0]) for header in self.headers]

    def _text(self, at: int) -> str:
        return self.data[at : self.data.index(b"\0", at)].decode()

    def _section(self, name: str) -> bytes:
        header = self.headers[self.names.index(name)]
        return self.data[header[4] : header[4] + header[5]]

    def load(self, section: str, kind: int, maps: dict[str, int]) -> int:
        """Loads the program of a section with map symbols replaced by the descriptors in `maps`; returns its
        descriptor.
        """
        code = bytearray(self._section(section))
        strings = self.headers[self.names.index(".strtab")][4]
        symbols = self._section(".symtab")
        relocations = self._section(".rel" + section) if ".rel" + section in self.names else b""
        for offset, info in struct.iter_unpack("<QQ", relocations):
            name = self._text(strings + struct.unpack_from("<I", symbols, 24 * (info >> 32))[0])
            code[offset + 1] = (code[offset + 1] & 0x0F) | PSEUDO_MAP_FD << 4
            struct.pack_into("<i", code, offset + 4, maps[name])
        program = ctypes.create_string_buffer(bytes(code), len(code))
        license_name = ctypes.create_string_buffer(self._section("license"))
        log = ctypes.create_string_buffer(1 << 20)

        def attr(level: int) -> bytes:
            # A log costs as much as the check itself, so it is asked for only when a load has failed.
            log_at, log_size = (ctypes.addressof(log), len(log)) if level else (0, 0)
            places = ctypes.addressof(program), ctypes.addressof(license_name)
            head = struct.pack("=IIQQIIQ", kind, len(code) // 8, *places, level, log_size, log_at)
            return head + struct.pack("=II16s", 0, 0, section.rsplit("/", maxsplit=1)[-1].encode()[:15])

        try:
            return _bpf(PROG_LOAD, attr(0), section)
        except BpfError:
            return _bpf(PROG_LOAD, attr(1), section, log)


def pin(fd: int, path: str) -> None:
    """Makes a program or map reachable under a name in a bpf file system."""
    name = ctypes.create_string_buffer(path.encode())
    _bpf(OBJ_PIN, struct.pack("=QI", ctypes.addressof(name), fd), path)


def attach_to_cgroup(program: int, folder: str, where: int) -> None:
    """Attaches a program to the sockets of a cgroup (version 2)."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _bpf(PROG_ATTACH, struct.pack("=IIII", fd, program, where, 0), folder)
    finally:
        os.close(fd)
