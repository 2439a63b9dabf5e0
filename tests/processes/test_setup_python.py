"""The environment of a clone is made anew when the system's Python is another one than it was made with."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.lab.pages import ROOT

NEEDED = ("bash", "cat", "dirname", "sha256sum", "readlink", "flock")


def test_an_environment_whose_python_is_gone_is_not_current(tmp_path):
    programs, venv = tmp_path / "programs", tmp_path / "clone" / ".venv" / "bin"
    for folder in (programs, venv, tmp_path / "clone" / "tools"):
        folder.mkdir(parents=True)
    for name in NEEDED:
        (programs / name).symlink_to(shutil.which(name))
    script = Path(shutil.copy(ROOT / "tools" / "setup-python", tmp_path / "clone" / "tools"))
    (tmp_path / "clone" / "requirements.lock").write_text("")
    (tmp_path / "python3.12").write_text("")
    (venv / "python").symlink_to(tmp_path / "python3.12")
    mark = tmp_path / "clone" / ".venv" / "lock.sha256"
    facts = f"{script.read_text()}{tmp_path / 'clone'}\n{tmp_path / 'python3.12'}\n".encode()
    mark.write_bytes(subprocess.run(["sha256sum"], input=facts, check=True, capture_output=True).stdout)

    def run():
        return subprocess.run(
            [script], env={**os.environ, "PATH": str(programs)}, capture_output=True, text=True, check=False
        )

    assert (run().returncode, run().stderr) == (0, "")
    (tmp_path / "python3.12").unlink()
    assert run().returncode == 3
    assert "python3: found none of version 3.11" in run().stderr
