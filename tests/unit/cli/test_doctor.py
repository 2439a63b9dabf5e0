"""What `scpslab doctor` prints."""

from scpslab.cli import doctor
from scpslab.engine.base import Finding

KERNEL = (
    "start the machine with systemd.unified_cgroup_hierarchy=1, or use another kernel: "
    "the virtual machine that vagrant up makes has one (docs/vagrant.md)"
)


def test_what_to_do_can_be_copied_from_a_narrow_terminal(scpslab, monkeypatch):
    """Whole, in a line of its own; what is well needs nothing to be done."""
    found = [Finding("control groups", "missing", "none", KERNEL), Finding("ptrace", "ok", "allowed", "nothing")]
    monkeypatch.setattr(doctor, "examine", lambda engine: found)
    monkeypatch.setenv("COLUMNS", "80")

    code, out, _ = scpslab("doctor")

    assert code == 3
    assert out.splitlines()[-2:] == ["control groups: what to do:", f"  {KERNEL}"]
