"""Storage that fails: the class that says why, on every rank of a collective, and no byte reported that is not there.

tests/programs/faults.c repeats the same calls while MPIOX_FAULT makes some of their requests fail, or writes more than
a disk or RLIMIT_FSIZE allows. It looks at the file without MPI after each call.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import pathlib
import re
import resource

import pytest

from support.cbuild import failed_checks, mpi_program
from support.launch import Launch, mpi_run
from support.marks import slow
from support.processes import shared_memory

pytestmark = [pytest.mark.mpi, pytest.mark.both]

BYTES = 16384
LINE = re.compile(r"^call (?P<name>[^;]*); (\d+) (?P<result>\w+) (?P<count>-?\d+)$", re.M)
#: Every rank has a part of the file, so that a fault of one rank is met.
OWNERS = "mpiox_exchange=two_phase:mpiox_partition=even:cb_nodes={ranks}:mpiox_io_rank=owner:striping_unit=4096"


def run(
    folder: pathlib.Path, ranks: int, *words: str, preload: bool = True, env: dict[str, str] | None = None
) -> Launch:
    """Run the program, which ends by itself and with "end" whatever fails."""
    launch = mpi_run(
        [mpi_program("faults"), folder / "file", *words], ranks, preload=preload, env=env, timeout_s=60, check=False
    )
    assert not launch.timed_out, launch.describe()
    assert launch.stdout.rstrip().endswith("end"), launch.describe()
    return launch


def results(text: str, ranks: int) -> dict[str, list[list[tuple[str, int]]]]:
    """Return name of a call -> its repetitions, each (class, count) by rank."""
    lines = collections.defaultdict(list)
    for line in LINE.finditer(text):
        lines[line["name"]].append((line["result"], int(line["count"])))
    return {name: [seen[i : i + ranks] for i in range(0, len(seen), ranks)] for name, seen in lines.items()}


def agreed(calls: list[list[tuple[str, int]]]) -> list[str]:
    """Return the class of each collective; all ranks have the same, and the count is everything or nothing."""
    for ranks in calls:
        assert len({result for result, _ in ranks}) == 1, calls
        assert all(count == (BYTES if result == "SUCCESS" else 0) for result, count in ranks), calls
    return [ranks[0][0] for ranks in calls]


@pytest.mark.slow
def test_native(family: str, tmp_path: pathlib.Path) -> None:
    """The control of the program: without faults nothing fails."""
    launch = run(tmp_path, 3, "repeat", preload=False)
    assert not failed_checks(launch.stdout, 40), launch.describe()
    assert set(agreed(results(launch.stdout, 3)["write collective"])) == {"SUCCESS"}


#: Ranks, ranks of a pretended node, hints, rules -> classes of the collective writes and reads that fail.
FAULTS = [
    (1, 0, "", "op=write,errno=ENOSPC,times=1;op=read,errno=EIO,times=1", {"NO_SPACE"}, {"IO"}),
    (3, 0, OWNERS, "op=write,rank=1,errno=ENOSPC,times=1;op=read,rank=2,errno=EIO,times=1", {"NO_SPACE"}, {"IO"}),
    (
        3,
        0,
        OWNERS,
        "op=write,rank=0,errno=EDQUOT,after=2,times=1;op=read,rank=0,errno=EACCES,after=1,times=1",
        {"QUOTA"},
        {"ACCESS"},
    ),
    (
        2,
        0,
        "mpiox_exchange=direct",
        "op=write,rank=1,errno=EIO,times=1;op=read,rank=0,errno=EIO,times=1",
        {"IO"},
        {"IO"},
    ),
    # every rank's first request: as many failing collectives as aggregators, if each meets one of them
    (4, 0, OWNERS, "op=write,errno=ENOSPC,times=1;op=read,errno=EIO,times=1", {"NO_SPACE"}, {"IO"}),
    (4, 0, OWNERS + ":cb_buffer_size=4096", "op=write,errno=EROFS,after=1,times=1", {"READ_ONLY"}, set()),
    # on another node than rank 0's
    (4, 2, OWNERS, "op=write,rank=3,errno=ENOSPC,times=1;op=read,rank=3,errno=EIO,times=1", {"NO_SPACE"}, {"IO"}),
    (4, 1, OWNERS, "op=write,rank=2,errno=EIO,after=1,times=2;op=read,rank=1,errno=EIO,times=1", {"IO"}, {"IO"}),
    (7, 3, OWNERS, "op=write,rank=6,errno=ENOSPC,times=1;op=read,rank=4,errno=EIO,times=1", {"NO_SPACE"}, {"IO"}),
]


def test_says_that_it_is_on(extension: str, tmp_path: pathlib.Path) -> None:
    """Every process once, however many files it opens; and nothing where it is not set."""
    for rules, lines in (("op=read,short=0", 2), ("", 0)):
        env = {"MPIOX_FAULT": rules}
        launch = mpi_run([mpi_program("ending"), tmp_path / "file", "plain"], 2, preload=True, env=env, timeout_s=60)
        assert launch.stderr.count("fault injection is on") == lines, launch.describe()
        assert launch.stderr.count(f'MPIOX_FAULT="{rules}"') == lines


#: Rules -> classes of the independent reads and writes that fail.
INDEPENDENT = [
    ("op=write,rank=0,errno=ENOSPC,after=1,times=1", set(), {"NO_SPACE"}),
    ("op=read,rank=0,errno=EIO,times=1", {"IO"}, set()),
    ("op=write,errno=EDQUOT,times=1;op=read,errno=EACCES,after=1,times=1", {"ACCESS"}, {"QUOTA"}),
]
#: Rules and hints under which nothing fails.
HARMLESS = [
    ("op=write,short=1;op=read,short=7", ""),
    ("op=write,short=13;op=read,short=1", "mpiox_exchange=direct"),
    ("short=63", OWNERS + ":cb_buffer_size=4096"),
    ("op=write,short=4097,times=3;op=read,short=4095,after=1", OWNERS),
    ("op=any,errno=EINTR,times=3", OWNERS),
]
NOTHING_MOVED = "op=write,short=0,rank=1,times=1"
KINDS = ("independent", "nonblocking")


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of the program, in a launch with all other runs on as many ranks."""

    ranks: int
    rules: str
    hints: str = ""
    per_node: int = 0
    kind: str = ""

    def line(self, path: pathlib.Path) -> str:
        """Return the run as a line of the list that the program reads."""
        variables = {
            "MPIOX_FAULT": self.rules,
            "MPIOX_RANKS_PER_NODE": str(self.per_node),
            "MPIOX_HINTS": self.hints.format(ranks=self.ranks),
        }
        words = [f"{name}={value}" for name, value in variables.items()]
        return "\t".join([*words, "--", str(path), "repeat", *([self.kind] if self.kind else [])])


RUNS = [
    *(Run(ranks, rules, hints, per_node) for ranks, per_node, hints, rules, _, _ in FAULTS),
    *(Run(ranks, rules, kind=kind) for ranks in (1, 3) for rules, _, _ in INDEPENDENT for kind in KINDS),
    *(Run(ranks, rules, hints) for ranks in (1, 3) for rules, hints in HARMLESS),
    *(Run(2, NOTHING_MOVED, OWNERS, per_node) for per_node in (0, 1)),
]


class Outputs:
    """What the runs have printed; those on as many ranks are launched when the first of them is asked for."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.found: dict[Run, str] = {}

    def of(self, run: Run) -> str:
        """Return what a run has printed; each run ends by itself and with "end" whatever fails."""
        left = [each for each in RUNS if each.ranks == run.ranks and each not in self.found]
        while run not in self.found:
            done = self.launch(left)
            self.found |= done
            left = left[len(done) :]
        text = self.found[run]
        assert text.rstrip().endswith("end"), text
        return text

    def launch(self, runs: list[Run]) -> dict[Run, str]:
        """Launch runs; one that does not end fails, and what stands behind it is left for another launch."""
        folder = self.folder / f"launch{len(self.found)}"
        folder.mkdir()
        listed = folder / "runs"
        listed.write_text("".join(f"{run.line(folder / f'file{i}')}\n" for i, run in enumerate(runs)), encoding="utf-8")
        command = [mpi_program("faults"), f"@{listed}"]
        launch = mpi_run(command, runs[0].ranks, preload=True, timeout_s=30 + 5 * len(runs), check=False)
        texts = re.split(r"^run \d+\n", launch.stdout, flags=re.M)[1:] or [""]
        done = dict(zip(runs, texts, strict=False))
        last = runs[len(done) - 1]
        if len(done) < len(runs) or launch.timed_out or not done[last].rstrip().endswith("end"):
            done[last] += launch.describe()
        return done


@pytest.fixture(scope="module")
def outputs(extension: str, tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    """Return what the runs have printed."""
    return Outputs(tmp_path_factory.mktemp("faults"))


@pytest.mark.slow_with("3-0-*EDQUOT*", "4-1-*", "7-3-*")
@pytest.mark.parametrize(("ranks", "per_node", "hints", "rules", "writes", "reads"), FAULTS)
def test_collectives_fail_alike_and_work_on(
    outputs: Outputs, ranks: int, per_node: int, hints: str, rules: str, writes: set[str], reads: set[str]
) -> None:
    text = outputs.of(Run(ranks, rules, hints, per_node))
    assert not failed_checks(text, 40), text
    seen = results(text, ranks)
    assert set(agreed(seen["write collective"])) - {"SUCCESS"} == writes, text
    assert set(agreed(seen["read collective"])) - {"SUCCESS"} == reads, text


@pytest.mark.slow_with("*-1-nonblocking", "*-3-independent")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(("rules", "reads", "writes"), INDEPENDENT)
def test_independent_calls_fail_by_themselves(
    outputs: Outputs, rules: str, reads: set[str], writes: set[str], ranks: int, kind: str
) -> None:
    """Only the rank whose storage failed hears of it, and no byte is reported that is not there."""
    text = outputs.of(Run(ranks, rules, kind=kind))
    assert not failed_checks(text, 15), text
    seen = results(text, ranks)
    for op, classes in (("read", reads), ("write", writes)):
        calls = seen[f"{op} {kind}"]
        assert {result for call in calls for result, _ in call} - {"SUCCESS"} == classes, text
        assert "rank=0" not in rules or all(result == "SUCCESS" for call in calls for result, _ in call[1:])


@pytest.mark.parametrize("ranks", [*slow(1), 3])
@pytest.mark.parametrize(("rules", "hints"), HARMLESS)
def test_short_and_interrupted_transfers_are_finished(outputs: Outputs, ranks: int, rules: str, hints: str) -> None:
    """Nothing fails: odd sizes and interruptions only cost time."""
    text = outputs.of(Run(ranks, rules, hints))
    assert not failed_checks(text, 40), text
    assert {r for calls in results(text, ranks).values() for call in calls for r, _ in call} == {"SUCCESS"}


@pytest.mark.parametrize("per_node", [0, 1])
def test_writes_that_move_nothing(outputs: Outputs, per_node: int) -> None:
    """A write of no bytes without an errno means a full disk, not an endless loop."""
    text = outputs.of(Run(2, NOTHING_MOVED, OWNERS, per_node))
    assert not failed_checks(text, 40), text
    assert agreed(results(text, 2)["write collective"]).count("NO_SPACE") == 1, text


#: Size of `small_disk`.
DISK_KIB = 512


def check_beyond(launch: Launch, ranks: int, error_class: str, kind: str) -> None:
    """The large write fails with the class; what is small is written and read before and after it."""
    assert not failed_checks(launch.stdout, 8), launch.describe()
    seen = results(launch.stdout, ranks)
    assert [{r for r, _ in call} for call in seen["small"]] == [{"SUCCESS"}, {"SUCCESS"}], launch.describe()
    (large,) = seen["large"]
    assert {result for result, _ in large} == {error_class}, launch.describe()
    assert kind == "independent" or all(count == 0 for _, count in large), launch.describe()


@pytest.mark.parametrize("kind", ["collective", "independent"])
@pytest.mark.parametrize(("ranks", "per_node"), [*slow((1, 0)), (3, 0), (4, 2)])
def test_full_disk(extension: str, small_disk: pathlib.Path, ranks: int, per_node: int, kind: str) -> None:
    """A real one. (OMPIO reports success with a count of 0, ROMIO's independent write of a view never returns.)"""
    launch = run(small_disk, ranks, "beyond", kind, env={"MPIOX_RANKS_PER_NODE": str(per_node)})
    check_beyond(launch, ranks, "NO_SPACE", kind)


@pytest.mark.parametrize("kind", ["collective", "independent"])
@pytest.mark.parametrize("ranks", [*slow(1), 3])
def test_beyond_the_file_size_limit(extension: str, tmp_path: pathlib.Path, ranks: int, kind: str) -> None:
    """RLIMIT_FSIZE with SIGXFSZ ignored: EFBIG."""
    launch = run(tmp_path, ranks, "beyond", kind, str(1 << 17))
    check_beyond(launch, ranks, "IO", kind)


def test_no_address_space_for_shared_memory(extension: str, family: str, tmp_path: pathlib.Path) -> None:
    """Where the collective buffers cannot be mapped there is an error or another way, and no file stays in /dev/shm."""
    limit = 4 << 30
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        pytest.skip("the address space is limited already")
    before = shared_memory()
    hints = "mpiox_exchange=two_phase:cb_buffer_size=1073741824:mpiox_buffers=8"
    program: list[str | os.PathLike[str]] = [
        "sh",
        "-c",
        f'ulimit -v {limit >> 10} && exec "$0" "$@"',
        mpi_program("faults"),
        tmp_path / "file",
        "repeat",
    ]
    launch = mpi_run(program, 2, preload=True, env={"MPIOX_HINTS": hints}, timeout_s=60, check=False)
    assert not launch.timed_out, launch.describe()
    assert launch.stdout.rstrip().endswith("end"), launch.describe()
    for call in results(launch.stdout, 2)["write collective"]:
        assert {result for result, _ in call} in ({"SUCCESS"}, {"NO_MEM"}), launch.describe()
    assert not shared_memory() - before
