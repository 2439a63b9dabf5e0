"""The commands of a course, which the program scpslab finds by name; no rules."""
