"""The applications of the paper's Table 3, their queue, and curves for them.

Figure 5 is printed as a drawing only. This module has the numbers in the text and in Table 4 of the paper. The rest of
each curve is estimated from measured base patterns (Section 3.1) and scaled to these numbers.

Source. Table 3, Table 4, Section 5.2 and 5.3 of the arbitration paper. Request sizes: BT-IO's from Section 5.1 (1.34
        MB and 5.35 MB); the others' are not stated there: 1 MiB is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.estimate import anchored, estimate
from mpiio_ext.delegates.arbitration.jobs import Job
from mpiio_ext.delegates.arbitration.pattern import Pattern
from mpiio_ext.delegates.arbitration.queue import QueueJob

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One row of Table 3.

    Attributes
    ----------
    pattern : its base pattern, with its compute nodes and processes
    volume_bytes : written and read
    known : I/O nodes -> MB/s that the paper states in numbers
    """

    pattern: Pattern
    volume_bytes: int
    known: Mapping[int, float]


def _application(
    nodes: int,
    processes: int,
    volume_gb: float,
    known: Mapping[int, float],
    *,
    shared: bool = True,
    strided: bool = False,
    request_bytes: int = _MIB,
) -> Application:
    pattern = Pattern(
        layout="shared" if shared else "file-per-process",
        spatiality="strided" if strided else "contiguous",
        request_bytes=request_bytes,
        compute_nodes=nodes,
        processes=processes,
    )
    return Application(pattern=pattern, volume_bytes=int(volume_gb * 1e9), known=known)


#: Label -> application.
APPLICATIONS: Mapping[str, Application] = {
    "BT-C": _application(32, 128, 12.6, {0: 195.7, 1: 77.6}, strided=True, request_bytes=1_340_000),
    "BT-D": _application(64, 512, 253.0, {1: 597.2, 2: 594.2}, strided=True, request_bytes=5_350_000),
    "HACC": _application(8, 64, 1.8, {1: 987.3, 4: 3850.7}, shared=False),
    "IOR-MPI": _application(16, 128, 32.0, {1: 268.4, 8: 5089.9}),
    "POSIX-S": _application(16, 128, 32.0, {}),
    "POSIX-L": _application(64, 512, 64.0, {2: 411.9, 4: 1049.9, 8: 1963.9}, shared=False),
    "MAD": _application(32, 64, 32.4, {0: 255.9, 1: 77.8}),
    "SIM": _application(16, 16, 19.6, {}),
    "S3D": _application(64, 512, 33.7, {0: 241.3, 2: 48.1}),
}

#: The queue of Section 5.3, in its order.
QUEUE = (
    "HACC",
    "IOR-MPI",
    "SIM",
    "IOR-MPI",
    "IOR-MPI",
    "POSIX-S",
    "POSIX-L",
    "BT-C",
    "MAD",
    "MAD",
    "S3D",
    "HACC",
    "HACC",
    "BT-D",
)


#: The applications of Section 5.2, which run at the same time.
TOGETHER = ("BT-C", "BT-D", "IOR-MPI", "POSIX-L", "MAD", "S3D")


def curves_of_applications(base: Mapping[Pattern, Curve]) -> dict[str, Curve]:
    """Return a curve of each application: estimated from base patterns, scaled to the paper's numbers.

    Raises
    ------
    CurveError
        Base patterns without a number of I/O nodes in common.
    """
    return {
        name: anchored(
            estimate(app.pattern, base), app.known, source="estimated from base patterns, scaled to the paper's numbers"
        )
        for name, app in APPLICATIONS.items()
    }


def paper_jobs(base: Mapping[Pattern, Curve]) -> list[Job]:
    """Return the six applications of Section 5.2 with estimated curves; see :func:`curves_of_applications`."""
    curves = curves_of_applications(base)
    return [
        Job(
            name=name,
            compute_nodes=APPLICATIONS[name].pattern.compute_nodes,
            curve=curves[name],
            processes=APPLICATIONS[name].pattern.processes,
        )
        for name in TOGETHER
    ]


def paper_queue(base: Mapping[Pattern, Curve]) -> list[QueueJob]:
    """Return the queue of Section 5.3 with estimated curves; see :func:`curves_of_applications`."""
    curves = curves_of_applications(base)
    found = []
    for number, name in enumerate(QUEUE, start=1):
        app = APPLICATIONS[name]
        job = Job(
            name=f"{number:02d}-{name}",
            compute_nodes=app.pattern.compute_nodes,
            curve=curves[name],
            processes=app.pattern.processes,
        )
        found.append(QueueJob(job=job, volume_bytes=app.volume_bytes))
    return found
