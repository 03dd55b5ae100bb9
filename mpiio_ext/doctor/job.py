"""The job: whether its ranks find each other, write, read and spawn; asked for in a child, since MPI may end it.

A child is this process' rank of the job and tells what it learns (`mpiio_ext.doctor.children`); `examine_job` says what
the answers of rank 0 mean.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mpiio_ext.common.units import size_text
from mpiio_ext.doctor.children import Answer, ask
from mpiio_ext.doctor.findings import Finding, State, bad, good, warn
from mpiio_ext.doctor.mpi import FAMILIES, Job, Theirs, family_of
from mpiio_ext.doctor.reach import SOMEBODY_ELSE

_DEBIAN_MPICH = ("usr/lib/*/libmpich.so.12", "usr/lib64/libmpich.so.12")


def take_part(job: Job, path: Path, environment: Mapping[str, str], limit_s: float, write: bool, spawn: bool) -> Answer:
    """Let a child be this process' rank of the job; rank 0 waits the shortest, so that it can say what happened.

    Parameters
    ----------
    job : this process' place.
    path : in whose folder a small file is written.
    environment : of the rank.
    limit_s : seconds until rank 0 gives up.
    write, spawn : whether to do so.
    """
    later = 0 if job.rank == 0 else 5
    return ask(
        "job",
        str(path),
        str(int(write)),
        str(int(spawn)),
        environment=environment,
        limit_s=limit_s + later,
        inherit=job.launched,
    )


@dataclass(slots=True)
class _Seen:
    """An answer of rank 0, and the findings that are made of it."""

    answer: Answer
    job: Job
    family: str
    apart: bool
    program: Theirs | None = None
    findings: list[Finding] = field(default_factory=list)

    def another(self) -> bool:
        """Return whether mpi4py has another MPI library than the program, as far as that can be seen."""
        if self.program is None:
            return False
        version, paths = " ".join(str(self.get("version")).split()), self.get("mpi_paths") or []
        if os.path.realpath(self.program.path) in map(os.path.realpath, paths):
            return False
        if self.program.version:
            return self.program.version != version
        return bool(paths)

    def has(self, name: str) -> bool:
        return name in self.answer.values

    def get(self, name: str) -> Any:
        return self.answer.values.get(name)


def examine_job(
    answer: Answer,
    job: Job,
    family: str,
    write: bool,
    spawn: bool,
    apart: bool = False,
    program: Theirs | None = None,
) -> list[Finding]:
    """Return what a rank's answers mean.

    Parameters
    ----------
    answer : of rank 0.
    job : what the launcher said.
    family : that the library was built for.
    write, spawn : whether these were asked for.
    apart : whether a wheel's library was chosen for a program that is none in Python: mpi4py's MPI may be another one.
    program : the MPI library of the program that was named; None where there is none, or it is not known.

    Notes
    -----
    Where mpi4py has another MPI than the program, nothing of it is an error of the program's: it is a warning at most.
    That its ranks do not find each other is left out: under the program's launcher they cannot.
    """
    seen = _Seen(answer, job, family, apart, program)
    seen.findings.append(_version(seen))
    if not seen.has("version"):
        return seen.findings
    another = "program" in seen.findings[0].facts
    if another and job.launched and seen.get("size") != job.size:
        return [*seen.findings, _left_out(seen)]
    found = _about_mpi(seen, write, spawn)
    return seen.findings + ([_milder(item) for item in found] if another else found)


def _left_out(seen: _Seen) -> Finding:
    size = seen.get("size")
    why = f"it sees {size} of the job's {seen.job.size} ranks" if size else f"it does not start: {seen.answer.reason()}"
    return warn(
        "mpi.start",
        f"what mpi4py's MPI would tell of the job is left out, for it is not the program's: {why}",
        "no fault of the program; in an environment whose mpi4py uses its MPI the job is examined, too",
        size=size,
        asked=seen.job.size,
        left_out=True,
    )


def _milder(finding: Finding) -> Finding:
    """Return the finding about another MPI than the program's: no error of the program's."""
    return replace(finding, state=State.WARNING) if finding.state is State.ERROR else finding


def _about_mpi(seen: _Seen, write: bool, spawn: bool) -> list[Finding]:
    """Return what is known of starting, comparing, writing and spawning, as far as the rank has got."""
    found = [_started(seen)]
    if not seen.has("thread"):
        return found
    found += [_thread(seen), *_ranks(seen), *_reach(seen)]
    if write:
        found.append(_trip(seen))
    if spawn:
        found.append(_spawn(seen))
    return found


def _version(seen: _Seen) -> Finding:
    key = "mpi.version"
    if not seen.has("version"):
        make = warn if seen.apart else bad
        return make(
            key,
            f"no MPI from Python: {seen.answer.reason()}",
            _renamed(seen.answer.said)
            or "python -c 'import mpiio_ext; from mpi4py import MPI' says more; programs in C may work",
        )
    version, standard = " ".join(str(seen.get("version")).split()), ".".join(map(str, seen.get("standard") or ()))
    theirs = family_of(version)
    facts: dict[str, Any] = {"version": version, "standard": standard, "family": theirs or None}
    facts |= {"interposed": seen.get("interposed"), "libraries": seen.get("mpi_paths")}
    strange = theirs and seen.family not in ("", "mpiabi", theirs)
    if (strange and seen.apart) or (seen.another() and not strange):
        return _another(seen, version, facts)
    if strange:
        return bad(
            key,
            f"mpi4py uses {version}, but this mpiio_ext is for {FAMILIES[seen.family]}",
            "install mpiio_ext with the MPI of mpi4py, or set MPI4PY_MPIABI",
            **facts,
        )
    if not seen.get("interposed"):
        return bad(
            key,
            f"{version}: MPI_File_* of mpi4py does not reach this library",
            "is another library in front of it? See LD_PRELOAD",
            **facts,
        )
    return good(key, f"{version}, MPI {standard}; MPI-IO of mpi4py reaches this library", **facts)


def _short(version: str) -> str:
    """Return a version without who has packaged it."""
    return version.partition(", package")[0]


def _another(seen: _Seen, version: str, facts: dict[str, Any]) -> Finding:
    """Return that mpi4py has another MPI than the program, each with its file where that is known."""
    paths, program = seen.get("mpi_paths") or [], seen.program
    mine = f"{_short(version)} ({', '.join(paths)})" if paths else _short(version)
    theirs = FAMILIES[seen.family]
    if program is not None:
        theirs = f"{_short(program.version) or theirs} ({os.path.realpath(program.path)})"
    return warn(
        "mpi.version",
        f"mpi4py uses {mine}, the program {theirs}: what follows is about the former",
        "an environment whose mpi4py uses the program's MPI tells about that one",
        program=theirs,
        **facts,
    )


def _renamed(said: str) -> str:
    """Return what to do where MPICH has the name that Debian gives it, which the wheel of mpi4py does not know."""
    found = next((path for place in _DEBIAN_MPICH for path in sorted(Path("/").glob(place))), None)
    if found is None or "libmpi.so" not in said:
        return ""
    return (
        f"mpi4py's wheel looks for libmpi.so.12, which is {found} here: mkdir -p ~/mpich && ln -s {found} "
        "~/mpich/libmpi.so.12 && export LD_LIBRARY_PATH=~/mpich"
    )


def _started(seen: _Seen) -> Finding:
    key, job = "mpi.start", seen.job
    if not seen.has("thread"):
        help_ = (
            "under Slurm: srun --mpi=pmix (Open MPI), --mpi=pmi2 (MPICH)"
            if "SLURM_JOB_ID" in os.environ
            else "does the MPI work without this library? mpirun -n 2 python -m mpi4py.bench helloworld"
        )
        return bad(key, f"MPI_Init_thread has not returned: {seen.answer.reason()}", help_, size=None)
    found = int(seen.get("size"))
    facts = {"size": found, "asked": job.size if job.launched else None, "finalized": bool(seen.get("finalized"))}
    if job.launched and found != job.size:
        return bad(
            key,
            f"the launcher has started {job.size} ranks, MPI sees {found}",
            "every rank is alone: the launcher is of another MPI than the library, or Slurm's --mpi is wrong",
            **facts,
        )
    return good(key, f"MPI starts, {found} rank{'s' if found > 1 else ''}", **facts)


def _thread(seen: _Seen) -> Finding:
    key, level = "mpi.thread", str(seen.get("thread"))
    if level == "multiple":
        return good(key, "MPI_THREAD_MULTIPLE is provided", level=level)
    return warn(
        key,
        f"MPI_THREAD_{level.upper()} is provided, not MPI_THREAD_MULTIPLE",
        "nonblocking collectives on files of several nodes are accessed by every rank alone, and delegates "
        "cannot be threads: an MPI library with threads",
        level=level,
    )


def _different(ranks: list[dict[str, Any]], name: str) -> dict[str, int]:
    """Return value -> first rank that has it."""
    found: dict[str, int] = {}
    for number, rank in enumerate(ranks):
        found.setdefault(str(rank.get(name)), number)
    return found


def _ranks(seen: _Seen) -> list[Finding]:
    """Return whether the ranks have the same library and MPI, and what their hosts have in /dev/shm."""
    ranks: list[dict[str, Any]] = seen.get("ranks") or []
    if not ranks:
        return [
            bad(
                "job.agreement",
                f"the ranks cannot exchange messages: {seen.answer.reason()}",
                "does the MPI work without this library?",
            )
        ]
    hosts: dict[str, dict[str, Any]] = {}
    for rank in ranks:
        hosts.setdefault(rank["host"], rank)
    return [_agreement(ranks), _hosts(hosts)]


def _agreement(ranks: list[dict[str, Any]]) -> Finding:
    key, facts = "job.agreement", {"ranks": len(ranks)}
    for name, what in (
        ("mpiio_ext", "mpiio_ext"),
        ("version", "the MPI library"),
        ("library", "the library's path"),
        ("python", "Python"),
    ):
        found = _different(ranks, name)
        if len(found) > 1:
            (first, _), (second, number) = list(found.items())[:2]
            make = bad if name in ("mpiio_ext", "version") else warn
            return make(
                key,
                f"the ranks differ in {what}: {first} on rank 0, {second} on rank {number}",
                "one installation that all hosts see, and one environment for all ranks",
                differs=name,
                **facts,
            )
    return good(key, f"{len(ranks)} rank{'s have' if len(ranks) > 1 else ' has'} the same mpiio_ext and MPI", **facts)


def _hosts(hosts: dict[str, dict[str, Any]]) -> Finding:
    key = "job.hosts"
    facts = {
        "hosts": {
            name: {word: rank[word] for word in ("shm_total_bytes", "shm_free_bytes")} for name, rank in hosts.items()
        }
    }
    without = sorted(name for name, rank in hosts.items() if rank["shm_free_bytes"] is None)
    if without:
        return warn(key, f"no /dev/shm that can be written to on {', '.join(without)}", "mount a tmpfs there", **facts)
    sizes = {name: int(rank["shm_total_bytes"]) for name, rank in hosts.items()}
    least, most = min(sizes.values()), max(sizes.values())
    if 2 * least < most:
        small = sorted(name for name, count in sizes.items() if count == least)
        return warn(
            key,
            f"/dev/shm differs: {size_text(least)} on {', '.join(small)}, up to {size_text(most)} elsewhere",
            "make it as large on all hosts",
            **facts,
        )
    free = min(int(rank["shm_free_bytes"]) for rank in hosts.values())
    return good(
        key, f"{len(hosts)} host{'s' if len(hosts) > 1 else ''}, {size_text(free)} free in /dev/shm at least", **facts
    )


def _reach(seen: _Seen) -> list[Finding]:
    """Return whether ranks of a host read each other's memory; nothing where each is alone on its host."""
    key, ranks = "job.process_vm_readv", seen.get("reach") or []
    tried = [(number, rank) for number, rank in enumerate(ranks) if rank["of"] is not None]
    if not tried:
        return []
    refused = [(number, rank) for number, rank in tried if rank["errno"] != 0]
    facts = {"tried": len(tried), "refused": len(refused)}
    if not refused:
        return [good(key, "process_vm_readv works between the ranks of a host", **facts)]
    number, rank = refused[0]
    why = "another process answers" if rank["errno"] == SOMEBODY_ELSE else os.strerror(rank["errno"])
    apart = {one["namespace"] for one in ranks if one["host"] == rank["host"]}
    own = f"; the ranks of {rank['host']} have {len(apart)} namespaces of process ids" if len(apart) > 1 else ""
    advice = (
        "start the ranks of a host in one namespace: one container for all of them, or docker run --pid=host"
        if own
        else "sysctl kernel.yama.ptrace_scope=0, or docker run --cap-add=SYS_PTRACE"
    )
    text = f"rank {number} cannot read the memory of rank {rank['of']}: {why}{own}"
    follows = "messages of the MPI library inside a node are copied twice, or fail where it does not expect this"
    return [warn(key, text, f"{follows}: {advice}; this library does without", **facts)]


def _trip(seen: _Seen) -> Finding:
    key = "io.round_trip"
    error = seen.get("trip_error")
    facts = {"right": seen.get("trip_right"), "own": seen.get("trip_own"), "reason": seen.get("trip_reason")}
    if error is not None:
        advice = (
            "a file system that all hosts have mounted: --path"
            if seen.has("trip_blind")
            else "choose a folder that can be written to: --path"
        )
        return bad(key, f"no collective write and read: {error}", advice, **facts)
    if facts["right"] is None:
        return bad(
            key,
            f"a collective write and read has not ended: {seen.answer.reason()}",
            "MPIOX_HINTS='*:mpiox_enable=false' leaves files to the MPI library: does it work then?",
            **facts,
        )
    if not facts["right"]:
        return bad(key, "a collective has read back other bytes than were written", "please report this", **facts)
    if not facts["own"]:
        return warn(
            key,
            f"right, but the MPI library has carried it out: {facts['reason']}",
            "docs/explanation/limitations.md says what to do",
            **facts,
        )
    return good(key, f"a collective write and read was right, carried out by this library ({facts['reason']})", **facts)


def _one_line(text: str) -> str:
    """Return what a text says in its first lines, as one: MPICH's error strings are a stack of calls, one a line."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    first, rest = (lines or [""])[0], lines[1:]
    if not rest or not first.endswith((":", "error stack")):
        return first
    return f"{first.rstrip(':')}: {rest[-1]}"  # the innermost call says why


def _spawn(seen: _Seen) -> Finding:
    key, refused = "mpi.spawn", seen.get("spawn_refused")
    if refused:
        return warn(
            key,
            f"not tried, because this library spawns no delegates here: {refused}",
            "I/O delegates become threads of the ranks; mpiox_delegate_mode=thread asks for them at once",
            works=None,
            refused=refused,
        )
    if seen.get("spawned"):
        return good(key, "MPI_Comm_spawn works, and this library spawns delegates here", works=True, refused="")
    reason = _one_line(str(seen.get("spawn_error") or seen.answer.reason() or "it has not returned"))
    advice = "I/O delegates then need mpiox_delegate_mode=thread"
    if "unable to reach each other" in seen.answer.said:
        advice += "; Open MPI connects to what it spawns by TCP, and there is no network interface but the loopback"
    elif "SLURM_JOB_ID" in os.environ:
        advice += "; under Slurm: srun --mpi=pmix with a free task, or mpirun inside of the allocation"
    elif not seen.job.launched:
        advice += "; started by mpirun it may work"
    elif seen.family == "openmpi":
        advice += "; it takes a free slot: mpirun --oversubscribe, or fewer ranks"
    return warn(key, f"MPI_Comm_spawn does not work: {reason}", advice, works=False, refused=refused)
