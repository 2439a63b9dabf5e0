"""Profiles: what directions of links do over time, and the formats of others that say so, a file each."""

from __future__ import annotations

from scpslab.scenario.profiles.profile import Profile as Profile
