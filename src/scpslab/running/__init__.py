"""Runs scenarios: plans a run (run_plan.py), carries it out (runner.py), and tells listeners of it (events.py)."""

from scpslab.running.run_plan import RunOptions, RunPlan, plan_run
from scpslab.running.runner import execute, run_campaign, run_scenario
