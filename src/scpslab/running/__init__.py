"""Running all cells of a scenario, or of all scenarios of a campaign: side by side, cached, resumable, with progress."""

from scpslab.running.campaign import run_campaign
from scpslab.running.runner import RunOptions, run_scenario

__all__ = ["RunOptions", "run_campaign", "run_scenario"]
