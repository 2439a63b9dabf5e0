"""The door for topology files: what a file of a user or of an archive imports to describe a network."""

from scpslab.plan.topology import *  # noqa: F403  # what it imports is the list
