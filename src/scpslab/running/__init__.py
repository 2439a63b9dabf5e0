"""Runs all cells of a scenario, or of all scenarios of a campaign: in parallel, cached, resumable, with progress."""

from scpslab.running.campaign import run_campaign
from scpslab.running.runner import RunOptions, run_scenario

__all__ = ["RunOptions", "run_campaign", "run_scenario"]
