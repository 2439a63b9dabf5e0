"""What the Makefile calls; a package for the builders in it."""
