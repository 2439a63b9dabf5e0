"""What to type so that this scpslab gets what it lacks, in a clone and in an installation.

No package index has scpslab, and the name is free for a stranger: advice names the wheel's file, never the name alone.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scpslab.core.project import IS_INSTALLED
from scpslab.core.version import version

# Builds, or unpacks, the parts that cells need.
SETUP = f"{sys.executable} -m scpslab.setup" if IS_INSTALLED else "make setup"
# Installs what builds them.
PACKAGES = "install it; or install a wheel of scpslab that carries the built parts" if IS_INSTALLED else "make packages"


def pip_install(extra: str = "", options: str = "") -> str:
    """The command that installs the wheel with an extra, or again."""
    return f'{sys.executable} -m pip install {options}"{_wheel()}{f"[{extra}]" if extra else ""}"'


def add_extra(extra: str) -> str:
    """The command that adds what an extra of the package needs."""
    return pip_install(extra) if IS_INSTALLED else "make development"


def _wheel() -> str:
    """The wheel's file as pip has noted it, if it is still there; otherwise the name to look for."""
    try:
        noted = importlib.metadata.distribution("scpslab").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        noted = None
    file = Path(unquote(urlsplit(json.loads(noted or "{}").get("url", "")).path))
    return str(file) if file.suffix == ".whl" and file.is_file() else f"scpslab-{version()}-….whl"
