"""mpi4py's own I/O tests: whatever passes with the MPI library alone must pass with the library under it."""

from __future__ import annotations

import functools
import importlib.metadata
import pathlib
import tempfile
from typing import Any

import pytest

from support import fuzz
from support.fetch import FetchError, sdist
from support.launch import MEMORY, PROGRAMS, of_ranks, python_run
from support.marks import slow

pytestmark = pytest.mark.mpi

SUITE = PROGRAMS / "run_mpi4py_tests.py"
METHODS = ("auto", "even", "aligned", "static_cyclic", "group_cyclic", "transpose")
#: The methods differ in pure functions (tests/unit) and meet these calls in the differential test, too.
QUICK = ("transpose",)
TIERED = [method if method in QUICK else pytest.param(method, marks=pytest.mark.slow) for method in METHODS]
TIMEOUT_S = 240.0


@pytest.fixture(scope="module")
def program() -> pathlib.Path:
    """Return test/main.py of the source distribution of the installed mpi4py."""
    try:
        return sdist("mpi4py", importlib.metadata.version("mpi4py")) / "test" / "main.py"
    except FetchError as error:
        pytest.skip(f"mpi4py's tests are not at hand: {error}")


def run_suite(program: pathlib.Path, ranks: int, folder: pathlib.Path, hints: str | None) -> list[dict[str, Any]]:
    """Run the suite; one result per rank. ``hints`` None: without the library."""
    environment = {"TMPDIR": str(folder)}
    if hints is not None:
        environment["MPIOX_HINTS"] = hints
    arguments = [str(SUITE), str(program), str(folder), *(["--stats"] if hints is not None else [])]
    arguments += ["--arrays"] if fuzz.all_examples() else []
    launch = python_run(
        arguments, ranks, env=environment, preload=hints is not None, timeout_s=TIMEOUT_S, cwd=folder, check=False
    )
    assert not launch.timed_out, launch.describe()
    assert all((folder / f"{rank}.json").exists() for rank in range(ranks)), launch.describe()
    return of_ranks(folder, ranks)


@functools.cache
def native(program: pathlib.Path, ranks: int) -> list[dict[str, str]]:
    """Return the outcomes without the library, rank by rank (they cost seconds, so once per rank count)."""
    with tempfile.TemporaryDirectory(prefix="mpiox_mpi4py_", dir=MEMORY) as name:
        return [result["outcomes"] for result in run_suite(program, ranks, pathlib.Path(name), None)]


def check(program: pathlib.Path, ranks: int, folder: pathlib.Path, hints: str) -> list[dict[str, Any]]:
    """Compare a run with the library against the run without; return the results."""
    reference = native(program, ranks)
    results = run_suite(program, ranks, folder, hints)
    assert sum(outcome == "ok" for outcome in reference[0].values()) > 60
    for rank, (result, expected) in enumerate(zip(results, reference, strict=True)):
        worse = {
            name: result["outcomes"].get(name, "not run")
            for name, outcome in expected.items()
            if outcome == "ok" and result["outcomes"].get(name) != "ok"
        }
        assert not worse, f"rank {rank}, hints {hints}: pass natively only: {worse}"
        assert result["interposed"]
        assert result["stats"]["collective_writes"] > 0, result["stats"]
        assert result["stats"]["collective_reads"] > 0, result["stats"]
    return results


@pytest.mark.both
@pytest.mark.parametrize("ranks", [2, *slow(1, 4)])
def test_default(program: pathlib.Path, extension: str, memory_folder: pathlib.Path, ranks: int) -> None:
    """As a user gets it."""
    check(program, ranks, memory_folder, "")


@pytest.mark.parametrize("method", TIERED)
def test_each_method(program: pathlib.Path, extension: str, memory_folder: pathlib.Path, method: str) -> None:
    """Every method, with exchange forced, two aggregators and buffers that are smaller than some requests."""
    hints = (
        f"*:mpiox_partition={method}:mpiox_exchange=two_phase:cb_nodes=2:striping_unit=64:striping_factor=2:"
        "cb_buffer_size=256"
    )
    results = check(program, 2, memory_folder, hints)
    assert all(result["stats"]["direct_calls"] == 0 for result in results)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("method", METHODS)
def test_each_method_at_other_sizes(
    program: pathlib.Path, extension: str, memory_folder: pathlib.Path, method: str, ranks: int
) -> None:
    """The same at 1 and 4 ranks on two pretended nodes, one stripe per request."""
    hints = (
        f"*:mpiox_partition={method}:mpiox_exchange=two_phase:mpiox_stripe_size_io=true:mpiox_ranks_per_node=2:"
        "striping_unit=64"
    )
    check(program, ranks, memory_folder, hints)


@pytest.mark.both
@pytest.mark.parametrize(
    ("mode", "ranks", "per_node"),
    [("spawn", 2, 0), *slow(("thread", 2, 1), ("thread", 1, 0), ("thread", 4, 2), ("spawn", 4, 0), ("spawn", 4, 2))],
)
def test_delegates(
    program: pathlib.Path, extension: str, memory_folder: pathlib.Path, mode: str, ranks: int, per_node: int
) -> None:
    """Independent accesses through delegates with little memory, also of another (pretended) node."""
    hints = (
        f"*:mpiox_delegates=2:mpiox_delegate_mode={mode}:mpiox_delegate_page=4k:mpiox_delegate_cache=400k:"
        f"mpiox_ranks_per_node={per_node}"
    )
    results = check(program, ranks, memory_folder, hints)
    assert all(result["stats"]["delegated_writes"] > 0 for result in results), results[0]["stats"]
