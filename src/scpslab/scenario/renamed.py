"""Old names of scenarios, which still work."""

from __future__ import annotations

# The figures of kernel TCP alone, once files of their own, are variants of the files with every stack.
RENAMED = {f"fy97/fig{figure}-kernel": f"fy97/fig{figure}:kernel" for figure in ("04", "06", "08", "10", "12", "14")}


def current_name(name: str) -> str:
    """The name that `name[:variant]` has today: itself, unless it is an old one.

    Its old variants have the new one's name before theirs.
    """
    base, _, variant = name.partition(":")
    plain = base.removeprefix("scenarios/").removesuffix(".yaml")
    if plain not in RENAMED:
        return name
    return f"{RENAMED[plain]}-{variant}" if variant else RENAMED[plain]
