"""Running all cells of a scenario: side by side, cached, resumable, with progress."""

from scpslab.running.runner import RunOptions, run_scenario

__all__ = ["RunOptions", "run_scenario"]
