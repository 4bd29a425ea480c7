"""`python -m adloom` is `adloom`."""

from adloom.entrypoints.cli import main

main()
