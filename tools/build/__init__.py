"""Builds what engines need, from the recipes in images/ and stack/: lab kernel, guest image, the guest's small
programs, the SCPS stack, Docker.

The laboratory finds built parts (src/scpslab/setup) and comes here for one that is missing. A wheel that carries the
parts never does.
"""
