"""Executors carry out the cells of a run. One file per executor, one line in EXECUTORS."""

from scpslab.running.executors.base import Executor, Reports
from scpslab.running.executors.dask import DaskExecutor
from scpslab.running.executors.local import LocalExecutor

EXECUTORS: dict[str, type[Executor]] = {"local": LocalExecutor, "dask": DaskExecutor}

__all__ = ["EXECUTORS", "Executor", "Reports"]
