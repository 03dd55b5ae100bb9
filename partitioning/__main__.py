"""Entry point of ``python -m mpiio_ext.partitioning``."""

import sys

from mpiio_ext.cli import main

if __name__ == "__main__":
    main(["partitioning", *sys.argv[1:]], prog_name="mpiio-ext")
