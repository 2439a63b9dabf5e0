"""Topologies as descriptions: nodes and links with parameters. This package touches no kernel.

Standard library only, because topology files are read on the user's machine (to plan) and inside the guest (`mn
--custom`).
"""

from scpslab.plan.disciplines import OneProduct, Queue
from scpslab.plan.links import Direction, Link
from scpslab.plan.nodes import Node
from scpslab.plan.topology.network import Network, Serial
from scpslab.plan.topology.parameters import Parameter, Parameters, count, duration, rate, size
