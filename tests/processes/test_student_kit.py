"""The kit for students who type vagrant up."""

import shutil
import subprocess
import tarfile
import tomllib

from scpslab.core.project import ROOT


def test_the_kit_is_the_sdist_with_the_wheel_and_nothing_of_the_instructors(tmp_path):
    for folder in ("tools", "dist"):
        (tmp_path / folder).mkdir()
    script = shutil.copy(ROOT / "tools" / "student-kit", tmp_path / "tools")
    wheel = tmp_path / "dist" / "scpslab-9-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    ended = []
    for name in ("instructor/marking.yaml", "handout.md"):
        with tarfile.open(tmp_path / "dist" / "scpslab-9.tar.gz", "w:gz") as sdist:
            sdist.add(wheel, f"scpslab-9/assignments/small/{name}")
            sdist.add(wheel, "scpslab-9/tests/lab/test_measured_answers.py")
        ended.append(subprocess.run([script], capture_output=True, text=True, check=False).returncode)
    assert ended == [3, 0]
    with tarfile.open(tmp_path / "build" / "scpslab-student-9.tar.gz") as kit:
        assert kit.getnames() == ["scpslab-9/assignments/small/handout.md", f"scpslab-9/dist/{wheel.name}"]


def test_the_sdist_takes_the_project_s_files_alone():
    """Marks, submissions and secrets may lie beside them in an instructor's clone."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {*settings["only-include"], ".ci"} == {line.split("/")[0] for line in listed.splitlines()}
