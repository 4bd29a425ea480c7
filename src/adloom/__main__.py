"""`python -m adloom` is `adloom`."""

from adloom.cli.main import main

main()
