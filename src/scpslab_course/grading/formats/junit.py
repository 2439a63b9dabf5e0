"""JUnit XML: a suite for each submission, a case for each part. A part that waits for a person is skipped; a submission without a grade is an error."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from scpslab_course.grading.formats.base import Facts, Format, comment, line
from scpslab_course.grading.grade import Grade, Part, Status


def write(grades: Sequence[Grade], facts: Facts) -> str:
    """The file."""
    root = ET.Element("testsuites", name=line(facts.course, 200))
    for grade in grades:
        root.append(_suite(grade))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _suite(grade: Grade) -> ET.Element:
    name = line(grade.student or grade.path.name, 200)
    cases = [_case(name, part) for part in grade.parts] if grade.status is Status.GRADED else [_error(name, grade)]
    suite = ET.Element("testsuite", name=name, tests=f"{len(cases)}", time=f"{grade.seconds:.1f}")
    for counted, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(counted, f"{sum(case.find(tag) is not None for case in cases)}")
    suite.extend(cases)
    return suite


def _case(name: str, part: Part) -> ET.Element:
    case = ET.Element("testcase", classname=name, name=line(part.label, 200))
    if part.earned is None:
        ET.SubElement(case, "skipped", message=line(part.comment) or "a person marks it")
    elif part.earned < part.points:
        ET.SubElement(case, "failure", message=f"{part.earned:.4g} of {part.points:g}: {line(part.comment)}")
    return case


def _error(name: str, grade: Grade) -> ET.Element:
    case = ET.Element("testcase", classname=name, name="grading")
    ET.SubElement(case, "error", message=line(comment(grade)), type=grade.status)
    return case


KIND = Format("JUnit XML", ".xml", write, of_one=False)
