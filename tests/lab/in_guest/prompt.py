"""Runs inside a guest that plays the machine of engine `host`: a lab with a prompt whose terminal is nobody's, as the
studio has it.

/cell has plan.json; the result has what was printed, and whether there was a record of packets before the end.
"""

import json
import os
import select
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, "/opt/scpslab/source")
from scpslab import plan as plans
from scpslab.engine.hostlab import HostLab, remove

PROGRAMS = Path("/var/lib/scpslab/programs")
LINES = (b"h1 ping -c 2 h2\n", b"h1 sleep 600\n", b"link hop forward rate 1 Mbit/s\n", b"\x03", b"exit\n")
WAIT_S, LIMIT_S = 3, 300


def printed(keyboard, seconds, until=b"\0"):
    """What comes within a time, or until a text."""
    text, end = b"", time.monotonic() + seconds
    while time.monotonic() < end and until not in text:
        if select.select([keyboard], [], [], 0.2)[0]:
            try:
                text += os.read(keyboard, 65536)
            except OSError:
                break
    return text


try:
    folder = Path("/tmp/lab")
    (folder / "vectors").mkdir(parents=True)
    (folder / "out").mkdir()
    shutil.copyfile("/cell/plan.json", folder / "plan.json")
    PROGRAMS.parent.mkdir()
    shutil.copytree("/opt/scpslab/programs", PROGRAMS)
    keyboard, screen = os.openpty()
    lab = HostLab(plans.parse((folder / "plan.json").read_bytes()), PROGRAMS, folder)
    process = lab.start(stdin=screen, stdout=screen, stderr=screen)
    text = printed(keyboard, LIMIT_S, b"scpslab> ")
    for line in LINES:
        os.write(keyboard, line)
        text += printed(keyboard, WAIT_S)
    seen = {"text": text.decode(), "has_record": (folder / "out/records/packets.rec").exists()}
    seen |= {"code": process.wait(LIMIT_S), "transcript": (folder / "out/transcript.jsonl").read_text()}
    remove(lab.id)
except BaseException:
    import traceback

    seen = {"error": traceback.format_exc()}
Path("/cell/out").mkdir(exist_ok=True)
Path("/cell/out/result.json").write_text(json.dumps(seen))
