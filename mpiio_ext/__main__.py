"""The command ``mpiio-ext``, also as ``python -m mpiio_ext``."""

import sys


def main() -> None:
    """Become the program of ``mpiio-ext run``, or else read the command line."""
    from mpiio_ext import started

    started.begin(sys.argv[1:])
    from mpiio_ext.cli import main

    main(prog_name="mpiio-ext")


if __name__ == "__main__":
    main()
