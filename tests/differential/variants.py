"""The variants under which each case of ``cases/*.case`` runs, and one run of cases under some of them.

Problem.    A new hint, or a new way to carry out a call, should meet every case at the price of one line.
Algorithm.  A line of `VARIANTS` is a variant. The library reads its hints at each open, so that the cases of all
            variants share a launch for each number of ranks. Native, and what a process reads when it starts, have
            launches of their own.
Guarantees. A case that ends its launch costs the other cases nothing (`arms.one_arm`).
"""

from __future__ import annotations

import collections
import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from differential import arms, outside
from differential.arms import Setting, launch, ready
from differential.ownership import missing_calls
from differential.state import GUARD_BYTES, Case
from differential.text import Declared, Entry
from support import pretended_gpu
from support.cbuild import mpi_program
from support.launch import library_path, mpi_family

#: Delegates with little memory and small pages: what the cases move does not fit.
DELEGATE_HINTS = "mpiox_delegate_mode=thread:mpiox_delegate_page=4k:mpiox_delegate_cache=512k:mpiox_delegate_bypass=16k"
#: Domains and windows so small that a few bytes are several of them.
EXCHANGED = "mpiox_exchange=two_phase:striping_unit=64:striping_factor=3:cb_buffer_size=512"


def delegate_hints(delegates: int, more: str = DELEGATE_HINTS) -> str:
    """Return MPIOX_HINTS for a run through delegates."""
    return f"*:mpiox_delegates={delegates}:{more}"


def stored_as_several(setting: Setting, count: int, unit: int) -> Setting:
    """Return the setting with files that ours stores as so many subfiles."""
    env = dict(setting.env)
    own = f"mpiox_subfiles={count}:mpiox_subfile_unit={unit}"
    env["MPIOX_HINTS"] = f"{env['MPIOX_HINTS']}:{own}" if "MPIOX_HINTS" in env else f"*:{own}"
    return replace(setting, env=tuple(env.items()), subfiles=(count, unit))


def losing() -> tuple[tuple[str, str], ...]:
    """Return the variables of a launch in which calls of the MPI library by this one can fail."""
    return (("LD_PRELOAD", f"{mpi_program('undefine', '-shared', '-fPIC')}:{library_path()}"),)


def is_native_data(case: Case) -> bool:
    """Tell whether a case has no other data representation than native, which subfiles do not have either."""
    return all(op.get("rep", "native") == "native" for op in case["ops"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to run a case.

    Attributes
    ----------
    hints : for every file, NAME=VALUE with colons between them.
    arm : "ours"; or "native": the MPI library alone.
    delegates : I/O delegates.
    subfiles : how many, and their unit.
    gpu : three of four buffers are in the memory of a pretended GPU.
    alone : no other variant shares its launches; a program starts delegates once, in one mode and with one fault.
    named : only the cases run that name the variant.
    slow : the variant is of the slow tier.
    per_node : ranks of a pretended node when a process starts; 0: all.
    shows : counters of the worker that are not zero if the variant is in force.
    hides : counters of the worker that are zero if the variant is in force, and not under `default`.
    """

    hints: str = ""
    arm: str = "ours"
    delegates: int = 0
    subfiles: tuple[int, int] | None = None
    gpu: bool = False
    alone: bool = False
    named: bool = False
    slow: bool = False
    per_node: int = 0
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()

    def setting(self) -> Setting:
        """Return how a case is launched alone under this variant."""
        hints = f"*:{self.hints}" if self.hints else ""
        if self.delegates:
            hints = delegate_hints(self.delegates, f"{DELEGATE_HINTS}:{self.hints}".rstrip(":"))
        env = (("MPIOX_HINTS", hints),) if hints else ()
        setting = Setting(arms=(self.arm,), limit_s=60.0, env=env)
        return stored_as_several(setting, *self.subfiles) if self.subfiles else setting

    def at_start(self) -> tuple[tuple[str, str], ...]:
        """Return the variables that a process reads when it starts."""
        gpu = ((pretended_gpu.VARIABLE, pretended_gpu.library()),) if self.gpu else ()
        return (*gpu, ("MPIOX_RANKS_PER_NODE", str(self.per_node))) if self.per_node else gpu


#: Delegates that cases start by `mpiox_delegates`: they have room for all files of a case, and write them slowly.
STAGED = "mpiox_delegate_page=16k:mpiox_delegate_cache=16m:striping_unit=16k:mpiox_drain_rate=10000"


def behind(mode: str, per_node: int, level: str, *, parts: int = 0, slow: bool = False) -> Variant:
    """Return a variant of cases whose files are closed before they are written."""
    hints = f"{STAGED}:mpiox_delegate_mode={mode}:mpiox_delegate_ack={level}"
    several = (parts, 10000) if parts else None
    shows = ("delegated_writes", "merge") if parts else ("delegated_writes",)
    return Variant(hints=hints, alone=True, named=True, per_node=per_node, subfiles=several, slow=slow, shows=shows)


VARIANTS = {
    "native": Variant(arm="native"),
    "default": Variant(shows=("individual_calls",)),
    "direct": Variant(hints="mpiox_exchange=direct", shows=("direct_calls",)),
    "even": Variant(hints=f"{EXCHANGED}:mpiox_partition=even", shows=("rounds",)),
    "aligned": Variant(hints=f"{EXCHANGED}:mpiox_partition=aligned", shows=("rounds",)),
    "static_cyclic": Variant(hints=f"{EXCHANGED}:mpiox_partition=static_cyclic", shows=("rounds",)),
    "group_cyclic": Variant(hints=f"{EXCHANGED}:mpiox_partition=group_cyclic", shows=("rounds",)),
    "transpose": Variant(hints=f"{EXCHANGED}:mpiox_partition=transpose", shows=("rounds",)),
    "nodes": Variant(hints=f"{EXCHANGED}:mpiox_ranks_per_node=1", shows=("messages",)),
    "synchronous": Variant(hints="mpiox_synchronous=true", shows=("direct_calls",), hides=("individual_calls",)),
    "delegates": Variant(delegates=2, shows=("delegated_writes",)),
    "spawn": Variant(
        delegates=1, hints="mpiox_delegate_mode=spawn", alone=True, shows=("delegated_writes", "delegates_killed")
    ),
    "cached": Variant(delegates=2, hints="mpiox_collective=cached", shows=("delegated_writes",)),
    "staged": Variant(delegates=2, hints="mpiox_close=staged", shows=("delegated_writes", "staged")),
    "lost": Variant(named=True, shows=("messages",)),
    "staged_spawn": behind("spawn", 0, "memory"),
    "staged_process": behind("process", 1, "memory", slow=True),
    "staged_replica": behind("spawn", 1, "replica", parts=4),
    "staged_thread": behind("thread", 1, "replica", slow=True),
    "staged_subfiles": behind("thread", 1, "memory", parts=3, slow=True),
    "staged_nodes": behind("process", 2, "replica", parts=3, slow=True),
    "subfiles": Variant(subfiles=(4, 97), shows=("merge",)),
    "gpu": Variant(
        gpu=True, alone=True, hints="mpiox_device_buffer=97", shows=("device_bytes_written", "device_bytes_read")
    ),
}


@dataclass(slots=True, kw_only=True)
class Results:
    """What was found: the problems of each case under each variant, and the counters of each variant, summed."""

    problems: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    counts: dict[str, collections.Counter[str]] = field(
        default_factory=lambda: collections.defaultdict(collections.Counter)
    )


def runs_under(entry: Entry, name: str) -> bool:
    """Tell whether a case runs under a variant."""
    if _declared(entry.skipped, name, mpi_family() or ""):
        return False
    if "disk" in entry.case and not arms.has_small_disks():
        return False
    chosen = not entry.only and not VARIANTS[name].named
    chosen = chosen or any(fnmatch.fnmatchcase(name, only) for only in entry.only)
    return chosen and (VARIANTS[name].subfiles is None or is_native_data(entry.case))


def declared(entry: Entry, name: str, family: str) -> Declared | None:
    """Return the deviation that is declared for a case under a variant, if there is one."""
    return _declared(entry.excepted, name, family)


def _declared(found: tuple[Declared, ...], name: str, family: str) -> Declared | None:
    for each in found:
        if fnmatch.fnmatchcase(name, each.variant) and each.family in ("", family):
            return each
    return None


@dataclass(slots=True, kw_only=True)
class Shared:
    """The cases that share launches: one for each number of ranks."""

    setting: Setting
    cases: dict[int, list[Case]] = field(default_factory=lambda: collections.defaultdict(list))


def run_under(entries: Sequence[Entry], names: Iterable[str]) -> Results:
    """Run cases under variants."""
    groups: dict[tuple[str, str, int, str, bool], Shared] = {}
    keys: list[tuple[str, str]] = []
    # What workers must know beforehand is the same under each variant.
    known = {entry.name: ready([dict(entry.case)], Setting(arms=()))[0] for entry in entries}
    shown = {entry.name: entry.shows for entry in entries}
    for name in names:
        variant, alone = VARIANTS[name], VARIANTS[name].setting()
        start = Setting(arms=alone.arms, limit_s=alone.limit_s, env=variant.at_start())
        for entry in entries:
            if runs_under(entry, name):
                disk, fault = entry.case.get("disk", 0), entry.case.get("fault", "") if variant.alone else ""
                loses = outside.loses(entry.case)
                env = start.env + ((("MPIOX_FAULT", fault),) if fault else ()) + (losing() if loses else ())
                shared = Shared(setting=replace(start, disk=disk, env=env))
                key = (variant.arm, name if variant.alone else "", disk, fault, loses)
                group = groups.setdefault(key, shared)
                own = {"id": len(keys), "env": dict(alone.env)}
                own |= {"subfiles": alone.subfiles} if alone.subfiles else {}
                group.cases[entry.case["ranks"]].append(known[entry.name] | own)
                keys.append((entry.name, name))
    results = Results()
    for group in groups.values():
        for ranks, cases in sorted(group.cases.items()):
            by_id = {case["id"]: case for case in cases}
            for line in launch(cases, ranks, group.setting):
                problems = [*line["problems"], *line.get("notes", [])]
                name, variant = keys[line["id"]]
                if line["arm"] == "ours" and not problems:
                    problems += filter(None, [missing_calls(by_id[line["id"]], line["stats"])])
                    problems += [
                        f"{counter} is 0: the hints are not in force"
                        for counter in shown[name]
                        if not line["stats"].get(counter)
                    ]
                results.problems[name, variant] = problems
                results.counts[variant].update(line.get("stats", {}))
    for key in keys:
        results.problems.setdefault(key, ["nothing was seen of the case"])
    return results


def outcome(entry: Entry, name: str, family: str, problems: list[str]) -> tuple[str, bool]:
    """Return how a case ended under a variant, and whether this is as declared."""
    exception = declared(entry, name, family)
    if exception is not None and problems:
        return f"deviates as declared: {exception.reason}", True
    if exception is not None:
        return f"does not deviate: remove 'except {exception.variant}'", False
    return (first_byte(problems[0]), False) if problems else ("ok", True)


def unknown(entry: Entry) -> list[str]:
    """Return the names beside a case under which no variant runs."""
    named = [*entry.only, *(each.variant for each in (*entry.excepted, *entry.skipped))]
    return [name for name in named if not fnmatch.filter(VARIANTS, name)]


def first_byte(problem: str) -> str:
    """Return a problem, shorter if it is about bytes or a hang: the first byte that differs, or where ranks stood."""
    kind, _, where = problem.partition(": ")
    if kind in ("hang", "crash") and where.startswith("rank "):
        return f"{kind}: {', '.join(line for line in where.splitlines() if ' stood at ' in line)}"
    found = re.search(r"the first at (\d+).*?there are (\w\w).*? for (\w\w)", problem, re.DOTALL)
    if found is None:
        return problem if len(problem) < 400 else f"{problem[:400]}…"
    file = re.search(r"bytes of file (\w+(?:\.\d+)?)", problem)
    place = f"file {file.group(1)}" if file else problem.split(": ")[1] + ", buffer"
    number = int(found.group(1)) - (0 if file else GUARD_BYTES)
    return f"{place}: byte {number} is 0x{found.group(2)}, expected 0x{found.group(3)}"
