"""Job scripts: the shell reads them, and the one for ssh runs every shard once, with its words as they were."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from scpslab.cluster import SCRIPTS, Job

BUILD = "plans=0123456789abcdef,engine=0123456789abcdef"
WORDS = ("scpslab", "run", "links/x", "--set", 'a=it\'s $5 "x"')
PLACES = (("SCPSLAB_CACHE", "/it's a cache"), ("SCPSLAB_STORE", "/shared"))
JOB = Job("links-x-01234567", WORDS, 9, 4, 2, 2300, 3600.0, PLACES, Path("/my programs"), Path("/o/runs"), Path("/"), BUILD)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_says_how_it_is_used_and_what_it_needs(name):
    text = SCRIPTS[name](JOB)
    assert "9 cells in 4 shards, each with 2 cores" in text
    assert "scpslab merge /o/runs/shards/links-x-01234567-*-of-4" in text
    assert f"--build {BUILD}" in text
    assert "s a cache" in text
    assert "SCPSLAB_STORE" in text
    assert JOB.shard_s == 600 + 3 * 3600 / 4 / 2
    assert "/my programs" in text
    if name != "ssh":
        assert "2300" in text


@pytest.mark.parametrize("name", ["slurm", "ssh"])
def test_shells_read_it(name):
    subprocess.run(["bash", "-n"], input=SCRIPTS[name](JOB), text=True, check=True)


def programs(folder):
    """An ssh that runs the command here, and a scpslab that notes its words."""
    folder.mkdir()
    (folder / "ssh").write_text('#!/bin/bash\nexec bash -c "${@: -1}"\n')
    (folder / "scpslab").write_text(f'#!/bin/bash\nprintf "%s|" "$@" "$SCPSLAB_CACHE" >> {folder}/said\necho >> {folder}/said\n')
    for path in folder.iterdir():
        path.chmod(0o755)
    return os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_hosts_take_every_shard_once(tmp_path):
    (tmp_path / "job").write_text(SCRIPTS["ssh"](replace(JOB, folder=tmp_path)))
    subprocess.run(["bash", "job", "first", "second"], cwd=tmp_path, env=programs(tmp_path / "bin"), check=True)
    said = sorted((tmp_path / "bin" / "said").read_text().splitlines())
    head = f'run|links/x|--set|a=it\'s $5 "x"|--jobs|2|--out|/o/runs|--build|{BUILD}|--shard|'
    assert said == [f"{head}{number}/4|/it's a cache|" for number in (1, 2, 3, 4)]


def test_slurm_numbers_its_shards(tmp_path):
    (tmp_path / "job").write_text(SCRIPTS["slurm"](JOB))
    subprocess.run(["bash", "job"], cwd=tmp_path, env=programs(tmp_path / "bin") | {"SLURM_ARRAY_TASK_ID": "3"}, check=True)
    assert (tmp_path / "bin" / "said").read_text().endswith("|--shard|3/4|/it's a cache|\n")


def test_htcondor_keeps_the_words_of_the_command():
    assert "environment = \"SCPSLAB_CACHE='/it''s a cache' SCPSLAB_STORE='/shared'\"\n" in SCRIPTS["htcondor"](JOB)
    line = next(line for line in SCRIPTS["htcondor"](JOB).splitlines() if line.startswith("arguments"))
    quoted = line.removeprefix("arguments = \"-c '").removesuffix("'\"")
    assert quoted.replace("''", "'").replace('""', '"') == f"PATH='/my programs':\"$PATH\" {JOB.command('$INT(Number)')}"
