"""Submissions that somebody has changed: bytes of the file or of a member, or a field with right digests."""

import gzip
import json

from hypothesis import strategies as st

from scpslab_course.grading import submission
from tests.lab.cheats import members_of, packed, repacked

MARKUP = "<script>alert(1)</script>"
NUMBERS = [None, True, 0, -1, 1e308, 10**400]
TEXTS = ["", "\0", "\u202e", MARKUP, "=1+1", "../../x", "/etc/passwd", "a" * 100_000, "\x1b[31m"]
VALUES = [*NUMBERS, *TEXTS, [], {}, [[]], ["x"] * 1000]
TAGS = ["*a", "&a [*a]", "!!python/object/apply:os.system [echo]", "|", "? ", "[1, 2]", "{a: b}"]
LINES = [*TAGS, "1e999", "2026-01-01", ".nan", "9" * 6000, MARKUP, "=1+1"]


def spoilt(content: bytes, data) -> bytes:
    """A submission with one change, which hypothesis draws."""
    where = data.draw(st.sampled_from(["file", "tar", "member", "run"]))
    if where == "file":
        return _bytes_changed(content, data)
    if where == "tar":
        return gzip.compress(_bytes_changed(gzip.decompress(content), data), 1)
    members = members_of(content)
    if where == "member":
        name = data.draw(st.sampled_from(sorted(members)))
        changed = _changed(name, members[name], data)
        return packed(members | {name: changed}) if name == submission.CONTENTS else repacked(content, {name: changed})
    runs = members_of(members[submission.ARCHIVE])
    name = data.draw(st.sampled_from(sorted(runs)))
    return repacked(content, {submission.ARCHIVE: packed(runs | {name: _changed(name, runs[name], data)})})


def _changed(name: str, content: bytes, data) -> bytes:
    kind = name.rpartition(".")[2]
    if data.draw(st.booleans()) and kind in ("json", "jsonl", "yaml", "csv"):
        lines = content.decode().split("\n") if kind != "json" else [content.decode()]
        index = data.draw(st.integers(0, max(0, len(lines) - 2)))
        lines[index] = _field_changed(kind, lines[index], data)
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    return _bytes_changed(content, data)


def _field_changed(kind: str, text: str, data) -> str:
    if kind == "yaml":
        return f"{text.partition(':')[0]}: {data.draw(st.sampled_from(LINES))}"
    value = data.draw(st.sampled_from(VALUES))
    if kind == "csv":
        fields = text.split(",")
        fields[data.draw(st.integers(0, len(fields) - 1))] = str(value)[:500]
        return ",".join(fields)
    whole = json.loads(text)
    places = [(part, key) for part in _parts(whole) for key in (part if isinstance(part, dict) else range(len(part)))]
    part, key = data.draw(st.sampled_from(places))
    if data.draw(st.booleans()):
        part[key] = value
    else:
        del part[key]
    return json.dumps(whole)


def _parts(value) -> list:
    """All objects and lists within a value."""
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [*([value] if value else []), *(part for one in inner for part in _parts(one))]


def _bytes_changed(content: bytes, data) -> bytes:
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(changed) - 1)))
        match data.draw(st.sampled_from(["set", "cut", "add"])):
            case "set" if changed:
                changed[at] = data.draw(st.integers(0, 255))
            case "cut":
                del changed[at : at + data.draw(st.sampled_from([1, 4, 100, 10_000]))]
            case _:
                changed[at:at] = data.draw(st.binary(min_size=1, max_size=9))
    return bytes(changed)
