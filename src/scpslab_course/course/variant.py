"""Variants: one student's parameters of an assignment, signed by the course. A variant is a JSON file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Annotated

from scpslab.core import strict_json
from scpslab.plan import schema
from scpslab.plan.schema import Items, PlanError, Range, Text
from scpslab.plan.values import AxisValue, Label, Name, Seed
from scpslab_course.course.assignment import Assignment
from scpslab_course.course.secret import PRACTICE, Secret, fingerprint, is_signed

FORMAT = 1
SUFFIX = ".variant.json"
LARGEST_BYTES = 64 << 10
DOMAIN = b"scpslab variant 1\n"
PARAMETER = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
SIGNATURE = re.compile(r"[0-9a-f]{128}", re.ASCII)
ASK = "Ask your instructor for the file again"

ParameterName = Annotated[str, Text("the name of a parameter", lambda text: PARAMETER.fullmatch(text) is not None)]
Signature = Annotated[str, Text("128 hexadecimal digits", lambda text: SIGNATURE.fullmatch(text) is not None)]


class VariantError(ValueError):
    """A variant that cannot be used; the message says what was found, what was expected and what to do."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """What was drawn for whom.

    `student` is the name under which it was drawn, `members` are the ids of those who work on it.

    `material` is the digest of the scenarios and parameters that it belongs to; `key` is the public key of whoever
    signed it.
    """

    format_: Annotated[int, Range(FORMAT, FORMAT)]
    course: Label
    term: Label
    assignment: Name
    material: Seed
    student: Label
    members: Annotated[tuple[Name, ...], Items(1, 100)]
    attempt: Annotated[int, Range(0, 10_000)]
    parameters: dict[ParameterName, AxisValue]
    key: Seed
    signature: Signature

    @property
    def is_practice(self) -> bool:
        """Whether it is one that everybody can make."""
        return self.key == PRACTICE.key

    @property
    def digest(self) -> str:
        """SHA-256 of its file, which the log of a student's folder begins with."""
        return hashlib.sha256(write(self)).hexdigest()


def signed(unsigned: Variant, secret: Secret) -> Variant:
    """The variant with the key and signature of a course."""
    keyed = dataclasses.replace(unsigned, key=secret.key)
    return dataclasses.replace(keyed, signature=secret.sign(_message(keyed)))


def write(variant: Variant) -> bytes:
    """The file of a variant; the same variant gives the same bytes."""
    return (json.dumps(schema.write(variant), indent=1, ensure_ascii=False) + "\n").encode()


def read(content: bytes) -> Variant:
    """A variant from its file, its signature checked with the key that it names: it is unchanged since then.

    Raises:
        VariantError: no variant, or one that was changed.
    """
    if len(content) > LARGEST_BYTES:
        raise VariantError(f"found {len(content)} bytes; expected a variant of at most {LARGEST_BYTES}. {ASK}")
    try:
        fields = strict_json.loads(content)
        if not isinstance(fields, dict):
            raise VariantError(
                f'found {schema.shown(fields)}; expected a variant as "scpslab course issue" writes it. {ASK}'
            )
        variant = schema.read(Variant, fields, "")
    except strict_json.JsonError as error:
        raise VariantError(f'{error}; expected a variant as "scpslab course issue" writes it. {ASK}') from error
    except PlanError as error:
        raise VariantError(f"{error}. {ASK}") from error
    if not is_signed(variant.key, _message(variant), variant.signature):
        raise VariantError(f"found a variant that was changed after it was signed; expected it unchanged. {ASK}")
    return variant


def verify(content: bytes, key: str) -> Variant:
    """A variant that the holder of `key` has signed: what a grader accepts.

    A submission's own idea of the key does not count.

    Raises:
        VariantError: see `read`; or somebody else signed it.
    """
    variant = read(content)
    if variant.is_practice and key != PRACTICE.key:
        raise VariantError(
            "found the practice variant; expected the one that was issued. Start the assignment again with your own "
            "variant"
        )
    if variant.key != key:
        found, wanted = fingerprint(variant.key), fingerprint(key)
        raise VariantError(f"found a variant signed with the key {found}; expected the course's key {wanted}. {ASK}")
    return variant


def unfit(variant: Variant, assignment: Assignment) -> str:
    """Why a variant does not belong to an assignment as it is here; "" if it does."""
    if variant.assignment != assignment.name:
        return f'found a variant of "{variant.assignment}"; expected one of "{assignment.name}"'
    if set(variant.parameters) != set(assignment.file.variant) or variant.material != assignment.material():
        return (
            f"found a variant for other scenarios or parameters than those of {assignment.folder}; "
            "expected the edition for which it was issued"
        )
    return ""


def _message(variant: Variant) -> bytes:
    """What is signed: every field but the signature, in one way of writing."""
    fields = {key: value for key, value in schema.write(variant).items() if key != "signature"}
    return DOMAIN + json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
