"""`python -m scpslab`."""

from scpslab.cli.app import main

main()
