"""The plan and the list of the bench as text; neither starts MPI work nor touches a file."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from mpiio_ext.bench import interfaces, kernels
from mpiio_ext.bench.asked import Options
from mpiio_ext.bench.execution.case import Case
from mpiio_ext.bench.kernels import Pattern, Program
from mpiio_ext.bench.kernels.program import Access
from mpiio_ext.bench.kernels.request import command_words
from mpiio_ext.bench.methods import Method
from mpiio_ext.bench.results.table import print_absent
from mpiio_ext.bench.work import Work, needed_bytes
from mpiio_ext.common.units import megabytes
from mpiio_ext.errors import ArgumentError

_SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
_DEFAULT_RANKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """The bytes that all runs move together, and the number of their files."""

    written_bytes: int = 0
    read_bytes: int = 0
    files: int = 0

    def times(self, count: int) -> Volume:
        """Return `count` times as much."""
        return Volume(
            written_bytes=count * self.written_bytes, read_bytes=count * self.read_bytes, files=count * self.files
        )

    def plus(self, other: Volume) -> Volume:
        """Return the sum."""
        return Volume(
            written_bytes=self.written_bytes + other.written_bytes,
            read_bytes=self.read_bytes + other.read_bytes,
            files=self.files + other.files,
        )

    def __str__(self) -> str:
        word = "file" if self.files == 1 else "files"
        return f"{megabytes(self.written_bytes)} written, {megabytes(self.read_bytes)} read, {self.files:,} {word}"


def launch_ranks(options: Options) -> int:
    """Return the requested number of ranks, or the launcher's, or 4."""
    if options.ranks is not None:
        return options.ranks
    found = [os.environ[name] for name in _SIZE_VARIABLES if os.environ.get(name, "").isdigit()]
    return max(1, int(found[0])) if found else _DEFAULT_RANKS


# ---- what one run moves ----


def volume_of(program: Program, interface: str) -> Volume:
    """Return the bytes that one run of a program moves, over the steps of all ranks."""
    layouts, moved = program.files(), {True: 0, False: 0}
    variables = [{item.name: item for item in layout.variables} for layout in layouts]
    for phase in program.phases():
        for rank in range(program.active):
            for step in program.steps(phase.name, rank, interface):
                if isinstance(step, Access):
                    moved[step.write] += step.data_bytes(variables[step.file][step.variable])
    return Volume(written_bytes=moved[True], read_bytes=moved[False], files=len(layouts))


# ---- equivalent commands ----


def _command(options: Options, ranks: int, words: Sequence[str], methods: Sequence[Method]) -> str:
    line = ["mpirun", "-n", str(ranks), "python", "-m", "mpiio_ext.bench", *words]
    line += ["-m", ",".join(method.name for method in methods), "-r", str(options.repetitions)]
    for name, value in options.hints.items():
        line += ["-H", f"{name}={value}"]
    return shlex.join([*line, "--path", str(options.path)])


def _words(case: Case) -> list[str]:
    """Return the options of the command line that select this case alone."""
    if case.request is not None:
        return [*command_words(case.request), "-i", case.interface.name]
    pattern, sizes = case.program, case.sizes
    assert isinstance(pattern, Pattern)
    assert sizes is not None
    return ["-w", pattern.name, "-i", case.interface.name, "--size", str(sizes.file_bytes), *pattern.words(sizes)]


# ---- printing ----


def _print(console: Console, text: str = "") -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)


def _print_item(
    console: Console, title: str, details: str, volume: Volume, methods: Sequence[Method], command: str
) -> None:
    _print(console, title)
    if details:
        _print(console, f"    {details}")
    _print(console, f"    each run: {volume}; methods: {', '.join(method.name for method in methods)}")
    _print(console, f"    {command}")


def _details(case: Case) -> str:
    if case.request is None:
        return ""
    values = [
        f"{field.name}={getattr(case.program, field.name)}"
        for field in dataclasses.fields(case.program)
        if field.name != "ranks"
    ]
    scale = f", scale {case.request.scale:g}" if case.request.scale != 1 else ""
    return f"preset {case.request.preset}{scale}: {' '.join(values)}"


def print_plan(console: Console, options: Options, work: Work, ranks: int) -> None:
    """Print each thing that would run, with its parameters, bytes, methods and the command that runs it alone."""
    if options.suite is not None:
        _print(console, f"suite {options.suite.name}: {options.suite.title}")
        if options.suite.source:
            _print(console, f"parameters: {options.suite.source}")
    _print(
        console,
        f"{ranks} ranks, {options.repetitions} repetitions"
        + (f" within {options.budget_s:g} s" if options.budget_s else "")
        + f", files in {options.path}\n",
    )
    total, every = Volume(), list(work.methods)
    for case in work.cases:
        volume, methods = volume_of(case.program, case.interface.name), case.methods(every)
        _print_item(
            console, case.label, _details(case), volume, methods, _command(options, ranks, _words(case), methods)
        )
        total = total.plus(volume.times(len(methods)))
    _print(console, f"\n{work.runs * options.repetitions:,} runs: {total.times(options.repetitions)}")
    _print(console, f"at a time {megabytes(needed_bytes(work))} in {options.path}")
    where = options.output or (
        options.archive / options.suite.name / "<date>" / "<time>" if options.suite else "bench-results/<date>"
    )
    _print(console, f"results in {where}")
    print_absent(console, work.absent)


def _size(name: str, ranks: int, preset: str, scale: float) -> str:
    try:
        kernel = kernels.create(name, ranks, preset=preset, scale=scale)
    except ArgumentError as error:
        return str(error)
    files = kernel.files()
    count = f" in {len(files):,} files" if len(files) > 1 else ""
    some = f", {kernel.active} ranks" if kernel.active != ranks else ""
    return f"{preset} {megabytes(sum(layout.size_bytes for layout in files))}{count}{some}"


def print_kernels(console: Console, options: Options, ranks: int) -> None:
    """Print every kernel with its interfaces, its presets and their sizes, its parameters."""
    wanted = dict.fromkeys(request.kernel for request in options.kernels) or dict.fromkeys(kernels.KERNELS)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("kernel", "interfaces", f"sizes on {ranks} ranks", "parameters"):
        table.add_column(title, overflow="fold", no_wrap=title in ("kernel", f"sizes on {ranks} ranks"))
    for name in wanted:
        kind = kernels.kind_of(name)
        scale = next((request.scale for request in options.kernels), 1.0)
        sizes = "\n".join(_size(name, ranks, preset, scale) for preset in kind.presets)
        parameters = ", ".join(field.name for field in dataclasses.fields(kind) if field.name != "ranks")
        table.add_row(name, "\n".join(kind.interfaces), sizes, parameters)
    console.print(table)
    _print(console, f"\npatterns (-w) have {' and '.join(_pattern_interfaces())}; --dry-run shows what would be run")


def _pattern_interfaces() -> list[str]:
    """Return the interfaces that patterns have."""
    return [name for name in interfaces.REGISTRY if any(name in kind.interfaces for kind in kernels.PATTERNS.values())]
