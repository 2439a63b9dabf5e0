"""The command line: a file for a command or for some that belong together, and a line in app.GROUPS for each. Printing
and exit codes live here and nowhere else.
"""
