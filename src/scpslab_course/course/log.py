"""The log of a student's folder: JSON lines, each with the SHA-256 of the line before (decision 0703).

What it proves and what not: docs/teaching.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from scpslab.core import strict_json
from scpslab.plan import schema
from scpslab.plan.schema import Items, PlanError, Range, Text
from scpslab.plan.values import Label, PlainText, Seed

LARGEST_BYTES, MOST_LINES = 4 << 20, 10_000
# A `begin` without the `run` that follows it is a run that was interrupted; without `begin` a `run` is of an older
# version.
Event = Literal["start", "predict", "begin", "run"]


class LogError(ValueError):
    """A log that is none, or whose chain is broken; the message says where."""


def _is_time(text: str) -> bool:
    return (
        len(text) == 20
        and text[4] + text[7] + text[10] + text[13] + text[16] + text[19] == "--T::Z"
        and text.isascii()
        and text.isprintable()
    )


Time = Annotated[str, Text("a time such as 2026-11-22T21:00:00Z", _is_time)]


@dataclass(frozen=True, kw_only=True)
class RunState:
    """How far the run of a scenario is: finished cells, and the digest of their results.csv ("" without one)."""

    scenario: Label
    finished: Annotated[int, Range(0, 1_000_000)]
    results: Annotated[
        str,
        Text(
            '64 hexadecimal digits, or ""',
            lambda text: text == "" or (len(text) == 64 and set(text) <= set("0123456789abcdef")),
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: what happened, when by the clock of the student's machine, and the state of the runs."""

    number: Annotated[int, Range(1, MOST_LINES)]
    at: Time
    event: Event
    name: Annotated[str, Text("a text of one line", lambda text: len(text) <= 300 and text.isprintable())]
    value: PlainText
    runs: Annotated[tuple[RunState, ...], Items(0, 100)]
    before: Seed


def first_link(variant_digest: str) -> str:
    """What the first line has for the line before: the log belongs to one variant."""
    return hashlib.sha256(f"scpslab log 1\n{variant_digest}\n".encode()).hexdigest()


def appended(
    log: bytes, variant_digest: str, at: str, event: Event, name: str, value: str, runs: Sequence[RunState]
) -> bytes:
    """The log with one more line.

    Raises:
        LogError: the log as it is has been changed: nothing can be added to it.
    """
    lines = read(log, variant_digest)
    before = head(log) if lines else first_link(variant_digest)
    line = Line(number=len(lines) + 1, at=at, event=event, name=name, value=value, runs=tuple(runs), before=before)
    return log + json.dumps(schema.write(line), ensure_ascii=False).encode() + b"\n"


def read(log: bytes, variant_digest: str) -> list[Line]:
    """The lines of a log, the chain checked from the variant to the last line.

    Raises:
        LogError: the first place where it is broken.
    """
    if len(log) > LARGEST_BYTES:
        raise LogError(f"found {len(log)} bytes; expected at most {LARGEST_BYTES}")
    if log and not log.endswith(b"\n"):
        raise LogError("found a last line that is cut short; expected a whole one")
    texts = log.split(b"\n")[:-1]
    if len(texts) > MOST_LINES:
        raise LogError(f"found {len(texts)} lines; expected at most {MOST_LINES}")
    before, found = first_link(variant_digest), []
    for number, text in enumerate(texts, start=1):
        try:
            fields = strict_json.loads(text)
            if not isinstance(fields, dict):
                raise LogError(f"line {number}: found {schema.shown(fields)}; expected an object")
            line = schema.read(Line, fields)
        except (strict_json.JsonError, PlanError) as error:
            raise LogError(f"line {number}: {error}") from error
        if line.number != number:
            raise LogError(f"line {number}: found number {line.number}; expected {number}: a line was added or removed")
        if line.before != before:
            what = "this variant's" if number == 1 else f"line {number - 1}'s"
            raise LogError(
                f"line {number}: found another digest of what came before than {what}; expected an unbroken chain: "
                "something was changed"
            )
        before = _digest(text)
        found.append(line)
    return found


def head(log: bytes) -> str:
    """The SHA-256 of the last line: whoever publishes it cannot change what came before."""
    texts = log.split(b"\n")[:-1]
    return _digest(texts[-1]) if texts else ""


def recorded_results(lines: Sequence[Line], scenario: str) -> str | None:
    """The digest of a scenario's results at its last recorded run; None if no run is recorded."""
    found = [
        state.results
        for line in lines
        if line.event == "run" and line.name == scenario
        for state in line.runs
        if state.scenario == scenario
    ]
    return found[-1] if found else None


def was_interrupted(lines: Sequence[Line], scenario: str) -> bool:
    """Whether the last run of a scenario began and did not end."""
    events = [line.event for line in lines if line.name == scenario and line.event in ("begin", "run")]
    return events[-1:] == ["begin"]


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
