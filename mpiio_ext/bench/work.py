"""The work of a bench, decided before anything runs: patterns, kernels, interfaces, methods, and what is left out.

Local, and the same on every rank of a homogeneous job; neither starts MPI nor touches a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mpiio_ext.bench import extension, interfaces, kernels
from mpiio_ext.bench.asked import Options
from mpiio_ext.bench.errors import SetupError
from mpiio_ext.bench.execution.case import Case
from mpiio_ext.bench.interfaces import Interface
from mpiio_ext.bench.kernels import Program
from mpiio_ext.bench.methods import Method
from mpiio_ext.common.results import Absent
from mpiio_ext.errors import ArgumentError

_HEADER_BYTES = 1 << 20  # of self-describing formats, generously


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work to run.

    Attributes
    ----------
    cases : patterns, then kernels
    methods : in the order of the first repetition
    absent : what is left out, and why
    notes : lines on anything unusual
    """

    cases: tuple[Case, ...] = ()
    methods: tuple[Method, ...] = ()
    absent: tuple[Absent, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def patterns(self) -> tuple[Case, ...]:
        """The patterns among the cases."""
        return tuple(case for case in self.cases if case.program.kind == "pattern")

    @property
    def kernels(self) -> tuple[Case, ...]:
        """The kernels among the cases."""
        return tuple(case for case in self.cases if case.program.kind == "kernel")

    @property
    def runs(self) -> int:
        """Runs of one repetition."""
        return self.runs_of(self.cases)

    def runs_of(self, cases: Iterable[Case]) -> int:
        """Return how many runs one repetition of these cases is."""
        return sum(len(case.methods(list(self.methods))) for case in cases)


class _Interfaces:
    """The available interfaces; one that is requested by name and missing is an error."""

    def __init__(self, wanted: tuple[str, ...], absent: list[Absent]) -> None:
        self._wanted, self._absent, self._reasons = wanted, absent, dict[str, str | None]()

    def has(self, way: Interface) -> bool:
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


def _methods(options: Options, absent: list[Absent]) -> tuple[Method, ...]:
    reason = extension.absent_reason()
    if reason is None:
        return options.methods
    ours = [method.name for method in options.methods if not method.native]
    if ours and options.methods_given:
        raise SetupError(f"--method {ours[0]}: {reason}")
    if ours:
        absent.append(Absent(what=f"methods {', '.join(ours)}", reason=reason))
    return tuple(method for method in options.methods if method.native)


def _patterns(options: Options, ranks: int, available: _Interfaces) -> list[Case]:
    try:
        variants = kernels.create_patterns(options.patterns, options.sizes, ranks)
    except ValueError as error:
        raise SetupError(f"--size: {error}") from error
    return [
        Case(program=variant, interface=interfaces.REGISTRY[name], sizes=options.sizes, read_shift=options.read_shift)
        for variant in variants
        for name in variant.interfaces
        if available.has(interfaces.REGISTRY[name])
    ]


def _kernels(options: Options, ranks: int, available: _Interfaces, absent: list[Absent]) -> list[Case]:
    cases = []
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
        cases += [
            Case(program=kernel, interface=interfaces.REGISTRY[name], name=request.name, request=request)
            for name in request.interfaces
            if available.has(interfaces.REGISTRY[name])
        ]
    return cases


def _check_names(cases: tuple[Case, ...]) -> None:
    """Raise SetupError when two things that run would have the same name in the results."""
    known = set[tuple[str, str]]()
    for case in cases:
        place = (case.variant, case.interface.name)
        if place in known:
            raise SetupError(
                f"two things to run are called {place[0]} through {place[1]}: give one of the entries a "
                'name of its own (name = "...")'
            )
        known.add(place)


def _notes(case: Case) -> tuple[str, str]:
    """Return the program's note, and the reason for running it; both contain its name, or are empty."""
    about = case.request.about if case.request is not None else ""
    return _note(case.program), f"{case.title}: {about}" if about else ""


def _note(program: Program) -> str:
    """Return the program's note; that of a kernel names it."""
    if program.kind == "pattern" or not program.note or program.title in program.note:
        return program.note
    return f"{program.title}: {program.note}"


def plan(options: Options, ranks: int) -> Work:
    """Return the work for `ranks` ranks.

    Raises
    ------
    SetupError
        A pattern, interface or method that the user named cannot run here, or no run is left.
    """
    absent: list[Absent] = []
    available = _Interfaces(options.interfaces, absent)
    wanted = [*_patterns(options, ranks, available), *_kernels(options, ranks, available, absent)]
    methods = _methods(options, absent)
    if not wanted:
        why = (
            f": {absent[0].what}: {absent[0].reason}"
            if absent
            else (": nothing requested has a form for the requested interfaces")
        )
        raise SetupError(f"nothing to run{why}")
    cases = tuple(case for case in wanted if case.methods(list(methods)))
    if not cases:
        raise SetupError("nothing to run: none of the methods can run here; POSIX has 'native' only")
    _check_names(cases)
    notes = [note for case in cases for note in _notes(case)]
    if options.suite is not None and any(case.program.kind == "pattern" for case in cases):
        notes.insert(0, options.suite.about)
    return Work(
        cases=cases, methods=methods, absent=tuple(absent), notes=tuple(dict.fromkeys(note for note in notes if note))
    )


def needed_bytes(work: Work) -> int:
    """Return the space that the files need at a time.

    In the first repetition a kernel has two sets of files: the files of the first method are compared with the files of
    the others.
    """
    sizes = []
    for case in work.cases:
        copies = 2 if case.compared and len(case.methods(list(work.methods))) > 1 else 1
        sizes.append(copies * (case.bytes + _HEADER_BYTES))
    return max(sizes)
