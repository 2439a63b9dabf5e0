"""Profiles: what directions of links do over time, and the formats of others that say so, a file for each sort."""

from scpslab.scenario.profiles.profile import Profile as Profile
