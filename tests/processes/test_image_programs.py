"""The programs of node images without Docker: which base build-images chooses, and the contract of the entry point."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "images"

# Stand for Docker, mmdebstrap and Python: Docker knows the images whose names are files of the folder images, with the
# day on which each was made.
FAKES = {
    "docker": """
echo "docker $*" >>"$HOME/calls"
case "$1 $2" in
"image inspect")
	for name; do :; done
	name=$HOME/images/$(echo "$name" | tr / _); [ -e "$name" ] || exit 1; case $4 in *Created*) cat "$name" ;; *) echo id ;; esac ;;
"pull --quiet") [ -e "$HOME/registry" ] ;;
"import --change") cat >/dev/null ;;
"build --tag") exit 9 ;;
esac
""",
    "mmdebstrap": 'echo "mmdebstrap: $(tr "\\n" ";")" >>"$HOME/calls"; [ ! -e "$HOME/offline" ]',
    "python": 'case "$*" in *places*) printf "main\\nsecurity\\n" ;; esac',
}


@pytest.fixture
def base(tmp_path):
    """Runs tools/build-images until it builds the first image; gives the base that it chose and its calls."""
    shutil.copytree(IMAGES, tmp_path / "images_")
    (tmp_path / "images").mkdir()
    root = tmp_path / "clone"
    (root / "tools").mkdir(parents=True)
    (root / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    shutil.move(tmp_path / "images_", root / "images")
    shutil.copy(ROOT / "tools" / "build-images", root / "tools")
    shutil.copy(ROOT / "pyproject.toml", root)
    for name, text in FAKES.items():
        file = root / ".venv" / "bin" / name if name == "python" else tmp_path / "bin" / name
        file.write_text(f"#!/bin/sh\n{text}")
        file.chmod(0o755)

    def run(made_on: str | None, *files: str, choice: str = "auto") -> tuple[str, str]:
        for name in files:
            (tmp_path / name).touch()
        if made_on:
            (tmp_path / "images" / "scpslab_debian:13").write_text(made_on)
        environment = {
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "SCPSLAB_IMAGE_BASE": choice,
        }
        subprocess.run([root / "tools" / "build-images"], env=environment, capture_output=True, check=False, timeout=60)
        calls = (tmp_path / "calls").read_text()
        chosen = re.search(r"--build-arg ROOT=(\S+)", calls)
        return chosen[1] if chosen else "", calls

    return run


LONG_AGO, FAR_AHEAD = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


NEW = "docker tag scpslab/debian:13-new scpslab/debian:13"


@pytest.mark.parametrize(
    ("made_on", "files", "choice", "chosen", "made_from", "is_replaced"),
    [
        (FAR_AHEAD, ["registry"], "auto", "debian:trixie-slim@sha256:", [], False),
        (FAR_AHEAD, [], "auto", "scpslab/debian:13", [], False),
        (LONG_AGO, [], "debian", "scpslab/debian:13", ["main;security;"], True),
        (LONG_AGO, ["offline"], "auto", "scpslab/debian:13", ["main;security;", "main;"], False),
    ],
    ids=["the pinned one wins", "made here without a registry", "made anew by age", "an old one stays offline"],
)
def test_a_base_is_chosen(base, made_on, files, choice, chosen, made_from, is_replaced):
    found, calls = base(made_on, *files, choice=choice)
    assert found.startswith(chosen)
    assert re.findall(r"^mmdebstrap: (.*)$", calls, re.MULTILINE) == made_from
    assert (NEW in calls) == is_replaced
    assert not re.search(r"image rm (--force )?scpslab/debian:13$", calls, re.MULTILINE)
    # A commit alone builds no image again.
    assert "REVISION" not in calls
    assert "revision" not in (IMAGES / "base" / "Dockerfile").read_text()


@pytest.fixture
def endpoint(tmp_path):
    """Runs base's entry point with its roles and one more, as in a container; returns its exit code and message."""
    home = tmp_path / "lib"
    shutil.copytree(IMAGES / "base" / "roles", home / "roles")
    shutil.copytree(IMAGES / "tcp-host" / "roles", home / "roles", dirs_exist_ok=True)
    shutil.copy(IMAGES / "base" / "roles.sh", home)
    for file in [IMAGES / "base" / "endpoint", *(home / "roles").iterdir()]:
        text = file.read_text().replace("/usr/local/lib/scpslab", str(home))
        target = tmp_path / "endpoint" if file.name == "endpoint" else file
        target.write_text(text)
        target.chmod(0o755)

    def run(**environment: str) -> tuple[int, str]:
        done = subprocess.run(
            [tmp_path / "endpoint"],
            env={"PATH": os.environ["PATH"], **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )
        return done.returncode, done.stderr

    return run


@pytest.mark.parametrize(
    ("environment", "code", "said"),
    [
        ({"SCPSLAB_ROLE": "orbit"}, 127, r'found "orbit".*check idle receive send'),
        ({"SCPSLAB_ROLE": "../endpoint"}, 2, "^SCPSLAB_ROLE: found"),
        ({"SCPSLAB_ROLE": "send"}, 2, "^SCPSLAB_PEER: found"),
        ({"SCPSLAB_ROLE": "send", "SCPSLAB_PEER": "127.0.0.1", "SCPSLAB_BYTES": "4 MB"}, 2, "^SCPSLAB_BYTES: found"),
        ({"SCPSLAB_ROLE": "receive", "SCPSLAB_PORT": "-1"}, 2, "^SCPSLAB_PORT: found"),
    ],
)
def test_an_unknown_role_and_a_wrong_environment_are_named(endpoint, environment, code, said):
    found, err = endpoint(**environment)
    assert found == code
    assert re.search(said, err, re.DOTALL)


@pytest.mark.skipif(shutil.which("docker") is None, reason="build-images asks for Docker first")
def test_a_wrong_base_is_named():
    environment = {**os.environ, "SCPSLAB_IMAGE_BASE": "nonsense"}
    done = subprocess.run(
        [ROOT / "tools" / "build-images"], env=environment, capture_output=True, text=True, check=False, timeout=20
    )
    if "no engine that answers" in done.stderr:
        pytest.skip("no Docker engine answers")
    assert done.returncode == 3
    assert done.stderr == 'error: SCPSLAB_IMAGE_BASE: found "nonsense"; expected registry, debian or auto.\n'
