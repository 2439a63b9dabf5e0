"""Made-up students who work honestly: each does the steps of an assignment, and some make a mistake that students make.

Texts and programs have no meaning, and each student's are its own. What real classes write alike, they cannot show.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import islice
from string import ascii_lowercase
from typing import TYPE_CHECKING, ClassVar

from scpslab.running import RunOptions
from scpslab_course.course import answers
from scpslab_course.course.assignment import INSTRUCTOR, SOLUTION, STARTER
from scpslab_course.course.runs import run_variant
from scpslab_course.course.variant import Variant
from scpslab_course.course.workspace import WRITE_UP, plan_start, write_start
from scpslab_course.grading import submission

if TYPE_CHECKING:
    from tests.lab.made_up_class import MadeUpClass

TIMES = tuple(f"2026-11-22T{hour:02}:00:00Z" for hour in range(8, 20))
PROGRAM = '''"""The policy of {student}."""


class Policy:
    def __init__(self, segments, packet_bytes):
        self.segments = segments

    def on_start(self, now):
        return [0], now + {patience}

    def on_ack(self, now, answer):
        return [answer.below], now + {patience}

    def on_timer(self, now):
        return list(range({burst})), now + {patience}
'''
TOLD = "I found {1:.5g} {2} for {0}."


def sentences(draws: random.Random, count: int) -> str:
    """So many sentences that nobody else writes."""
    words = iter(lambda: "".join(draws.choices(ascii_lowercase, k=6)), None)
    return " ".join(f"{' '.join(islice(words, 18)).capitalize()}." for _ in range(count))


class Student:
    """Somebody who makes no mistake: the steps from the start to the file that is handed in."""

    says: ClassVar[str] = "makes no mistake"

    def __init__(self, made: MadeUpClass, student: str, other: str) -> None:
        """`other`: a student whose work is at hand."""
        self.made, self.student, self.other = made, student, other
        self.variant = self.issued()
        self.right = made.right(self.variant)

    def issued(self) -> Variant:
        """The variant that is worked on."""
        return self.made.variants[self.student]

    def hand_in(self, files: Mapping[str, bytes] | None = None) -> bytes:
        """The file that is handed in. `files`: deliverables, instead of one's own."""
        folder = self.made.folder / self.student
        self.workspace = write_start(
            plan_start(self.made.assignment, self.variant), self.made.assignment, self.variant, folder, TIMES[0]
        )
        self.before_runs()
        self.run()
        self.after_runs()
        self.write()
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)
        return self.packed(submission.pack(self.workspace))

    def before_runs(self) -> None:
        """Predicts."""
        self.predict()

    def after_runs(self) -> None:
        """Looks at what came out."""

    def packed(self, content: bytes) -> bytes:
        """What is made of the submission before it is handed in."""
        return content

    def predict(self) -> None:
        """Adds the predictions to the log."""
        for name, asked in self.workspace.assignment.file.predictions.items():
            truth, draws = self.right.predictions[name], self.draws(name)
            low, high = draws.uniform(0.7, 0.9), draws.uniform(1.1, 1.3)
            value = self.predicted(asked, truth, low, high)
            self.workspace.add(TIMES[1], "predict", name, value)

    def predicted(self, asked, truth, low: float, high: float) -> str:
        """A prediction: near the truth, as one who has understood gives it."""
        return str(truth) if asked.kind == "choice" else f"{truth * low:.4g}..{truth * high:.4g}"

    def run(self) -> None:
        """Runs the scenarios one by one."""
        for number, name in enumerate(self.workspace.assignment.file.scenarios):
            options = RunOptions(out=self.workspace.runs, jobs=self.made.jobs)
            run_variant(self.workspace.assignment, self.variant.parameters, options, scenarios=[name])
            self.workspace.add(TIMES[2 + number], "run", name)

    def write(self) -> None:
        """Writes answers, deliverables and write-up."""
        asked, folder = self.workspace.assignment.file, self.workspace.folder
        lines = [f"{name}: {self.answered(name, one)}" for name, one in asked.answers.items()]
        (folder / answers.FILE).write_text("\n".join(lines) + "\n")
        for one in asked.deliverables:
            (folder / one.file).write_bytes(self.deliverable(one.file))
        if asked.write_up:
            (folder / WRITE_UP).write_text(self.write_up())

    def answered(self, name: str, asked) -> str:
        """The answer to a question, as it stands in answers.yaml."""
        if asked.kind == "text":
            return f"|\n  {self.text(name)}"
        value = self.value(name)
        return value if isinstance(value, str) else self.number(value, asked)

    def value(self, name: str) -> float | str:
        """What is taken for right."""
        return self.right.answers[name].value

    def number(self, value: float, asked) -> str:
        """A number as it is written."""
        return f"{value:.8g}"

    def text(self, name: str) -> str:
        """A text of one's own."""
        return sentences(self.draws(name), self.draws(name).randint(3, 6))

    def deliverable(self, name: str) -> bytes:
        """A file: lines that are right, a program, or what was handed out with a line of one's own."""
        if self.right.lines and name in self.right.lines:
            lines = self.right.lines[name]
            rows = [f"{key},{value}" for key, value in lines.values.items()]
            return "\n".join([f"{lines.key},{lines.column}", *rows, ""]).encode()
        if name.endswith(".py"):
            patience, burst = f"{self.draws(name).uniform(0.6, 3):.6f}", self.draws(name).randint(1, 3)
            return PROGRAM.format(student=self.student, patience=patience, burst=burst).encode()
        places = (self.made.assignment.folder / STARTER, self.made.assignment.folder / INSTRUCTOR / SOLUTION)
        content = next((place / name).read_bytes() for place in places if (place / name).is_file())
        return content + f"# {self.text(name)}\n".encode()

    def write_up(self) -> str:
        """The write-up, with the numbers of one's own runs, in an order and words of one's own."""
        asked, draws = self.workspace.assignment.file, self.draws("numbers")
        values = {name: self.value(name) for name in self.right.answers}
        numbers = [
            (name, value, asked.answers[name].unit) for name, value in values.items() if not isinstance(value, str)
        ]
        truths = [(name, one, "") for name, one in self.right.predictions.items() if isinstance(one, float)]
        lines = [TOLD.format(*one) for one in (*numbers, *truths)]
        draws.shuffle(lines)
        return f"# Write-up of {self.student}\n\n{' '.join(lines)} {self.text(WRITE_UP)}\n"

    def draws(self, name: str) -> random.Random:
        """Draws of this student's own, for a question."""
        return random.Random(f"{self.student} {self.made.assignment.name} {name}")


class OtherUnits(Student):
    says = "writes units behind numbers"

    def number(self, value: float, asked) -> str:
        return f"{value:.8g} {asked.unit}".rstrip()


class Rounded(Student):
    says = "rounds to four digits"

    def number(self, value: float, asked) -> str:
        return f"{value:.4g}"


class Mistaken(Student):
    says = "makes the mistakes that the marking knows, and predicts wrongly"

    def value(self, name: str) -> float | str:
        right = self.right.answers[name]
        return right.wrong[0].value if right.wrong else right.value

    def predicted(self, asked, truth, low: float, high: float) -> str:
        if asked.kind == "choice":
            return next(word for word in asked.choices if word != truth)
        return f"{truth * 2:.4g}..{truth * 3:.4g}"


class Blank(Student):
    says = "answers nothing"

    def answered(self, name: str, asked) -> str:
        return ""

    def write(self) -> None:
        super().write()
        if self.workspace.assignment.file.write_up:
            content = plan_start(self.made.assignment, self.variant)[WRITE_UP]
            (self.workspace.folder / WRITE_UP).write_bytes(content)


class WrongUnit(Student):
    says = "takes bits for bytes, or a prefix for another"

    def number(self, value: float, asked) -> str:
        return f"{value * self.draws('unit').choice((8, 0.125, 1000)):.5g}"


class OffByOne(Student):
    says = "counts one too many, and writes a comma where a point belongs"

    def number(self, value: float, asked) -> str:
        return f"{value + 1:.0f}" if value == int(value) else f"{value:.4f}".replace(".", ",")


class Late(Student):
    says = "runs first, and predicts then, as the command warns"

    def before_runs(self) -> None:
        pass

    def after_runs(self) -> None:
        self.predict()


class Unpredicted(Student):
    says = "predicts nothing"

    def before_runs(self) -> None:
        pass


class Partial(Student):
    says = "hands in the half: files as they were handed out, and every second answer"

    def answered(self, name: str, asked) -> str:
        is_done = list(self.workspace.assignment.file.answers).index(name) % 2 == 0
        return super().answered(name, asked) if is_done else ""

    def deliverable(self, name: str) -> bytes:
        starter = self.made.assignment.folder / STARTER / name
        return starter.read_bytes() if starter.is_file() else super().deliverable(name)


HONEST = {
    "right": Student,
    "right-in-other-words": OtherUnits,
    "mistaken": Mistaken,
    "rounded": Rounded,
    "blank": Blank,
    "wrong-unit": WrongUnit,
    "off-by-one": OffByOne,
    "late": Late,
    "unpredicted": Unpredicted,
    "partial": Partial,
}
