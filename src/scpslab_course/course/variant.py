"""Variants: one student's parameters of an assignment, signed by the course; and the course's secret, from which the
keys are made that draw and sign them (decision 0702).

A variant is a JSON file; the secret is a file that only its owner can read.
"""

import base64
import dataclasses
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from scpslab.core import strict_json
from scpslab.core.contents import json_fields
from scpslab.core.errors import UsageError
from scpslab.plan import schema
from scpslab.plan.schema import Items, Part, PlanError, Range, Text
from scpslab.plan.values import AxisValue, Label, Name, Seed
from scpslab_course.course.assignment import Assignment
from scpslab_course.course.model import PARAMETER, Whose

SECRETS_FILE = "secret"
LENGTH = 32
OWNER_ONLY = 0o600
LINE = b"scpslab course secret 1 "
FORMAT = 1
SUFFIX = ".variant.json"
LARGEST_BYTES = 64 << 10
DOMAIN = b"scpslab variant 1\n"
SIGNATURE = re.compile(r"[0-9a-f]{128}", re.ASCII)
ASK = "Ask your instructor for the file again"
# Whose the practice variant is.
NOBODY = "practice"
AS_ISSUED = 'expected a variant as "scpslab course issue" writes it'

ParameterName = Annotated[
    str, Text("the name of a parameter", lambda text: re.fullmatch(PARAMETER, text, re.ASCII) is not None)
]
Signature = Annotated[str, Text("128 hexadecimal digits", lambda text: SIGNATURE.fullmatch(text) is not None)]


@dataclass(frozen=True)
class Secret:
    """The secret. Its text shows nothing of it, so that no message or traceback can."""

    content: bytes = field(repr=False)

    @property
    def draw_key(self) -> bytes:
        """The key under which parameters are drawn."""
        return self._derived("draw 1")

    @property
    def choice_key(self) -> bytes:
        """The key under which a grader chooses the cells that it runs again."""
        return self._derived("choose 1")

    def pseudonym(self, term: str, student: str) -> str:
        """What a student or group is called where others read it: another name each term. Nobody without the secret can
        tell whose it is.
        """
        message = json.dumps([term, student]).encode()
        letters = base64.b32encode(hmac.digest(self._derived("pseudonym 1"), message, hashlib.sha256)).decode().lower()
        return f"{letters[:5]}-{letters[5:10]}"

    @property
    def key(self) -> str:
        """The public key, 64 hexadecimal digits."""
        return self._signer().public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        """The Ed25519 signature, 128 hexadecimal digits; the same message has the same one."""
        return self._signer().sign(message).hex()

    def _signer(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self._derived("sign 1"))

    def _derived(self, purpose: str) -> bytes:
        return hmac.digest(self.content, f"scpslab {purpose}".encode(), hashlib.sha256)


# Everybody can make this one: practice variants are for everybody, and graders refuse its key.
PRACTICE = Secret(hashlib.sha256(b"scpslab practice").digest())


def is_signed(key: str, message: bytes, signature: str) -> bool:
    """Whether the holder of a public key has signed a message."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def fingerprint(key: str) -> str:
    """A public key as people compare it: four groups of four digits."""
    digits = hashlib.sha256(bytes.fromhex(key)).hexdigest()[:16]
    return " ".join(digits[start : start + 4] for start in range(0, len(digits), 4))


def make_secret(path: Path) -> Secret:
    """Writes a new secret, which only the owner can read.

    An existing file is never replaced: its variants would be lost.

    Raises:
        UsageError: there is a file already.
    """
    content = secrets.token_bytes(LENGTH)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, OWNER_ONLY)
    except FileExistsError as error:
        said = "found a file; expected none, because a new secret makes all issued variants invalid"
        raise UsageError(f"{path}: {said}. Choose another folder.") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(LINE + content.hex().encode() + b"\n")
    return Secret(content)


def read_secret(path: Path) -> Secret:
    """The secret of a course.

    Raises:
        UsageError: there is none, others may read or write it, or the file holds something else.
    """

    def unlike(found: str | None) -> UsageError:
        wanted = 'expected the secret that "scpslab course new" writes'
        return UsageError(f"{path}: found {found}; {wanted}. Restore it from your backup.")

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise unlike("a symbolic link, or too many of them" if path.is_symlink() else error.strerror) from error
    # Not as a file of Python's, which refuses folders without their name.
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise unlike("no ordinary file")
        if found.st_uid != os.geteuid():
            expected = "expected one of your own. Work as that user, or copy it: install -m 600."
            raise UsageError(f"{path}: found a file of user {found.st_uid}; {expected}")
        if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            mode = f"{stat.S_IMODE(found.st_mode):03o}, so that others can read it"
            advice = f"If nobody has read it: chmod 600 {path}"
            raise UsageError(f"{path}: found mode {mode}; expected 600. {advice}")
        line = os.read(descriptor, len(LINE) + 2 * LENGTH + 2)
    finally:
        os.close(descriptor)
    digits = line.removeprefix(LINE).removesuffix(b"\n")
    if line == digits or re.fullmatch(rb"[0-9a-f]{%d}" % (2 * LENGTH), digits) is None:
        # Nothing of what was found is shown: it may be most of a secret.
        raise unlike("something else")
    return Secret(bytes.fromhex(digits.decode("ascii")))


class VariantError(ValueError):
    """A variant that cannot be used; the message says what was found, what was expected and what to do."""


class Variant(Part):
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


def unsigned(
    whose: Whose, course: str, material: str, members: tuple[str, ...], attempt: int, parameters: dict[str, AxisValue]
) -> Variant:
    """A variant as it is drawn, without key and signature."""
    named = {"term": whose.term, "assignment": whose.assignment, "student": whose.student, "course": course}
    empty = {"material": material, "key": "", "signature": ""}
    return Variant(format_=FORMAT, **named, **empty, members=members, attempt=attempt, parameters=parameters)


def signed(variant: Variant, secret: Secret) -> Variant:
    """The variant with the key and signature of a course."""
    keyed = dataclasses.replace(variant, key=secret.key)
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
        variant = schema.read(Variant, json_fields(content), "")
    except strict_json.JsonError as error:
        raise VariantError(f"{error}; {AS_ISSUED}. {ASK}") from error
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
        advice = "Start the assignment again with your own variant"
        raise VariantError(f"found the practice variant; expected the one that was issued. {advice}")
    if variant.key != key:
        found, wanted = fingerprint(variant.key), fingerprint(key)
        raise VariantError(f"found a variant signed with the key {found}; expected the course's key {wanted}. {ASK}")
    return variant


def unfit(variant: Variant, assignment: Assignment) -> str:
    """Why a variant does not belong to an assignment as it is here; "" if it does."""
    if variant.assignment != assignment.name:
        return f'found a variant of "{variant.assignment}"; expected one of "{assignment.name}"'
    if set(variant.parameters) != set(assignment.file.variant) or variant.material != assignment.material:
        expected = "expected the edition for which it was issued"
        return f"found a variant for other scenarios or parameters than those of {assignment.folder}; {expected}"
    return ""


def _message(variant: Variant) -> bytes:
    """What is signed: every field but the signature, in one way of writing."""
    fields = {key: value for key, value in schema.write(variant).items() if key != "signature"}
    return DOMAIN + json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
