"""`python -m parabolt` is the command `parabolt`."""

from parabolt.cli.main import run

run()
