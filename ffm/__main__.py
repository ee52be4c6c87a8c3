"""`python -m ffm` is `ffm`."""

from ffm.cli.main import main

main()
