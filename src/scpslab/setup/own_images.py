"""Users' own images as hosts (stack `image`): found in this machine's Docker, and packed once for guests, which have a
Docker of their own.
"""

import hashlib
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from scpslab.core.errors import CapabilityError
from scpslab.core.scratch import replacing
from scpslab.lab import docker
from scpslab.setup.images import link_or_copy

FOLDER = "own-images"
ID_DIGITS = 24


@dataclass(frozen=True)
class OwnImage:
    """An image in Docker: the name by which it was requested, the id of its content, and its size in bytes."""

    name: str
    id: str
    size_bytes: int


def find_image(name: str) -> OwnImage:
    """The image of that name.

    Raises:
        CapabilityError: this machine's Docker does not answer, has no such image, or the image's user is not a number.
    """
    try:
        image = docker.ask("GET", f"/images/{quote(name, safe='/:@')}/json")
    except docker.DockerError as error:
        if error.status == 0:
            raise CapabilityError(
                f"image {name}: found no Docker Engine that answers ({error}); "
                "expected a Docker Engine that has the image. Start Docker."
            ) from error
        raise CapabilityError(
            f"image {name}: found no such image in this machine's Docker; expected it there. Run: "
            f"docker build --tag {name} FOLDER, or docker pull {name}."
        ) from error
    user = image["Config"].get("User") or ""
    if user and not user.partition(":")[0].isdigit():
        raise CapabilityError(
            f'image {name}: found the user "{user}"; expected a number, because programs start without the image\'s '
            "list of users. "
            "Write it in the Dockerfile: USER 1000."
        )
    return OwnImage(name, image["Id"].removeprefix("sha256:")[:ID_DIGITS], image["Size"])


def archive(image: OwnImage, cache: Path, say: Callable[[str], None]) -> Path:
    """The image as a file in the cache; packed at first use.

    Raises:
        CapabilityError: Docker could not pack it.
    """
    # The file holds the name too: one image may have several.
    target = cache / FOLDER / f"{hashlib.sha256(f'{image.name} {image.id}'.encode()).hexdigest()[:ID_DIGITS]}.tar"
    if target.exists():
        return target
    say(f"image {image.name}: packing it for guests ({image.size_bytes / 1e6:.0f} MB)")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with replacing(target) as part:
            save = ["docker", "image", "save", "--output", str(part), image.name]
            done = subprocess.run(save, capture_output=True, text=True, check=False)
            if done.returncode:
                raise CapabilityError(
                    f'image {image.name}: found "{done.stderr.strip()}" from docker image save; expected a file. '
                    "Free disk space, or restart Docker."
                )
    except FileNotFoundError as error:
        raise CapabilityError(
            "docker: found no such command; expected it in addition to the daemon. Install docker-cli."
        ) from error
    return target


def lend(archives: list[Path], folder: Path) -> None:
    """Puts archives into a folder that a guest sees, without copying them if possible."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in archives:
        link_or_copy(path, folder / path.name)
