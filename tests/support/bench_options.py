"""The options of the bench, as a command line gives them."""

from __future__ import annotations

from mpiio_ext.bench.asked import Options
from mpiio_ext.bench.options import command


def parse(*arguments: str) -> Options:
    """Return what these words ask for; a click.ClickException says what is wrong with them."""
    options = command.main(args=list(arguments), standalone_mode=False)
    assert isinstance(options, Options)
    return options
