"""The command line: one file a command, one line in app.COMMANDS. Printing and exit codes live here and nowhere
else.
"""
