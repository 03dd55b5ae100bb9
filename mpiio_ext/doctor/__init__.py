"""What ``mpiio-ext doctor`` finds out: whether the library can work here, for a program, and what to do where not.

Problem. Where this library does nothing, or its speed is not there, the cause lies mostly outside of it: a static
program, another MPI, a launcher that does not pass ``LD_PRELOAD`` on, a file system without coherence, a small
``/dev/shm``. Each has its own symptom, and several have none.

Method. Every question is put to what decides it, not inferred. The dynamic linker says what a program's
``MPI_File_open`` is bound to, two processes try whether one can map the other's memory, a real collective shows whether
bytes arrive and who carried it out, a real ``MPI_Comm_spawn`` whether there is room.

Guarantees. Whatever may hang or die (file systems, MPI, imports) is asked in a child process with a time limit
(`mpiio_ext.doctor.children`), so that doctor says what happened in any case. In a job rank 0 alone prints.
``docs/reference/checks.md`` lists the checks.
"""

from __future__ import annotations

from mpiio_ext.doctor.findings import Finding, State, worst

__all__ = ["Finding", "State", "worst"]
