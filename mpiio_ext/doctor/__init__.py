"""The checks of ``mpiio-ext doctor``: whether the library can work here, for a program, and the remedies if not.

Problem. If this library does nothing, or does not gain speed, the cause lies mostly outside of it: a static program,
another MPI, a launcher that does not pass ``LD_PRELOAD`` on, a file system without coherence, a small ``/dev/shm``.
Each has its own symptom, and several have none.

Method. Every question is put to what decides it, not inferred. The dynamic linker prints the library that a program's
``MPI_File_open`` is bound to. Two processes try whether one can map the other's memory. A real collective shows whether
bytes arrive and which library carried it out. A real ``MPI_Comm_spawn`` shows whether there is room.

Guarantees. A check that may hang or die (file systems, MPI, imports) runs in a child process with a time limit
(`mpiio_ext.doctor.children`), so that doctor always reports the result. In a job rank 0 alone prints.
``docs/reference/checks.md`` lists the checks.
"""

from __future__ import annotations

from mpiio_ext.doctor.findings import Finding, State, worst

__all__ = ["Finding", "State", "worst"]
