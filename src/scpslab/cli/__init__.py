"""The command line: one file a command, one line in app.GROUPS. Printing and exit codes live here and nowhere
else.
"""
