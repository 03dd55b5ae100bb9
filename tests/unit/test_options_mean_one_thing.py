"""One spelling of an option is one kind of value and one meaning, in every command.

Problem.   `--plot` was a file here and a flag there, `--limit` a time and a number of rows.
Algorithm. click is asked for every option of every command. One that two commands have must stand in `SHARED`, with its
           kind and with what it means in all of them: who shares a spelling has to write that down, or to take another.
"""

from __future__ import annotations

import re

import click

from support.commands import COMMANDS
from support.options import kind_of

#: Spelling of an option of several commands: its kind, and its meaning.
SHARED = {
    "--above": ("size", "jobs that moved more"),
    "--aggregators": ("number", "processes that do the I/O: a number, or several"),
    "--all": ("flag", "what is left out otherwise, too"),
    "--anonymous": ("flag", "no names, IDs, or times of day"),
    "--archive": ("path", "folder of the results of suites"),
    "--areas": ("path", "file: application -> science area"),
    "--before": ("text", "shell command before each run of the program"),
    "--budget": ("duration", "time that all of it may take"),
    "--complete": ("flag", "only rows without a missing column"),
    "--compute-nodes": ("number", "compute nodes of the system"),
    "--confidence": ("number", "probability with which what is decided on is true"),
    "--connector": ("text", "which connector reads a file"),
    "--csv": ("path", "file for the table, as CSV"),
    "--darshan-log": ("path", "Darshan logs that are read"),
    "--delegate-mode": ("text", "how delegates are started"),
    "--delegates": ("text", "number of I/O delegates, as the hint mpiox_delegates"),
    "--dir": ("path", "the arbiter's folder"),
    "--divisible": ("flag", "only numbers of I/O nodes that divide those of compute nodes"),
    "--dry-run": ("flag", "print what would be done, and end"),
    "--each-rank": ("flag", "the path keeps what each rank does"),
    "--extension": ("flag", "put the extension under it"),
    "--figure": ("path", "file for the figure"),
    "--file-system": ("text", "file system that is looked at, by name"),
    "--floor": ("number", "share of its best bandwidth that each job gets"),
    "--force": ("flag", "do also what is refused otherwise"),
    "--forge": ("path", "FORGE's tables of measured patterns"),
    "--format": ("text", "format of the trace"),
    "--hint": ("text", "NAME=VALUE"),
    "--jobs": ("path", "table of jobs"),
    "--hints-file": ("path", "file of hints"),
    "--horizon": ("duration", "time until the next decision"),
    "--hysteresis": ("number", "gain below which jobs keep their I/O nodes"),
    "--interface": ("text", "interface through which data is accessed"),
    "--interval": ("duration", "time between two looks"),
    "--io-nodes": ("number", "I/O nodes: a number, or several"),
    "--join": ("text", "table of the store whose rows are put beside"),
    "--json": ("flag", "print JSON"),
    "--log": ("path", "folder for the output of every run"),
    "--logs": ("text", "of what the logs that count are"),
    "--low-bandwidth": ("bandwidth", "bandwidth below which I/O counts as slow"),
    "--lower-is-better": ("flag", "the number of --metric-regex is a time"),
    "--method": ("text", "methods of the library"),
    "--metric": ("text", "metric that is judged or shown"),
    "--metric-regex": ("text", "finds a bandwidth in a program's output"),
    "--migration-cost": ("duration", "time that a job loses where its I/O nodes change"),
    "--mode": ("text", "mode of the synthesis"),
    "--most": ("number", "I/O nodes of one job at most"),
    "--motif": ("text", "kind of I/O of a job"),
    "--multiply": ("text", "NAME=X: what the mode tuned has more of"),
    "--native-limit": ("duration", "time that a native run may take"),
    "--nodes": ("number", "nodes that the ranks are on"),
    "--once": ("flag", "look once, and end"),
    "--only": ("text", "files that are looked at"),
    "--output": ("path", "where the result goes"),
    "--page": ("flag", "make the page of the results"),
    "--parquet": ("path", "file for the table, as Parquet"),
    "--path": ("path", "file or folder of the file system that is asked about"),
    "--pattern": ("text", "patterns that are looked at"),
    "--plot": ("path", "file for the picture"),
    "--policy": ("text", "policies of arbitration"),
    "--processes-within": ("number", "most over fewest processes of a history"),
    "--progress": ("flag", "show progress"),
    "--published": ("flag", "filters of the published year"),
    "--quick": ("flag", "small and short"),
    "--ranks": ("number", "ranks of a launch"),
    "--repeats": ("number", "repetitions of a measurement"),
    "--results": ("path", "folders of results of the bench"),
    "--seed": ("number", "of random numbers"),
    "--servers": ("number", "I/O servers of a file"),
    "--setup": ("path", "set-up of a store"),
    "--shared-node": ("flag", "one I/O node for all jobs that get none"),
    "--since": ("text", "first day"),
    "--site": ("path", "facts of the site"),
    "--size": ("size", "size of the files that are measured"),
    "--skip": ("text", "files that are left out"),
    "--source": ("path", "file of a monitoring source"),
    "--spin": ("duration", "end of each slack time that is spun for"),
    "--store": ("path", "store of curves"),
    "--strict": ("flag", "status 1 where something cannot be read"),
    "--stripe-size": ("size", "bytes of a stripe"),
    "--sync": ("flag", "data is brought to the disk inside the time"),
    "--time-scale": ("number", "what times between calls are multiplied by"),
    "--time-zone": ("text", "of times and days without one"),
    "--timeout": ("duration", "how long something is waited for"),
    "--title": ("text", "heading of the page"),
    "--top": ("number", "how many are named"),
    "--trials": ("number", "settings that are tried at most"),
    "--until": ("text", "the day behind the last one"),
    "--weight": ("text", "NAME=NUMBER: what a MB/s counts"),
    "--window": ("size", "bytes of a collective buffer"),
    "--within": ("duration", "how long before the newest or the chosen job"),
    "--without": ("text", "motifs that are left out"),
}
_UNIT = re.compile(r"-(?:s|us|ms|seconds|secs|minutes|hours|days|bytes|kib|mib|gib|kb|mb|gb)$")
_SECONDS = re.compile(r"\b(?:in|of|many) (?:seconds|minutes|hours|days|bytes|KiB|MiB|GiB)\b")


OPTIONS = [
    (words, option)
    for words, command in COMMANDS.items()
    for option in command.params
    if isinstance(option, click.Option)
]
BY_SPELLING: dict[str, list[tuple[str, click.Option]]] = {}
for _words, _option in OPTIONS:
    for _spelling in () if _option.hidden else _option.opts:
        BY_SPELLING.setdefault(_spelling, []).append((_words, _option))


def test_options_that_commands_share_have_one_kind_and_one_meaning() -> None:
    several = {name for name, found in BY_SPELLING.items() if len(found) > 1 and name.startswith("--")}
    assert several == set(SHARED), "an option is shared, or no longer: SHARED says what its spelling means"
    kinds = {name: {kind_of(option) for _, option in BY_SPELLING[name]} for name in SHARED}
    assert kinds == {name: {kind} for name, (kind, _) in SHARED.items()}


def test_a_letter_is_short_for_one_option() -> None:
    letters = {
        name: {max(option.opts, key=len) for _, option in found}
        for name, found in BY_SPELLING.items()
        if not name.startswith("--")
    }
    assert len(letters) >= 8 and all(len(names) == 1 for names in letters.values()), letters


def test_no_option_names_a_unit() -> None:
    """Sizes and durations are of the kinds that read units; none is a number whose unit only its name or help says."""
    units = {
        name
        for name, found in BY_SPELLING.items()
        for _, option in found
        if (_UNIT.search(name) and kind_of(option) not in ("size", "flag", "path"))
        or (
            kind_of(option) == "number"
            and (
                _SECONDS.search(option.help or "")
                or re.fullmatch("US|DAYS|GIB|SECONDS|BYTES|TIME|SIZE", option.metavar or "")
            )
        )
    }
    assert not units
