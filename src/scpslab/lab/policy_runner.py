"""Runs a policy in a node, as a program of its own: `python3 -I policy_runner.py`.

One line of JSON comes for each event, and one line goes for each answer.

The policy is somebody's code. Before any of it runs, the process becomes a user without rights that can open no file
and no socket and start no program: a policy knows what it is told, and can do nothing but answer. The first line is
{"file": …, "code": …, "segments": …, "packet_bytes": …}.
"""

# ruff: noqa: F401 (the modules are there for the policy, which cannot load any itself)
import abc
import bisect
import collections
import contextlib
import copy
import dataclasses
import enum
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
import random
import resource
import statistics
import sys
import traceback
import types
import typing

NOBODY = 65534
MEMORY_BYTES = 256 << 20
LOG_BYTES = 1 << 20
LONGEST_ANSWER = 10_000


def confine() -> None:
    """Gives up all rights; what is open stays open."""
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


def load(first: dict[str, typing.Any]) -> typing.Any:
    """The policy's object."""
    code, file = first["code"], first["file"]
    module = types.ModuleType("policy")
    sys.modules["policy"] = module
    # So that messages about errors show the line, which the process cannot read from a file.
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    exec(compile(code, file, "exec"), module.__dict__)  # noqa: S102 (this is what the process is for)
    return module.Policy(segments=first["segments"], packet_bytes=first["packet_bytes"])


def answer(policy: typing.Any, event: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """What the policy wants: segments to send now, and when to be woken."""
    now = event["now"]
    if event["event"] == "answer":
        found = policy.on_answer(now, types.SimpleNamespace(**event["answer"]))
    else:
        found = policy.on_start(now) if event["event"] == "start" else policy.on_timer(now)
    try:
        segments, wake = found
        segments = [operator.index(segment) for segment in itertools.islice(segments, LONGEST_ANSWER + 1)]
        wake = None if wake is None else float(wake)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"on_{event['event']}: found the answer {found!r:.80}; expected (segments, wake), such as ([0, 1, 2], "
            "now + 0.5) or ([], None)"
        ) from error
    return {"send": segments, "wake": wake}


def main() -> None:
    """Answers events until there are no more."""
    events, answers = sys.stdin, io.TextIOWrapper(io.FileIO(1, "w"), encoding="ascii", write_through=True)
    # What the policy prints goes to the log.
    sys.stdout = sys.stderr
    first = json.loads(events.readline())
    confine()
    try:
        policy = load(first)
        answers.write('{"ready": true}\n')
        for line in events:
            answers.write(json.dumps(answer(policy, json.loads(line))) + "\n")
    except BaseException as error:
        with contextlib.suppress(OSError):
            traceback.print_exc()
        answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}) + "\n")


main()
