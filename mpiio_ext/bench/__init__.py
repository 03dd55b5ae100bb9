"""The bench: access patterns and kernels of parallel codes, run under each method, with every byte verified.

``mpirun -n 4 mpiio-ext bench`` runs it; ``--help`` explains its options and docs/reference/suites.md its measurements.

Layers, each of which imports only those above it:

==================  ==================================================================================================
`kernels`           what is accessed: one module per pattern and per application
`interfaces`        how: MPI-IO, HDF5, PnetCDF, netCDF-4, POSIX; `pnetcdf` is a binding
`methods`           native and the methods of the extension, as sets of hints
`results`           the files, the table and the picture; `mpiio_ext.common.results` has their schema and medians
`run`               the runner: programs played through interfaces, verified, counted
`suites`            parameter files, one suite at a time, archive
`options`           the command line; `arguments`, the kinds of its values
`work`, `record`    what runs, decided before anything runs, and how it is recorded; `preview`, printed
`place`             where things go: folders that are tried before anything runs
`bench`             all of it, from options to files; `environment`, where it ran
`compare`           the command ``compare``, which launches a micro-benchmark in C and is no MPI program
==================  ==================================================================================================

A new pattern, kernel or interface is one module and one line in the ``__init__`` of its folder.

Importing this package imports neither MPI nor h5py. `run` measures from Python.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from mpiio_ext.common.called import Number, Quantity, Several, call, keywords, words_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from mpiio_ext.report.found import Found

__all__ = ["run"]


class BenchOptions(TypedDict, total=False):
    """Options of ``mpiio-ext bench``, by name."""

    suite: str | None
    quick: bool | None
    archive: str | None
    workload: str | None
    kernel: str | None
    preset: str | None
    scale: Number
    param: Several
    interface: str | None
    method: str | None
    delegates: Quantity
    delegate_mode: str | None
    size: Quantity
    block: str | None
    transfer: Quantity
    piece: Quantity
    ghost: Number
    steps: Number
    seed: Number
    repeats: Number
    budget: Quantity
    fit: bool | None
    read_shift: Number
    hint: Several
    stripe_size: Quantity
    stripe_count: Number
    native_limit: Quantity
    native_size: Quantity
    figures: bool | None
    page: bool | None
    progress: bool | None


@keywords(BenchOptions)
def run(
    path: str | Path = ".",
    *,
    launcher: Sequence[str] = ("mpirun", "-n", "4"),
    output: str | Path | None = None,
    **options: Unpack[BenchOptions],
) -> Found:
    """Measure a file system under each method, and return the measurements.

    Parameters
    ----------
    path : existing folder on the file system to measure.
    launcher : what starts the ranks; not inside of an MPI program.
    output : folder that keeps the results; None: they are returned only.
    **options : those of the command, by name: ``quick=True``, ``method="native,auto"``.

    Raises
    ------
    CommandError
        A run has failed, or data were wrong.
    """
    from mpiio_ext.report.found import Found
    from mpiio_ext.report.load import load_all

    with tempfile.TemporaryDirectory(prefix="mpiio-ext-") as folder:
        target = Path(output) if output is not None else Path(folder) / "results"
        words = ["--path", str(path), "--output", str(target), *words_of(options, "figures", "page", "progress")]
        call(words, launcher=launcher, module="mpiio_ext.bench")
        return Found(load_all([target])[0][0])
