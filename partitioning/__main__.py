"""Entry point of ``python -m mpiio_ext.partitioning``."""

from mpiio_ext.partitioning.cli import main

if __name__ == "__main__":
    main(prog_name="mpiio-ext partitioning")
