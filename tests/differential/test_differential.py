"""Random programs of MPI-IO calls: the library against the NumPy model, the MPI library beside it. See run.py."""

from __future__ import annotations

import itertools
import pathlib
import time
from collections.abc import Callable

import pytest

from differential import generate, run, simulate
from differential.arms import Setting
from differential.features import features
from differential.program import ACCESS_FAMILIES, STYLES
from differential.state import HOWS
from differential.variants import DELEGATE_HINTS, delegate_hints, is_native_data, stored_as_several
from support import fuzz, mounts, pretended_gpu
from support.launch import OTHER_LAUNCHER, Launch, LostLaunch, launcher
from support.marks import slow
from support.pretended_gpu import Driver

#: Seconds after which a case counts as stuck: nothing here depends on how busy the machine is.
LIMIT_S = 60.0


#: Ranks of the cases beside the bounded test, each number in a launch of its own; --run-slow takes every number.
FEW_RANKS = (1, 3, 8)


def seeds_from(first: int, count: int) -> list[int]:
    """Return the seeds of so many cases, of FEW_RANKS."""
    ranks = range(1, 9) if fuzz.all_examples() else FEW_RANKS
    return list(itertools.islice((seed for seed in itertools.count(first) if generate.ranks_of(seed) in ranks), count))


def complain(report: run.Report) -> str:
    """Return the failing seeds and how to see them again."""
    lines = [f"seed {seed}: {problems[:3]}" for seed, problems in sorted(report.failures.items())[:10]]
    again = " ".join(f"--case {seed}" for seed in sorted(report.failures)[:10])
    return "\n".join([*lines, f"again: python tests/differential/run.py {again}"])


def check(report: run.Report, least: int) -> None:
    """Fail unless enough cases ran, through the library, without a difference."""
    print(f"{report.cases} cases, deviations of the MPI library itself: {len(report.native)}; {dict(report.stats)}")
    assert report.cases >= least
    assert report.stats["collective_writes"] > 0
    assert report.stats["collective_reads"] > 0
    assert report.stats["independent_writes"] > 0
    assert report.stats["independent_reads"] > 0
    assert report.stats["nonblocking_calls"] > 0
    assert report.stats["locks"] > 0
    assert report.unjudged * 50 <= report.cases, report.notes
    assert len(report.unrepeated) * 100 <= report.cases, report.unrepeated
    assert not report.failures, complain(report)


@pytest.mark.mpi
def test_another_launcher(extension: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts the ranks, and is asked once more where it has lost a launch before the first case."""
    lost = tmp_path / "lost"
    words = f'[ -e {lost} ] || {{ : > {lost}; kill -SEGV $$; }}; exec {launcher()} "$@"'
    (tmp_path / "srun").write_text(f"#!/bin/sh\necho . >> {tmp_path}/calls; {words}\n")
    (tmp_path / "srun").chmod(0o755)
    seeds = [seed for seed in range(60, 90) if generate.ranks_of(seed) == 1][:2]
    setting = Setting(arms=("ours",), limit_s=LIMIT_S, parent=str(tmp_path))
    monkeypatch.setenv(OTHER_LAUNCHER, f"{tmp_path}/srun")
    with pytest.warns(LostLaunch, match="no case"):
        report = run.run(seeds, setting)
    assert report.cases == len(seeds) > 0 and not report.failures, complain(report)
    assert (tmp_path / "calls").read_text() == 2 * ".\n"


@pytest.mark.both
@pytest.mark.mpi
def test_bounded(extension: str, pytestconfig: pytest.Config, tmp_path: pathlib.Path) -> None:
    """Some cases of every number of ranks without the reference calls; `test_long` has thousands."""
    cases = pytestconfig.getoption("--cases") or fuzz.examples(240)
    started_s = time.monotonic()
    report = run.run(list(range(1, cases + 1)), Setting(arms=("ours",), limit_s=LIMIT_S), shuffle=True)
    print(f"{time.monotonic() - started_s:.0f} s")
    check(report, cases)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("locks", ["server", "token"])
def test_as_on_other_file_systems(extension: str, locks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decisions of `auto` for Lustre and GPFS: other methods, windows and requests, the same bytes."""
    monkeypatch.setenv("MPIOX_LOCKS", locks)
    seeds = seeds_from(20_001, fuzz.examples(100))
    check(run.run(seeds, Setting(arms=("ours",), limit_s=LIMIT_S), shuffle=True), len(seeds))


@pytest.mark.both
@pytest.mark.mpi
def test_beside_native(extension: str) -> None:
    """Some cases beside the MPI library's own calls."""
    seeds = seeds_from(10_001, fuzz.examples(60))
    check(run.run(seeds, Setting(arms=("ours", "native"), limit_s=LIMIT_S), shuffle=True), len(seeds))


@pytest.mark.both_with("mpiox_delegate_mode=thread-*")
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("more", "cases"),
    [
        ("mpiox_delegate_mode=thread", fuzz.examples(120)),
        ("mpiox_collective=cached", fuzz.examples(120)),
        pytest.param("mpiox_delegate_mode=spawn", 1_000, marks=pytest.mark.slow),
        pytest.param("mpiox_collective=cached", 1_000, marks=pytest.mark.slow),
    ],
)
def test_delegates(extension: str, more: str, cases: int) -> None:
    """Through delegates, of which some cases turn out to have none: other communicators, atomic mode, own hints."""
    hints = delegate_hints(2, f"{DELEGATE_HINTS}:{more}")
    setting = Setting(arms=("ours",), limit_s=LIMIT_S, env=(("MPIOX_HINTS", hints),))
    report = run.run(seeds_from(20_001, cases), setting, shuffle=True)
    check(report, cases)
    assert report.stats["delegated_writes"] > 0
    assert report.stats["delegated_reads"] > 0


@pytest.mark.both_with("Driver.CUDA-mpiox_device_buffer=97-*")
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("driver", "hints", "cases"),
    [
        *slow((Driver.HIP, "mpiox_device_buffer=4194304", fuzz.examples(80))),
        (Driver.CUDA, "mpiox_device_buffer=97", fuzz.examples(80)),
        (Driver.CUDA, f"mpiox_device_buffer=97:{DELEGATE_HINTS}:mpiox_delegate_mode=thread", fuzz.examples(80)),
        pytest.param(Driver.CUDA, "mpiox_device_buffer=97", 5_000, marks=pytest.mark.slow),
        pytest.param(Driver.CUDA, f"{DELEGATE_HINTS}:mpiox_collective=cached", 5_000, marks=pytest.mark.slow),
    ],
)
def test_memory_of_a_gpu(extension: str, driver: Driver, hints: str, cases: int) -> None:
    """Three of four buffers are in the memory of a pretended GPU."""
    given = delegate_hints(2, hints) if DELEGATE_HINTS in hints else f"*:{hints}"
    env = (("MPIOX_HINTS", given), (pretended_gpu.VARIABLE, pretended_gpu.library(driver)))
    check(run.run(seeds_from(40_001, cases), Setting(arms=("ours",), limit_s=LIMIT_S, env=env), shuffle=True), cases)


@pytest.mark.mpi
@pytest.mark.parametrize(("count", "unit", "delegates"), [(4, 97, 0), *slow((3, 4096, 2))])
def test_subfiles(extension: str, count: int, unit: int, delegates: int) -> None:
    """Files that are stored as several are what the model says: by their format, merged, and through a mount."""
    hints = (("MPIOX_HINTS", delegate_hints(delegates)),) if delegates else ()
    setting = stored_as_several(Setting(arms=("ours",), limit_s=LIMIT_S, env=hints), count, unit)
    seeds = [seed for seed in range(30_001, 30_001 + fuzz.examples(80)) if is_native_data(generate.generate(seed))]
    try:
        with run.mounted(setting) as shown:
            report = run.run(seeds, shown, shuffle=True)
    except mounts.NoMountError as error:
        pytest.skip(str(error))
    check(report, len(seeds))
    assert report.stats["merge"] == report.stats["mount"] >= len(seeds)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("cases", [2_000, 20_000])
def test_long(extension: str, cases: int) -> None:
    """The full tiers."""
    check(run.run(list(range(1, cases + 1)), Setting(arms=("ours", "native")), progress=True), cases)


FORMS = """
    import sys
    sys.path.append({tests!r})
    from mpi4py import MPI
    from differential import draw_types, typetree
    import random
    LARGE = hasattr(__import__("differential.classic").classic.SYMBOLS, "MPI_Type_contiguous_c")
    rng = random.Random(7)
    for _ in range(300):
        for tree in typetree.composites(draw_types.memory_tree(rng, 2)):
            for form in (typetree.plain(tree), typetree.plain(tree) + "_c"):
                made = []
                kind = typetree.build(["dup" if form == "dup_c" else form, *tree[1:]], made)
                counts = kind.Get_envelope()[2]
                print(form, "large" if counts else "classic", LARGE)
                for other in reversed(made):
                    other.Free()
"""


@pytest.mark.both
@pytest.mark.mpi
def test_both_forms_reach_the_mpi_library(
    family: str, mpi_python: Callable[..., Launch], script: Callable[[str], pathlib.Path]
) -> None:
    """MPI says of every type by which form of the constructor it was made."""
    tests = str(pathlib.Path(__file__).resolve().parents[1])
    found = set(mpi_python([script(FORMS.format(tests=tests))], 1).stdout.splitlines())
    names = {line.split()[0] for line in found}
    assert len(names) >= 20, names
    for line in found:
        name, form, large = line.split()
        assert form == ("large" if name.endswith("_c") and name != "dup_c" and large == "True" else "classic"), found
    assert any(line.endswith("True") for line in found) == (family == "mpich")


def test_the_same_seed_gives_the_same_case() -> None:
    """Seeds are enough to reproduce a failure, on any machine."""
    for seed in range(fuzz.examples(40)):
        assert generate.generate(seed) == generate.generate(seed)


@pytest.mark.parametrize("family", generate.FAMILIES)
def test_every_family_alone(family: str) -> None:
    """``--only`` gives legal programs of that family, and of no other way of data access."""
    for seed in range(10):
        case = generate.generate(seed, frozenset({family}))
        assert simulate.check(case) is None, seed
        hows = {HOWS[op["how"]].family for op in case["ops"] if "how" in op}
        assert hows <= ({family} if family in ACCESS_FAMILIES else ACCESS_FAMILIES)


def test_cases_are_legal_and_cover_everything() -> None:
    """Every case is a legal program, and no constructor, call or method is left out of the first 500."""
    kinds = "contiguous vector hvector indexed hindexed indexed_block hindexed_block struct subarray darray resized dup"
    forms = [*kinds.split(), *(f"{kind}_c" for kind in kinds.split() if kind != "dup")]
    wanted = {f"{side} {form}" for side in ("file", "memory") for form in forms} | {"memory pair", "memory f90_real"}
    wanted |= {f"{form} {op} {how}" for form in ("classic", "large") for op in ("read", "write") for how in HOWS}
    wanted |= {f"call {op} {how}" for op in ("read", "write") for how in HOWS}
    wanted |= {f"wait {style}" for style in STYLES} | {"several under way", "idle ranks"}
    wanted |= {f"atomic {family}" for family in ("collective", "independent", "nonblocking", "icollective")}
    wanted |= {"race explicit write", "race explicit mixed", "race shared write", "race shared read"}
    wanted |= {f"mode {mode}" for mode in ("append", "excl", "unique", "delete", "rdonly", "wronly", "create")}
    wanted |= {f"open on {comm}" for comm in ("world", "dup", "back", "self", "halves", "parity", "some")}
    wanted |= {"open works", "open NO_SUCH_FILE", "open FILE_EXISTS", "call close", "call query", "call atomicity"}
    wanted |= {f"{call} {whence}" for call in ("seek", "seek_shared") for whence in ("set", "cur", "end")}
    wanted |= {"call size", "call preallocate", "rep external32", "rep internal"}
    wanted |= {f"mpiox_partition={method}" for method in generate.METHODS}
    wanted |= {f"mpiox_exchange={mode}" for mode in ("two_phase", "direct", "auto")}
    wanted |= {f"ranks {n}" for n in range(1, 9)} | {f"nodes {n}" for n in range(1, 5)}
    wanted |= {"memory MPI_BOTTOM", "read past end", "zero-length ranks", "file existed", "etype derived"}
    found: set[str] = set()
    for seed in range(500):
        case = generate.generate(seed)
        assert simulate.check(case) is None, seed
        found |= features(case)
        if seed >= fuzz.examples(500) and wanted <= found:
            break
    assert wanted <= found, wanted - found
