"""Describes the files that the laboratory reads, from the classes that read them: schemas for editors, references and
tables for people (`make docs`).
"""
