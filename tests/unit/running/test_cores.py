"""Cells are spread over the cores; several commands at a time do not all begin at the first."""

import os

import pytest

from scpslab.running.executors import LocalExecutor


@pytest.mark.parametrize(
    ("process", "jobs", "cores"),
    [(8, 1, [2]), (9, 1, [4]), (8, 2, [2, 4]), (9, 2, [4, 2]), (9, None, [4, 2]), (9, 3, [None, None, None])],
)
def test_commands_with_few_jobs_begin_at_different_cores(monkeypatch, process, jobs, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 2})
    monkeypatch.setattr(os, "getpid", lambda: process)

    assert LocalExecutor(jobs)._cores(3) == cores


def test_a_single_cell_has_a_single_core(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 2})

    assert len(LocalExecutor(None)._cores(1)) == 1
