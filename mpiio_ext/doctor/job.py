"""The job: whether its ranks find each other, write, read and spawn; asked for in a child, since MPI may end it.

A child is each process' rank of the job and reports its findings (`mpiio_ext.doctor.rank`); this module interprets
them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpiio_ext.common.children import last_line
from mpiio_ext.doctor.children import Answer
from mpiio_ext.doctor.findings import Finding, bad, good, warn
from mpiio_ext.doctor.mpi import FAMILIES, Job, family_of

#: Facts in which all ranks agree, and their names.
_ALIKE = {"mpiio_ext": "mpiio_ext", "version": "the MPI library", "library": "the library's path", "python": "Python"}


@dataclass(frozen=True, slots=True)
class _Seen:
    """An answer of rank 0, and the value to compare it with."""

    answer: Answer
    job: Job
    family: str
    program: Mapping[str, Any]

    def another(self) -> bool:
        """Return whether mpi4py has another MPI library than the program, as far as that can be seen."""
        version, paths = " ".join(str(self.get("version")).split()), self.get("mpi_paths") or []
        if os.path.realpath(self.program["library"]) in map(os.path.realpath, paths):
            return False
        return self.program["version"] != version if self.program["version"] else bool(paths)

    def has(self, name: str) -> bool:
        return name in self.answer.values

    def get(self, name: str) -> Any:
        return self.answer.values.get(name)


def examine_job(
    answer: Answer, job: Job, family: str, write: bool, spawn: bool, program: Mapping[str, Any]
) -> list[Finding]:
    """Return what a rank's answers mean; of another MPI than the program's only that it is another one.

    Parameters
    ----------
    answer : of rank 0.
    job : the launcher's facts.
    family : that the library was built for.
    write, spawn : whether these were asked for.
    program : facts of `program.mpi`; empty if no program was named, or its MPI library is not known.
    """
    seen = _Seen(answer, job, family, program)
    found = [_version(seen)]
    if not seen.has("version") or "program" in found[0].facts:
        return found
    found.append(_started(seen))
    if not seen.has("size"):
        return found
    found.append(_agreement(seen))
    if write:
        found.append(_trip(seen))
    if spawn:
        found.append(_spawn(seen))
    return found


def _version(seen: _Seen) -> Finding:
    key = "mpi.version"
    if not seen.has("version"):
        advice = "python -c 'import mpiio_ext; from mpi4py import MPI' prints more; programs in C may work"
        return (warn if seen.program else bad)(key, f"no MPI from Python: {seen.answer.reason()}", advice)
    version, standard = " ".join(str(seen.get("version")).split()), ".".join(map(str, seen.get("standard") or ()))
    theirs = family_of(version)
    facts: dict[str, Any] = {"version": version, "standard": standard, "family": theirs or None}
    facts |= {"interposed": seen.get("interposed"), "libraries": seen.get("mpi_paths")}
    strange = theirs and seen.family not in ("", "mpiabi", theirs)
    if seen.program and (strange or seen.another()):
        theirs = f"{seen.program['version'] or FAMILIES.get(seen.family, '')} ({seen.program['library']})"
        text = f"mpi4py uses {version}, the program {theirs}: the job was not examined"
        advice = "to check the program's MPI, use an environment whose mpi4py uses it"
        return warn(key, text, advice, program=theirs, **facts)
    if strange:
        text = f"mpi4py uses {version}, but this mpiio_ext is for {FAMILIES[seen.family]}"
        return bad(key, text, "install mpiio_ext with the MPI of mpi4py, or set MPI4PY_MPIABI", **facts)
    if not seen.get("interposed"):
        text = f"{version}: MPI_File_* of mpi4py does not reach this library"
        return bad(key, text, "is another library in front of it? See LD_PRELOAD", **facts)
    return good(key, f"{version}, MPI {standard}; MPI-IO of mpi4py reaches this library", **facts)


def _started(seen: _Seen) -> Finding:
    key, job = "mpi.start", seen.job
    if not seen.has("size"):
        advice = "does the MPI work without this library? mpirun -n 2 python -m mpi4py.bench helloworld"
        if "SLURM_JOB_ID" in os.environ:
            advice = "under Slurm: srun --mpi=pmix (Open MPI), --mpi=pmi2 (MPICH)"
        return bad(key, f"MPI_Init_thread has not returned: {seen.answer.reason()}", advice, size=None)
    found = int(seen.get("size"))
    facts = {"size": found, "asked": job.size if job.launched else None, "finalized": bool(seen.get("finalized"))}
    if job.launched and found != job.size:
        advice = "every rank is alone: the launcher is of another MPI than the library, or Slurm's --mpi is wrong"
        return bad(key, f"the launcher has started {job.size} ranks, MPI sees {found}", advice, **facts)
    return good(key, f"MPI starts, {found} rank{'s' if found > 1 else ''}", **facts)


def _agreement(seen: _Seen) -> Finding:
    """Return whether the ranks have the same library and MPI."""
    key, ranks = "job.agreement", seen.get("ranks") or []
    if not ranks:
        text = f"the ranks cannot exchange messages: {seen.answer.reason()}"
        return bad(key, text, "does the MPI work without this library?")
    facts = {"ranks": len(ranks), "hosts": len({rank["host"] for rank in ranks})}
    for name, what in _ALIKE.items():
        values = [str(rank.get(name)) for rank in ranks]
        other = next((number for number, value in enumerate(values) if value != values[0]), None)
        if other is not None:
            text = f"the ranks differ in {what}: {values[0]} on rank 0, {values[other]} on rank {other}"
            advice = "one installation that all hosts see, and one environment for all ranks"
            return (bad if name in ("mpiio_ext", "version") else warn)(key, text, advice, differs=name, **facts)
    return good(key, f"{len(ranks)} rank{'s have' if len(ranks) > 1 else ' has'} the same mpiio_ext and MPI", **facts)


def _trip(seen: _Seen) -> Finding:
    key, error = "io.round_trip", seen.get("trip_error")
    facts = {"right": seen.get("trip_right"), "own": seen.get("trip_own"), "reason": seen.get("trip_reason")}
    if error is not None:
        seen_by_all = "choose a folder that can be written to: --path"
        advice = "a file system that all hosts have mounted: --path" if seen.has("trip_blind") else seen_by_all
        return bad(key, f"no collective write and read: {error}", advice, **facts)
    if facts["right"] is None:
        text = f"a collective write and read has not ended: {seen.answer.reason()}"
        advice = "MPIOX_HINTS='*:mpiox_enable=false' leaves files to the MPI library: does it work then?"
        return bad(key, text, advice, **facts)
    if not facts["right"]:
        return bad(key, "a collective has read back other bytes than were written", "please report this", **facts)
    if not facts["own"]:
        text = f"right, but the MPI library has carried it out: {facts['reason']}"
        return warn(key, text, "see `mpiio-ext help explanation/limitations`", **facts)
    return good(key, f"a collective write and read was right, carried out by this library ({facts['reason']})", **facts)


def _spawn(seen: _Seen) -> Finding:
    key, refused = "mpi.spawn", seen.get("spawn_refused")
    if refused:
        text = f"not tried, because this library spawns no delegates here: {refused}"
        advice = "I/O delegates become processes that ranks start; mpiox_delegate_mode=process requests them directly"
        return warn(key, text, advice, works=None, refused=refused)
    if seen.get("spawned"):
        return good(key, "MPI_Comm_spawn works, and this library spawns delegates here", works=True, refused="")
    # MPICH's error strings are a stack of calls, one a line: the innermost names the reason.
    reason = last_line(str(seen.get("spawn_error") or seen.answer.reason() or "it has not returned"))
    advice = "I/O delegates then need mpiox_delegate_mode=process"
    if "unable to reach each other" in seen.answer.output:
        advice += "; Open MPI connects to what it spawns by TCP, and there is no network interface but the loopback"
    elif "SLURM_JOB_ID" in os.environ:
        advice += "; under Slurm: srun --mpi=pmix with a free task, or mpirun inside of the allocation"
    elif not seen.job.launched:
        advice += "; started by mpirun it may work"
    elif seen.family == "openmpi":
        advice += "; it takes a free slot: mpirun --oversubscribe, or fewer ranks"
    return warn(key, f"MPI_Comm_spawn does not work: {reason}", advice, works=False, refused=refused)
