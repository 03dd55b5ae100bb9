"""The user's request to the bench, from command line, preset, suite and defaults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mpiio_ext.bench.kernels import Sizes
from mpiio_ext.bench.kernels.request import KernelRequest
from mpiio_ext.bench.methods import Method
from mpiio_ext.bench.suites.files import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The user's request.

    Attributes
    ----------
    path : folder of the bench files
    output : folder of the results, None = a new one under ./bench-results, or in the archive for a suite
    archive : folder under which the results of suites are kept
    suite : the parameter file, or None
    sizes : geometry of the patterns
    patterns : names
    kernels : the applications
    interfaces : names; empty = all that are there
    methods : what to compare
    methods_given : the user named them, so that one that cannot run is an error rather than left out
    delegates, delegate_mode : of the method "delegates": how many, and how they are started
    hints : set for every method
    repetitions, read_shift : counts
    budget_s : fewer repetitions where they would take longer; 0 = no limit
    fit : make files smaller, so that enough repetitions fit into the budget
    native_limit_s, native_bytes : see `NativeLimit`
    plot, report : draw the picture, make the page
    progress : None = when there is a terminal
    dry_run, list_kernels : only print what would be run, or what there is
    ranks : for these two; None = what the launcher says
    """

    path: Path
    output: Path | None
    archive: Path
    suite: Suite | None
    sizes: Sizes
    patterns: tuple[str, ...]
    kernels: tuple[KernelRequest, ...]
    interfaces: tuple[str, ...]
    methods: tuple[Method, ...]
    methods_given: bool
    delegates: str
    delegate_mode: str
    hints: dict[str, str]
    repetitions: int
    budget_s: float
    fit: bool
    read_shift: int
    native_limit_s: float
    native_bytes: int
    plot: bool
    report: bool
    progress: bool | None
    dry_run: bool
    list_kernels: bool
    ranks: int | None
