"""``python -m mpiio_ext`` is the command ``mpiio-ext``."""

from mpiio_ext.cli import main

main(prog_name="mpiio-ext")
