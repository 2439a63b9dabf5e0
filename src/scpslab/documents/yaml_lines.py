"""YAML with line numbers: the data, and the line in which every key path begins.

Refused: a key twice, keys that are not text, aliases and merges (every value is written where it is used). 1e-5 is a
number.
"""

import copy
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from scpslab.core.contents import LARGEST_TEXT, content_of
from scpslab.core.errors import ScenarioError
from scpslab.core.problems import KeyPath, Problem, UnfitError, dotted

LONGEST = 40  # characters of a line that are repeated
NO_SPACE = re.compile(r"\s*(?:- )?[\w.*-]+:\S")
BEGINS_TEXT = re.compile(r":\s+[|>][-+]?\s*$")
NO_SPACE_AFTER_DASH = re.compile(r"\s*-[^\s-]")
TWO_COLONS = re.compile(r"\s*(?:- )?[^:]+:\s.*:(?:\s|$)")
BRACKETS = {"while parsing a flow mapping": "{}", "while parsing a flow sequence": "[]"}
AFTER_DASH = '"-" without a space behind it', '"- "', "Add a space."
CANNOT_START = re.compile(r"found character '(.*)' that cannot start any token")


class Words(NamedTuple):
    """The line, counted from 0, if one is known, and what to say of it."""

    line: int | None
    found: str
    expected: str
    advice: str = "Correct the line."


class _Said(NamedTuple):
    """What PyYAML says: its problem and where, in the context of what began where, in these lines."""

    problem: str
    at: yaml.Mark
    context: str
    begun: yaml.Mark
    lines: list[str]

    @property
    def line(self) -> str:
        return self.lines[self.at.line] if self.at.line < len(self.lines) else ""


def in_words(error: yaml.YAMLError, text: str) -> Words:
    """What PyYAML has found, said of the line in which a person would mend it."""
    problem = str(getattr(error, "problem", None) or str(error).splitlines()[0])
    at, begun = (getattr(error, name, None) for name in ("problem_mark", "context_mark"))
    if at is not None:
        said = _Said(problem, at, str(getattr(error, "context", "")), begun or at, text.splitlines())
        for rule in (_token, _no_colon, _open_quote, _second_key, _open_bracket, _indentation):
            if (words := rule(said)) is not None:
                return words
    return Words(None if at is None else at.line, problem.removeprefix("found "), "YAML")


def _token(said: _Said) -> Words | None:
    if "constructor for the tag" in said.problem:
        return Words(said.at.line, "a tag, which begins with !", "the value alone", "Remove the tag.")
    if "expected the node content" in said.problem:
        there = _short(said.line[said.at.column :])
        return Words(said.at.line, f'"{there}"' if there else "the end of the text", "a value")
    if said.line.lstrip(" ").startswith("\t"):
        return Words(said.at.line, "a tab", "spaces in front of a key", "Replace the tab by spaces.")
    if (match := CANNOT_START.fullmatch(said.problem)) is None:
        return None
    return Words(said.at.line, f'a text that begins with "{match[1]}"', "it in quotes", "Write quotes around it.")


def _no_colon(said: _Said) -> Words | None:
    return _without_colon(said, said.begun.line) if "expected ':'" in said.problem else None


def _open_quote(said: _Said) -> Words | None:
    if "quoted scalar" not in said.context or "end of stream" not in said.problem:
        return None
    return Words(said.begun.line, "a quote that does not end", "the same quote after the text", "Add it.")


def _second_key(said: _Said) -> Words | None:
    if not said.problem.startswith("mapping values"):
        return None
    number, line = said.at.line, said.line
    before = next((above for above in reversed(said.lines[:number]) if above.strip()), "")
    if NO_SPACE_AFTER_DASH.match(line):
        return Words(number, *AFTER_DASH)
    if not TWO_COLONS.match(line) and _indent(line) > _indent(before):
        found = f'a key that is indented deeper than "{_short(before)}" above it, which has a value already'
        return Words(number, found, f"{_spaces(_indent(before))} in front of it")
    if NO_SPACE.match(before):
        return _without_colon(said, number - 1)
    return Words(number, 'a second ":" in a line', "the text in quotes", 'Write the value as "…".')


def _open_bracket(said: _Said) -> Words | None:
    if said.context not in BRACKETS:
        return None
    opened, closed = tuple(BRACKETS[said.context])
    if said.begun.line < said.at.line:
        return Words(
            said.begun.line, f'"{opened}" without its "{closed}"', f'"{closed}" after the last value', "Add it."
        )
    there = _short(said.line[said.at.column :]) or "the end of the line"
    return Words(said.at.line, f'"{there}" inside "{opened}{closed}"', f'"," or "{closed}" in front of it')


def _indentation(said: _Said) -> Words | None:
    if not said.context.startswith("while parsing a block"):
        return None
    if NO_SPACE_AFTER_DASH.match(said.line):
        return Words(said.at.line, *AFTER_DASH)
    # The keys of a list's item stand behind its dash.
    column = said.begun.column + (2 if "collection" in said.context and not said.line.lstrip().startswith("-") else 0)
    found = f"a line that begins after {_spaces(said.at.column)}"
    return Words(
        said.at.line, found, f"{_spaces(column)}, as in line {said.begun.line + 1}", "Indent it like that line."
    )


def _without_colon(said: _Said, number: int) -> Words:
    line = said.lines[number]
    if NO_SPACE.match(line):
        return Words(number, f'"{_short(line)}"', 'a space after ":"', "Add the space.")
    above = next((one for one in reversed(said.lines[:number]) if one.strip() and not _indent(one)), "")
    if BEGINS_TEXT.search(above):
        found = f'"{_short(line)}", a line of the text below "{_short(above)}" that is not indented'
        return Words(number, found, "two spaces in front of it", "Indent the whole text.")
    return Words(number, f'"{_short(line)}", which is no key with a value', '"key: value"')


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _spaces(count: int) -> str:
    return "no space" if count == 0 else "1 space" if count == 1 else f"{count} spaces"


def _short(line: str) -> str:
    text = line.strip()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


# YAML 1.1 requires a dot in a number with an exponent; people write bit error rates without one.
FLOAT = re.compile(r"^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$|^[-+]?[0-9]+\.[0-9]*$|^[-+]?\.[0-9]+$")
# Above 0, as far as its digits say.
TOO_SMALL = re.compile(r"^[-+]?[0.]*+[1-9][0-9.]*+(?:[eE]-[0-9]+)?$")
# YAML 1.1 has octal and sexagesimal numbers, too: 010 is 8, and 1:30 is 90.
OTHER_WHOLE, OTHER_FLOAT = re.compile(r"[-+]?+(?!(0|[1-9][0-9]*)$).+"), re.compile(r".*[_:].*")
DEEPEST = 40
TOP = "top level"
# Each takes a kilobyte and some twenty microseconds; and each character, of a comment too, up to three microseconds.
MOST_NODES, MOST_CHARACTERS = 200_000, 8 << 20
# Characters. No key has more, and Python refuses to print thousands.
LONGEST_WHOLE = 300


class _RefusedError(Exception):
    """What no file may have, and its line."""

    def __init__(self, line: int | None, found: str, expected: str, advice: str, subject: str = "") -> None:
        self.line, self.problem = line, Problem((), found, expected, advice, subject)
        super().__init__(str(self.problem))


class _Loader(yaml.SafeLoader):
    """SafeLoader with our numbers, without aliases, for so many nodes.

    What it cannot make a value of is an error of the value's line.
    """

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise _RefusedError(None, f"more than {MOST_NODES} values", "fewer", "Divide the file.")
        if self.check_event(yaml.AliasEvent):
            line = self.peek_event().start_mark.line  # type: ignore[no-untyped-call]
            raise _RefusedError(line, "an alias", "the value itself", "Write it out.")
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # PyYAML's name
        # It reads some malformed numbers and dates with Python's own converters, and takes what a tag such as !!bool
        # promises for granted.
        if node.tag == "tag:yaml.org,2002:int" and len(node.value) > LONGEST_WHOLE:
            raise yaml.constructor.ConstructorError(
                problem="found a whole number of hundreds of digits", problem_mark=node.start_mark
            )
        other = {"tag:yaml.org,2002:int": OTHER_WHOLE, "tag:yaml.org,2002:float": OTHER_FLOAT}.get(node.tag)
        if other and other.fullmatch(node.value):
            advice = "Write it in decimal digits, or in quotes if it is a text."
            raise _RefusedError(node.start_mark.line, node.value[:60], "a number", advice)
        if node.tag == "tag:yaml.org,2002:float" and TOO_SMALL.match(node.value) and float(node.value) == 0:
            found = f"{node.value[:60]}, so small that a computer holds it as 0"
            raise _RefusedError(node.start_mark.line, found, "0, or a larger number", "Correct the value.")
        try:
            return super().construct_object(node, deep=deep)
        except (AttributeError, LookupError) as error:
            said = f'found "{node.value[:60]}", of which the tag {node.tag.rpartition(":")[2]} makes no value'
            raise yaml.constructor.ConstructorError(problem=said, problem_mark=node.start_mark) from error
        except (ValueError, OverflowError) as error:
            raise yaml.constructor.ConstructorError(problem=f"found {error}", problem_mark=node.start_mark) from error


class _Dumper(yaml.SafeDumper):
    """SafeDumper that puts texts into quotes which the loader would read as numbers, such as 1e-8."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+0123456789."))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+0123456789."))


def written(data: object) -> str:
    """The YAML of keys and values, in their order, for files that are read here again."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


@dataclass(frozen=True)
class Form:
    """The kind of a file, for error messages: `what` with its article, some of its keys, and the page that describes
    it.
    """

    what: str
    keys: str
    described_in: str


def text_of(path: Path, expected: str, most: int = LARGEST_TEXT, saved_as: str = "UTF-8") -> str:
    """The text of a person's file, without a byte order mark. `saved_as`: how programs of its kind call that.

    Raises:
        ScenarioError: there is none, it has more than `most` bytes, or they are no text; with the line.
    """
    try:
        text = content_of(path, most).decode("utf-8-sig")
    except OSError as error:
        raise ScenarioError(f"{path}: found {error.strerror}; expected {expected}. Correct the path.") from error
    except UnicodeDecodeError as error:
        line, found = error.object.count(b"\n", 0, error.start) + 1, f"the byte 0x{error.object[error.start]:02x}"
        raise ScenarioError(
            f"{path}:{line}: found {found}, which is not UTF-8; expected text. Save the file as {saved_as}."
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ScenarioError(f"{path}:{line}: found the character NUL; expected text. Remove it.")
    return text


def read_yaml(path: Path, form: Form) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """The mapping a file holds, and the line of every key path.

    Raises:
        ScenarioError: no ordinary file, too large, a path that cannot be printed, not YAML, a key twice, or not a
            mapping.
    """
    if not str(path).isprintable():
        raise ScenarioError(
            f"{str(path)!a}: found characters that cannot be printed; expected the path of {form.what} file without "
            "them. Rename it."
        )
    try:
        content = content_of(path)
    except OSError as error:
        raise ScenarioError(
            f"{path}: found {error.strerror}; expected {form.what} file. See {form.described_in}."
        ) from error
    return read_content(content, path, form)


def read_content(content: bytes, path: Path, form: Form) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """The same for what a file holds that is not on disk; messages name `path`.

    Raises:
        ScenarioError: not YAML, a key twice, or not a mapping.
    """
    try:
        data, lines = _read(content.decode("utf-8"), form)
        return copy.deepcopy(data), lines
    except UnicodeDecodeError as error:
        raise ScenarioError(
            f"{path}: found bytes that are not UTF-8; expected text. Save the file as UTF-8."
        ) from error
    except _RefusedError as refused:
        place = f"{path}:{refused.line + 1}" if refused.line is not None else str(path)
        raise ScenarioError(f"{place}: {refused}") from refused


def value_text(value: object) -> str:
    """A value as files and tables have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_value(text: str) -> Any:
    """The value of a piece of YAML, read by the same rules as files.

    Raises:
        UnfitError: the text is not YAML.
    """
    try:
        return _construct(text)[0]
    except _RefusedError as refused:
        raise UnfitError(refused.problem.found, refused.problem.expected) from refused


def own(path: Path) -> Any:
    """What a file of the project's own says, which needs no lines and no refusals."""
    return yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 (both are safe)


# A scenario is read for itself and for each of its variants, one after the other.
@lru_cache(maxsize=1)
def _read(text: str, form: Form) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    data, lines = _construct(text)
    if not isinstance(data, dict):
        raise _RefusedError(None, "no mapping", f"keys such as {form.keys}", f"See {form.described_in}.")
    return data, lines


def _construct(text: str) -> tuple[Any, dict[KeyPath, int]]:
    """The value of a text, and the line of every key path in it."""
    loader = None
    lines: dict[KeyPath, int] = {}
    if len(text) > MOST_CHARACTERS:
        raise _RefusedError(None, f"{len(text)} characters", f"at most {MOST_CHARACTERS}", "Divide the file.")
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, lines
        _walk(node, (), lines)
        return loader.construct_document(node), lines
    except yaml.YAMLError as error:
        raise _RefusedError(*in_words(error, text)) from error
    except RecursionError as error:
        raise _RefusedError(None, f"deeper nesting than {DEEPEST} levels", "less", "Write it flatter.") from error
    except (ValueError, OverflowError) as error:
        # A character's number that is none.
        raise _RefusedError(None, str(error), "YAML", "Correct the value.") from error
    finally:
        if loader is not None:
            loader.dispose()


def _walk(node: yaml.Node, at: KeyPath, lines: dict[KeyPath, int]) -> None:
    """Notes the line of every key path, and refuses keys and nesting that no file may have, before any value is
    built.
    """
    if len(at) > DEEPEST:
        raise RecursionError
    if isinstance(node, yaml.ScalarNode) and not _is_text(node.value):
        found = "half of a surrogate pair, or NUL"
        raise _RefusedError(
            node.start_mark.line, found, "a character", "Write the character itself.", dotted(at) or TOP
        )
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line = key.start_mark.line
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                found = f'the key "{key.value if isinstance(key, yaml.ScalarNode) else "a collection"}"'
                raise _RefusedError(
                    line, f"{found}, which YAML reads as no text", "a word", "Quote or correct it.", dotted(at) or TOP
                )
            _walk(key, at, lines)
            inner = (*at, key.value)
            if inner in lines:
                raise _RefusedError(line, "the key a second time", "it once", "Remove one.", dotted(inner))
            lines[inner] = line + 1
            _walk(value, inner, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[*at, index] = value.start_mark.line + 1
            _walk(value, (*at, index), lines)


def _is_text(value: str) -> bool:
    """Whether a text can be written: YAML has escapes for halves of characters and for NUL, too."""
    try:
        return b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False
