"""What runs, decided before anything runs: patterns and kernels, their interfaces, the methods, and what is left out.

Local, and the same on every rank of a homogeneous job; neither starts MPI nor touches a file.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpiio_ext.bench import extension, interfaces, stores, workloads
from mpiio_ext.bench.errors import EXIT_USAGE, BenchError
from mpiio_ext.bench.kernel_options import KernelRequest
from mpiio_ext.bench.kernels.program import Kernel
from mpiio_ext.bench.kernels.runner import KernelCase
from mpiio_ext.bench.options import Options
from mpiio_ext.bench.results import Absent
from mpiio_ext.bench.runner import Case
from mpiio_ext.bench.strategies import Strategy
from mpiio_ext.errors import ArgumentError

__all__ = ["KernelItem", "SetupError", "Work", "needed_bytes", "plan"]

_HEADER_BYTES = 1 << 20  # of self-describing formats, generously


class SetupError(BenchError):
    """What was asked for cannot run here."""

    exit_status = EXIT_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelItem:
    """A kernel through one interface, and how it was asked for."""

    case: KernelCase
    request: KernelRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What runs.

    Attributes
    ----------
    cases : patterns
    items : kernels
    strategies : methods, in the order of the first repetition
    absent : what is left out, and why
    notes : lines on anything unusual
    """

    cases: tuple[Case, ...] = ()
    items: tuple[KernelItem, ...] = ()
    strategies: tuple[Strategy, ...] = ()
    absent: tuple[Absent, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        """Runs of one repetition."""
        return len(self.cases) * len(self.strategies) + sum(
            len(item.case.strategies(list(self.strategies))) for item in self.items
        )


class _Interfaces:
    """Which interfaces are there; asked for by name, one that is missing is an error."""

    def __init__(self, wanted: tuple[str, ...], absent: list[Absent]) -> None:
        self._wanted, self._absent, self._reasons = wanted, absent, dict[str, str | None]()

    def has(self, way: interfaces.Interface | stores.Store) -> bool:
        """Return whether an interface that something could use is to be used; raises SetupError."""
        if self._wanted and way.name not in self._wanted:
            return False
        if way.name not in self._reasons:
            reason = self._reasons[way.name] = way.absent_reason()
            if reason is not None and self._wanted:
                raise SetupError(f"--interface {way.name}: {reason}")
            if reason is not None:
                self._absent.append(Absent(what=f"{way.title} variants", reason=reason))
        return self._reasons[way.name] is None


def _strategies(options: Options, absent: list[Absent]) -> tuple[Strategy, ...]:
    reason = extension.absent_reason()
    if reason is None:
        return options.strategies
    ours = [strategy.name for strategy in options.strategies if not strategy.native]
    if ours and options.strategies_given:
        raise SetupError(f"--method {ours[0]}: {reason}")
    if ours:
        absent.append(Absent(what=f"methods {', '.join(ours)}", reason=reason))
    return tuple(strategy for strategy in options.strategies if strategy.native)


def _cases(options: Options, ranks: int, available: _Interfaces) -> tuple[Case, ...]:
    if not options.workloads:
        return ()
    try:
        variants = workloads.create(options.workloads, options.sizes, ranks)
    except ValueError as error:
        raise SetupError(f"--size: {error}") from error
    ways = [way for way in interfaces.REGISTRY.values() if available.has(way)]
    return tuple(Case(workload=v, interface=way) for v in variants for way in ways if way.supports(v))


def _items(options: Options, ranks: int, available: _Interfaces, absent: list[Absent]) -> tuple[KernelItem, ...]:
    items = []
    for request in options.kernels:
        if not request.interfaces:
            continue
        try:
            kernel = request.create(ranks)
        except ArgumentError as error:
            if request.required:
                raise SetupError(f"--kernel {error}") from error
            absent.append(Absent(what=request.name or request.kernel, reason=str(error)))
            continue
        for name in request.interfaces:
            store = stores.REGISTRY[name]
            if available.has(store):
                case = KernelCase(kernel=kernel, store=store, name=request.name)
                items.append(KernelItem(case=case, request=request))
    return tuple(items)


def _check_names(cases: tuple[Case, ...], items: tuple[KernelItem, ...]) -> None:
    """Raise SetupError when two things that run would have the same name in the results."""
    known = {(case.workload.key, case.interface.name) for case in cases}
    for item in items:
        place = (item.case.variant, item.case.store.name)
        if place in known:
            raise SetupError(f"two things to run are called {place[0]} through {place[1]}: give one of the entries a "
                             "name of its own (name = \"...\")")
        known.add(place)


def _note(kernel: Kernel) -> str:
    """Return the kernel's note, which names it."""
    return kernel.note if not kernel.note or kernel.title in kernel.note else f"{kernel.title}: {kernel.note}"


def plan(options: Options, ranks: int) -> Work:
    """Return what runs on `ranks` ranks.

    Raises
    ------
    SetupError
        Something that was asked for by name cannot run here, or nothing is left to run.
    """
    absent: list[Absent] = []
    available = _Interfaces(options.interfaces, absent)
    cases = _cases(options, ranks, available)
    items = _items(options, ranks, available, absent)
    strategies = _strategies(options, absent)
    if not cases and not items:
        why = f": {absent[0].what}: {absent[0].reason}" if absent else (
            ": nothing of what was asked for has a form for the interfaces asked for")
        raise SetupError(f"nothing to run{why}")
    items = tuple(item for item in items if item.case.strategies(list(strategies)))
    if not strategies or not (cases or items):
        raise SetupError("nothing to run: none of the methods can run here; POSIX has 'native' only")
    _check_names(cases, items)
    notes = [case.workload.note for case in cases] + [_note(item.case.kernel) for item in items]
    return Work(cases=cases, items=items, strategies=strategies, absent=tuple(absent),
                notes=tuple(dict.fromkeys(note for note in notes if note)))


def needed_bytes(work: Work, *, keep_files: bool) -> int:
    """Return how much space the files take at a time.

    In the first repetition a kernel's files are there twice: those of the first method are what the others' are
    compared with.
    """
    sizes = [case.workload.extent_bytes + (0 if case.interface.raw else _HEADER_BYTES) for case in work.cases]
    for item in work.items:
        copies = 1 if len(item.case.strategies(list(work.strategies))) == 1 else 2
        sizes.append(copies * (item.case.bytes + _HEADER_BYTES))
    return sum(sizes) if keep_files else max(sizes)
