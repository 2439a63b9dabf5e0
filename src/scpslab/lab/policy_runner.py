"""Runs a program of the user's in a node, in a process of its own: `python3 -I policy_runner.py`.

One line of JSON comes for each event, and one line goes for each answer. Bytes are {"hex": "…"} in what comes, and
their hexadecimal digits in what goes.

The program is somebody's code: a policy, or an end of a transport. Before any of it runs, the process becomes a user
without rights, and the kernel refuses all its system calls but those of reading, writing, memory and the clock
(seccomp(2)). So it opens no file and no socket, starts no program, and neither signals nor sees another process: it
knows what it is told, and can do nothing but answer. The first line is {"file": …, "code": …, "class": …, "given": …}.
"""

# ruff: noqa: F401 (the modules are there for the policy, which cannot load any itself)
import abc
import bisect
import collections
import contextlib
import copy
import ctypes
import dataclasses
import enum
import errno
import fractions
import functools
import heapq
import io
import itertools
import json
import linecache
import math
import operator
import os
import platform
import random
import resource
import statistics
import struct
import sys
import traceback
import types
import typing

NOBODY = 65534
# Two of them leave the lab half of a guest (limits.memory).
MEMORY_BYTES = 128 << 20
LOG_BYTES = 1 << 20
LONGEST_ANSWER = 10_000


# By machine: its number of linux/audit.h, and the numbers of read, write, mmap, mprotect, munmap, mremap, brk,
# rt_sigaction, rt_sigprocmask, rt_sigreturn, getrandom, exit, exit_group. Two programs have the pages of one libc, so
# neither futexes on them (a thread needs none) nor advice about them are among these.
ALLOWED = {
    "x86_64": (0xC000003E, (0, 1, 9, 10, 11, 25, 12, 13, 14, 15, 318, 60, 231)),
    "aarch64": (0xC00000B7, (63, 64, 222, 226, 215, 216, 214, 134, 135, 139, 278, 93, 94)),
}
# clock_gettime, of the clocks that have a name alone (linux/time.h): others are of a process, by its number.
CLOCK_GETTIME, CLOCKS = {"x86_64": 228, "aarch64": 113}, 12
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2
# linux/seccomp.h and bpf_common.h: what a filter answers, and its instructions.
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
LOAD, JUMP_IF_EQUAL, JUMP_IF_NOT_LESS, RETURN = 0x20, 0x15, 0x35, 0x06


def confine() -> None:
    """Gives up all rights; what is open stays open."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    # The log is the only file that is open.
    limits = {
        resource.RLIMIT_NOFILE: 0,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: MEMORY_BYTES,
        resource.RLIMIT_FSIZE: LOG_BYTES,
    }
    for what, limit in limits.items():
        resource.setrlimit(what, (limit, limit))
    architecture, numbers = ALLOWED[platform.machine()]
    # struct seccomp_data: the number of the call at 0, the architecture at 4, the first argument at 16. A jump skips so
    # many instructions.
    code = [(LOAD, 0, 0, 4), (JUMP_IF_EQUAL, 0, len(numbers) + 3, architecture), (LOAD, 0, 0, 0)]
    code += [(JUMP_IF_EQUAL, len(numbers) + 3 - at, 0, number) for at, number in enumerate(numbers)]
    code += [(JUMP_IF_EQUAL, 0, 2, CLOCK_GETTIME[platform.machine()])]
    code += [(LOAD, 0, 0, 16), (JUMP_IF_NOT_LESS, 0, 1, CLOCKS)]
    code += [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    held = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(held)))
    for option, value, at in ((PR_SET_NO_NEW_PRIVS, 1, None), (PR_SET_SECCOMP, FILTER, program)):
        if libc.prctl(option, ctypes.c_ulong(value), at, None, None):
            raise OSError(ctypes.get_errno(), "prctl")


def value(said: typing.Any) -> typing.Any:
    """What a line says of an argument: bytes, an object with fields, or a plain value."""
    if not isinstance(said, dict):
        return said
    return bytes.fromhex(said["hex"]) if "hex" in said else types.SimpleNamespace(**said)


def load(first: dict[str, typing.Any]) -> typing.Any:
    """The program's object."""
    code, file = first["code"], first["file"]
    module = types.ModuleType("policy")
    sys.modules["policy"] = module
    # So that messages about errors show the line, which the process cannot read from a file.
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    exec(compile(code, file, "exec"), module.__dict__)  # noqa: S102 (this is what the process is for)
    return getattr(module, first["class"])(**{name: value(said) for name, said in first["given"].items()})


def digits(data: typing.Any) -> str:
    """Bytes, as a line has them."""
    return memoryview(data).hex()


def listed(one: typing.Callable[[typing.Any], typing.Any]) -> typing.Callable[[typing.Any], typing.Any]:
    """A list of such values, of which the lab will refuse more than it may have."""
    return lambda found: [one(each) for each in itertools.islice(found, LONGEST_ANSWER + 1)]


def moment(found: typing.Any) -> float | None:
    """A time to be woken."""
    return None if found is None else float(found)


# What each class answers: its parts and how lines have them, and what a wrong answer is shown.
DATAGRAMS = listed(digits)
ANSWERS: dict[str, tuple[dict[str, typing.Callable[[typing.Any], typing.Any]], str]] = {
    "Policy": (
        {"send": listed(operator.index), "wake": moment},
        "(segments, wake), such as ([0, 1, 2], now + 0.5) or ([], None)",
    ),
    "Sender": (
        {"send": DATAGRAMS, "wake": moment},
        '(datagrams, wake), such as ([b"a datagram"], now + 0.5) or ([], None)',
    ),
    "Receiver": (
        {"send": DATAGRAMS, "deliver": digits, "wake": moment},
        '(datagrams, delivered, wake), such as ([b"a datagram"], b"bytes", now + 0.5) or ([], b"", None)',
    ),
}


def answer(program: typing.Any, class_: str, event: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """What the program wants."""
    call, (parts, expected) = event["call"], ANSWERS[class_]
    found = getattr(program, call)(event["now"], *map(value, event["given"]))
    try:
        return {name: part(one) for (name, part), one in zip(parts.items(), found, strict=True)}
    except (TypeError, ValueError) as error:
        raise TypeError(f"{call}: found the answer {found!r:.80}; expected {expected}") from error


def main() -> None:
    """Answers events until there are no more."""
    events, answers = sys.stdin, io.TextIOWrapper(io.FileIO(1, "w"), encoding="ascii", write_through=True)
    # What the program prints goes to the log.
    sys.stdout = sys.stderr
    first = json.loads(events.readline())
    confine()
    try:
        program = load(first)
        answers.write('{"ready": true}\n')
        for line in events:
            answers.write(json.dumps(answer(program, first["class"], json.loads(line))) + "\n")
    except BaseException as error:
        with contextlib.suppress(OSError):
            traceback.print_exc()
        answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}) + "\n")


main()
