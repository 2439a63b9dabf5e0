"""answers.yaml: a student's answers by the names of the questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError
from scpslab.documents import Form, Places
from scpslab.documents.quantities import AxisValue
from scpslab.documents.yaml_lines import read_content
from scpslab_course.course.given import GivenError
from scpslab_course.course.model import Answer, AssignmentFile
from scpslab_course.course.scoring import read_given

FILE = "answers.yaml"
LARGEST_BYTES = 256 << 10
FORM = Form("answers", "the names of the questions", "the comments that the file began with")
WIDTH = 100


@dataclass(frozen=True)
class Answers:
    """What a student wrote, and where. A question without an answer has None."""

    given: Mapping[str, Any]
    places: Places

    def complaints(self, file: AssignmentFile) -> Iterator[str]:
        """What is wrong with the form of the answers; nothing about whether they are right."""
        for name in self.given:
            if name not in file.answers:
                yield f'{self.places.of((name,))}: found "{name}", which is no question; {one_of(name, file.answers)}'
        for name, asked in file.answers.items():
            if said := complaint(asked, self.given.get(name)):
                yield f"{self.places.of((name,))}: {said}"


def complaint(asked: Answer, given: object) -> str:
    """What is wrong with the form of one answer; "" for nothing."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return "found no answer; expected one. Write it behind the colon."
    try:
        found = read_given(asked, given)
    except GivenError as error:
        return f"{error}. Correct the answer."
    if asked.kind == "number" and isinstance(found, float) and asked.within is not None and not asked.within[0] <= found <= asked.within[1]:
        return f"found {found:g} {asked.unit}; expected {asked.within[0]:g} to {asked.within[1]:g} {asked.unit}. Check unit and size of the number."
    if asked.kind == "text" and isinstance(found, str) and len(found.split()) > asked.most_words:
        return f"found {len(found.split())} words; expected about {asked.words}, at most {asked.most_words}. Shorten the text."
    return ""


def read_answers(content: bytes, path: Path) -> Answers:
    """The answers in a file.

    Raises:
        ScenarioError: not YAML, or too large.
    """
    if len(content) > LARGEST_BYTES:
        raise ScenarioError(f"{path}: found {len(content)} bytes; expected answers of at most {LARGEST_BYTES}. Shorten the file.")
    data, lines = read_content(content, path, FORM)
    return Answers(data, Places(path, lines))


def blank(file: AssignmentFile, parameters: Mapping[str, AxisValue]) -> str:
    """answers.yaml with the questions and without answers."""
    lines = [
        f"# Answers: {file.title}",
        "# Write each answer behind its colon. Numbers may have a unit; a text stands below, indented by two spaces.",
    ]
    if parameters:
        lines += ["#", "# Your parameters:"]
        lines += [f"#   {name} = {value}" + (f"    {file.variant[name].says}" if file.variant[name].says else "") for name, value in parameters.items()]
    for name, answer in file.answers.items():
        lines += ["", *_comment(answer.question), f"# ({_form_of(answer)}; {answer.points:g} point{'' if answer.points == 1 else 's'})"]
        lines += [f"#   {word}: {meaning}" for word, meaning in answer.choices.items()] if answer.kind == "choice" else []
        lines += [f"{name}: |", "  "] if answer.kind == "text" else [f"{name}:"]
    return "\n".join(lines) + "\n"


def _form_of(answer: Answer) -> str:
    if answer.kind == "number":
        return f"a number in {answer.unit}" if answer.unit else "a number"
    return f"one of {', '.join(answer.choices)}" if answer.kind == "choice" else f"about {answer.words} words, at most {answer.most_words}"


def _comment(text: str) -> Iterator[str]:
    line = "#"
    for word in text.split():
        if len(line) + len(word) >= WIDTH:
            yield line
            line = "#"
        line += f" {word}"
    yield line
