"""The lab program: carries out one cell's plan inside the guest, or on a host that is the lab.

Plan in (`/cell/plan.json`), records out. Standard library and Mininet only; it runs the same under every engine and
does not know which.
"""
