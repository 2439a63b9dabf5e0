"""Completes a release's bill of materials, and writes where each of its parts comes from: SBOM.json PARTS BILL.cdx.json
PROVENANCE.json (`make release`).

The bill that cyclonedx-bom makes lists Python packages; this adds what the wheel carries besides: the lab kernel's
source, the packages of the guest image, and the libraries of the program scps.
"""

import hashlib
import json
import lzma
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "images" / "published.txt"
SCHEMAS = {"1.6": SchemaVersion.V1_6, "1.7": SchemaVersion.V1_7}
# Parts of whose bytes results depend without exception; published.txt has their hashes.
DECISIVE = ("kernel", "guest", "tools")


def debian(file: Path, part: str) -> list[dict[str, Any]]:
    """The packages of a recipe's versions.txt as components."""
    rows = [line.split() for line in file.read_text().splitlines() if line and not line.startswith(("#", "date "))]
    return [component("deb/debian", name, version, part, *rest) for name, version, *rest in rows]


def crates(lock: Path, part: str) -> list[dict[str, Any]]:
    """The libraries of a Cargo.lock as components; those of the project itself have no source."""
    packages = tomllib.loads(lock.read_text())["package"]
    return [
        component("cargo", one["name"], one["version"], part, one.get("checksum", ""))
        for one in packages
        if "source" in one
    ]


def component(kind: str, name: str, version: str, part: str, sha256: str = "") -> dict[str, Any]:
    """A component of CycloneDX. `part`: the part of the wheel that it is in."""
    purl = f"pkg:{kind}/{name}@{quote(version, safe='.-_~')}"
    made = {"type": "library", "bom-ref": f"{part}:{purl}", "name": name, "version": version, "purl": purl}
    hashes = [{"alg": "SHA-256", "content": sha256}] if sha256 else []
    return made | ({"hashes": hashes} if hashes else {}) | {"properties": [{"name": "scpslab:part", "value": part}]}


def bill(python: Path) -> dict[str, Any]:
    """The whole bill of materials.

    Raises:
        SystemExit: it is not a valid one.
    """
    found: dict[str, Any] = json.loads(python.read_text())
    found["components"] += debian(ROOT / "images/lab-kernel/versions.txt", "kernel")
    found["components"] += debian(ROOT / "images/guest/versions.txt", "guest")
    found["components"] += crates(ROOT / "stack/Cargo.lock", "stack")
    wrong = JsonStrictValidator(SCHEMAS[found["specVersion"]]).validate_str(json.dumps(found))
    if wrong is not None:
        raise SystemExit(
            f"error: {python}: found a bill of materials that is not valid CycloneDX: {wrong}; expected one. "
            "Update tools/release.lock."
        )
    return found


def provenance(parts: Path) -> dict[str, Any]:
    """Where every part of the wheel comes from: recipe, tools, versions that differ from the recipe's, and whether it
    is the published one.

    Raises:
        SystemExit: a part on which results depend is not the published one.
    """
    index = json.loads((parts / "parts.json").read_text())
    published = PUBLISHED.read_text().split()
    described = {}
    for part in index["parts"]:
        with lzma.open(parts / part["archive"]) as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
            notes = [
                json.loads(data.read())
                for entry in archive
                if entry.name == "made.json" and (data := archive.extractfile(entry))
            ]
        is_published = part["sha256"] in published
        if part["name"] in DECISIVE and not is_published:
            raise SystemExit(
                f"error: {part['name']}: found SHA-256 {part['sha256'][:12]}; expected one of images/published.txt. "
                "Run: make published."
            )
        packed_sha256 = hashlib.sha256((parts / part["archive"]).read_bytes()).hexdigest()
        described[part["name"]] = part | notes[0] | {"packed_sha256": packed_sha256, "published": is_published}
    return {"format": 1, "program": index["program"], "parts": described}


def main() -> None:
    """Writes both files."""
    python, parts, to_bill, to_provenance = map(Path, sys.argv[1:])
    to_provenance.write_text(json.dumps(provenance(parts), indent=1) + "\n")
    to_bill.write_text(json.dumps(bill(python), indent=1) + "\n")


main()
