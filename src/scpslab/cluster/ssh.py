"""A shell script that starts shards over ssh."""

from __future__ import annotations

import shlex

from scpslab.cluster.job import Job


def ssh(job: Job) -> str:
    """The script for a shell: machine after machine takes the next shard."""
    numbered = job.command('"$1"')
    lines = [
        "#!/bin/bash",
        *job.head("bash THIS-FILE HOST..."),
        "# The hosts share this folder, and you can log in to each of them without a password. Each host takes the next shard when it has done one.",
        "set -uo pipefail",
        '[ $# -gt 0 ] || { echo "error: found no host; expected some. Run: bash $0 HOST..." >&2; exit 2; }',
        "command=$(cat <<'END'",
        *job.surroundings,
        f"cd {shlex.quote(str(job.folder))} && {numbered}",
        "END",
        ")",
        "claims=$(mktemp -d)",
        "take() { # HOST: shard after shard; a folder can be made only once",
        f"\tfor shard in $(seq {job.shards}); do",
        '\t\tmkdir "$claims/$shard" 2>/dev/null || continue',
        '\t\tssh -n -o BatchMode=yes "$1" "bash -c $(printf %q "$command") shard $shard" >"shard-$shard.log" 2>&1 ||',
        '\t\t\techo "error: shard $shard on $1: found exit code $?; see shard-$shard.log. Run this script again: finished cells are kept." >&2',
        "\tdone",
        "}",
        'for host; do take "$host" & done',
        "wait",
        'rm -r "$claims"',
    ]
    return "\n".join(lines) + "\n"
