"""The kit for students who type vagrant up."""

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["handout.md", "instructor/marking.yaml"])
def test_the_students_kit_is_the_sdist_with_the_wheel_and_nothing_of_the_instructors(tmp_path, name):
    (tmp_path / "tools").mkdir()
    (tmp_path / "dist").mkdir()
    script = shutil.copy(Path(__file__).parents[2] / "tools" / "student-kit", tmp_path / "tools")
    (tmp_path / "dist" / "scpslab-9-py3-none-any.whl").write_bytes(b"wheel")
    (tmp_path / "file").write_bytes(b"text")
    with tarfile.open(tmp_path / "dist" / "scpslab-9.tar.gz", "w:gz") as sdist:
        sdist.add(tmp_path / "file", f"scpslab-9/assignments/small/{name}")
    made = subprocess.run([script], capture_output=True, text=True, check=False)
    kit = tmp_path / "build" / "scpslab-student-9.tar.gz"
    if "instructor" in name:
        assert (made.returncode, kit.exists()) == (3, False)
        return
    assert made.stdout.strip() == "build/scpslab-student-9.tar.gz"
    with tarfile.open(kit) as found:
        assert found.getnames() == [f"scpslab-9/assignments/small/{name}", "scpslab-9/dist/scpslab-9-py3-none-any.whl"]
