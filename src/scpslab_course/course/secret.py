"""A course's secret: one file that only its owner can read.

What draws and what signs are keys made from it (decision 0702).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from scpslab.core.errors import UsageError

FILE = "secret"
LENGTH = 32
OWNER_ONLY = 0o600
LINE = b"scpslab course secret 1 "


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
        raise UsageError(
            f"{path}: found a file; expected none, because a new secret makes all issued variants invalid. "
            "Choose another folder."
        ) from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(LINE + content.hex().encode() + b"\n")
    return Secret(content)


def read_secret(path: Path) -> Secret:
    """The secret of a course.

    Raises:
        UsageError: there is none, others may read or write it, or the file holds something else.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        said = "a symbolic link, or too many of them" if path.is_symlink() else error.strerror
        raise UsageError(
            f'{path}: found {said}; expected the secret that "scpslab course new" writes. Restore it from your backup.'
        ) from error
    # Not as a file of Python's, which refuses folders without their name.
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(
                f'{path}: found no ordinary file; expected the secret that "scpslab course new" writes. '
                "Restore it from your backup."
            )
        if found.st_uid != os.geteuid():
            raise UsageError(
                f"{path}: found a file of user {found.st_uid}; expected one of your own. "
                "Work as that user, or copy it: install -m 600."
            )
        if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            mode = f"{stat.S_IMODE(found.st_mode):03o}"
            raise UsageError(
                f"{path}: found mode {mode}, so that others can read it; expected 600. If nobody has read it: "
                f"chmod 600 {path}"
            )
        line = os.read(descriptor, len(LINE) + 2 * LENGTH + 2)
    finally:
        os.close(descriptor)
    digits = line.removeprefix(LINE).removesuffix(b"\n")
    if line == digits or re.fullmatch(rb"[0-9a-f]{%d}" % (2 * LENGTH), digits) is None:
        # Nothing of what was found is shown: it may be most of a secret.
        raise UsageError(
            f'{path}: found something else; expected the secret that "scpslab course new" writes. '
            "Restore it from your backup."
        )
    return Secret(bytes.fromhex(digits.decode("ascii")))
