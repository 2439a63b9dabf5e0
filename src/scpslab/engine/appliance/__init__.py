"""The appliance: a small x86-64 machine under qemu-system-x86_64, in which engine `virtual` runs its cells where the
lab kernel cannot run by itself.

Order of reading: native.py (when), machine.py (one machine, and those of a run), inside.py (the program in it).
"""
