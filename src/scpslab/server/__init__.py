"""A machine that many users share: the file by which its administrator says so (server_file.py), and their turns (turns.py)."""

from scpslab.server.server_file import NAMED, SYSTEM_CACHE, ServerFile, load_server, server_file, system_cache
from scpslab.server.turns import Full, Turn, Turns

__all__ = ["NAMED", "SYSTEM_CACHE", "Full", "ServerFile", "Turn", "Turns", "load_server", "server_file", "system_cache"]
