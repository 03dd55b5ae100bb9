"""Buffers in the memory of a pretended GPU: failures of its driver, bounded host memory, memory that is the host's."""

from __future__ import annotations

import itertools
import json
import pathlib
import sys
from typing import Any

import numpy as np
import pytest

import mpiio_ext
from support import pretended_gpu
from support.launch import base_environment, launcher, python_run, run_bounded
from support.marks import slow
from support.pretended_gpu import Driver

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "programs" / "gpu_memory.py"
BLOCK, RANKS = 512, 3
#: Ways of an access: the method, and hints.
WAYS = {
    "two_phase": ("_all", ("mpiox_exchange=two_phase", "cb_buffer_size=32k")),
    "nodes": ("_all", ("mpiox_exchange=two_phase", "cb_buffer_size=32k", "mpiox_ranks_per_node=1")),
    "direct": ("_all", ("mpiox_exchange=direct",)),
    "independent": ("", ()),
    "sieved": ("", ("romio_ds_write=enable", "romio_ds_read=enable")),
    "nonblocking": ("i", ()),
    "delegates": ("", ("mpiox_delegates=1", "mpiox_delegate_mode=thread")),
    "cached": ("_all", ("mpiox_delegates=1", "mpiox_delegate_mode=thread", "mpiox_collective=cached")),
}
Seen = list[dict[str, Any]]


def run(
    folder: pathlib.Path, way: str, nbytes: int, *options: str, buffer: str = "20000", driver: Driver = Driver.CUDA
) -> Seen:
    """Return what each rank saw."""
    how, hints = WAYS[way]
    words = [word for hint in (f"mpiox_device_buffer={buffer}", *hints) for word in ("-H", hint)]
    command = [str(PROGRAM), how, str(folder / "data"), str(nbytes), *words, *options]
    env = {pretended_gpu.VARIABLE: pretended_gpu.library(driver)}
    done = python_run(command, RANKS, env=env, timeout_s=120)
    seen = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(seen) == RANKS, done.describe()
    return seen


def written(folder: pathlib.Path, nbytes: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the file's bytes and those that the ranks wrote, by block and rank."""
    found = np.fromfile(folder / "data", np.uint8).reshape(-1, RANKS, BLOCK)
    ours = [np.random.default_rng(r).integers(0, 200, nbytes, dtype=np.uint8).reshape(-1, BLOCK) for r in range(RANKS)]
    return found, np.stack(ours, axis=1)


@pytest.mark.both_with("two_phase-DEVICE-Driver.CUDA", "independent-DEVICE-Driver.CUDA")
@pytest.mark.slow_with(
    "nodes-DEVICE-Driver.CUDA",
    "sieved-DEVICE-Driver.CUDA",
    "cached-DEVICE-Driver.CUDA",
    "two_phase-DEVICE-Driver.HIP",
    "independent-DEVICE-Driver.HIP",
    "delegates-DEVICE-Driver.HIP",
    "two_phase-POOL-Driver.CUDA",
)
@pytest.mark.parametrize(
    ("way", "kind", "driver"),
    [
        *((way, "DEVICE", Driver.CUDA) for way in WAYS),
        *((way, "DEVICE", Driver.HIP) for way in ("two_phase", "independent", "delegates")),
        *(("two_phase", "POOL", driver) for driver in (Driver.CUDA, Driver.HIP)),
    ],
)
def test_bytes_and_counts(way: str, kind: str, driver: Driver, tmp_path: pathlib.Path) -> None:
    """Bytes arrive both ways and are counted; host memory is two buffers, whatever the size of the access."""
    nbytes = 200 * BLOCK
    seen = run(tmp_path, way, nbytes, "--kind", kind, driver=driver)
    assert all(rank["errors"] == [""] and rank["device_bytes_written"] == nbytes for rank in seen), seen
    assert all(rank["copies"] >= nbytes // 20480 and rank["device_s"] > 0 for rank in seen)
    found, ours = written(tmp_path, nbytes)
    assert (found == ours).all()
    seen = run(tmp_path, way, nbytes, "--kind", kind, "--read", driver=driver)
    assert all(rank["errors"] == [""] and rank["right"] for rank in seen), seen
    assert all(rank["device_bytes_read"] == nbytes and rank["device_bytes_written"] == 0 for rank in seen)
    assert all(rank["most_registered"] == 2 * 20480 and rank["most_under_way"] <= 2 * 20480 for rank in seen), seen


@pytest.mark.parametrize("way", ["two_phase", *slow("nodes", "direct"), "independent", *slow("delegates")])
def test_host_memory_is_no_more_than_the_access_needs(way: str, tmp_path: pathlib.Path) -> None:
    """With the largest buffers, host memory is as much as the data of both."""
    nbytes = 200 * BLOCK
    seen = run(tmp_path, way, nbytes, buffer="1g")
    assert all(rank["errors"] == [""] and 0 < rank["most_registered"] <= 2 * nbytes for rank in seen), seen


@pytest.mark.slow_with("*-PINNED", "independent-Driver.CUDA-*")
@pytest.mark.parametrize("kind", ["MANAGED", "PINNED"])
@pytest.mark.parametrize(
    ("way", "driver"),
    [*((way, Driver.CUDA) for way in ("two_phase", "independent", "delegates")), ("two_phase", Driver.HIP)],
)
def test_memory_that_the_processor_can_access(way: str, driver: Driver, kind: str, tmp_path: pathlib.Path) -> None:
    """Managed and pinned memory is the host's: nothing is copied by the driver."""
    nbytes = 100 * BLOCK
    seen = run(tmp_path, way, nbytes, "--kind", kind, driver=driver)
    assert all(rank["errors"] == [""] and rank["copies"] == rank["device_bytes_written"] == 0 for rank in seen), seen
    found, ours = written(tmp_path, nbytes)
    assert (found == ours).all()


@pytest.mark.parametrize("verb", [(), ("--read",)], ids=["write", "read"])
def test_device_memory_that_the_processor_could_access(
    verb: tuple[str, ...], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a large BAR that is slow, and ends with no EFAULT: the driver copies all but the smallest accesses."""
    monkeypatch.setenv("PRETENDED_GPU_MAPPED", "1")
    for nbytes, copied in ((100 * BLOCK, True), (256, False)):
        seen = run(tmp_path, "independent", nbytes, "--whole", *verb, driver=Driver.HIP)
        assert all(rank["errors"] == [""] and rank["right"] for rank in seen), seen
        got = {rank["device_bytes_read" if verb else "device_bytes_written"] for rank in seen}
        assert got == {nbytes if copied else 0} and all((rank["copies"] > 0) == copied for rank in seen), seen
        if not verb:
            found = np.fromfile(tmp_path / "data", np.uint8).reshape(RANKS, nbytes)
            ours = [np.random.default_rng(r).integers(0, 200, nbytes, dtype=np.uint8) for r in range(RANKS)]
            assert (found == ours).all()


@pytest.mark.parametrize("way", ["two_phase", *slow("direct", "independent"), "delegates"])
def test_memory_that_no_driver_copies(way: str, tmp_path: pathlib.Path) -> None:
    """That of Level Zero: an error on every rank, no crash; managed memory is written as that of the host."""
    nbytes = 100 * BLOCK
    seen = run(tmp_path, way, nbytes, driver=Driver.LEVEL_ZERO)
    for each in seen:
        (error,) = each["errors"]
        assert "Level Zero memory (not supported: copy it to the host first)" in error and not each["closing"], each
    assert (np.fromfile(tmp_path / "data", np.uint8) == 0xEE).all()
    seen = run(tmp_path, way, nbytes, "--kind", "MANAGED", driver=Driver.LEVEL_ZERO)
    assert all(rank["errors"] == [""] for rank in seen), seen
    found, ours = written(tmp_path, nbytes)
    assert (found == ours).all()


@pytest.mark.slow_with("two_phase-read", "independent-write", "delegates-read")
@pytest.mark.parametrize("verb", [(), ("--read",)], ids=["write", "read"])
@pytest.mark.parametrize("way", ["two_phase", "independent", "delegates"])
def test_one_datatype_with_memory_of_host_and_gpu(way: str, verb: tuple[str, ...], tmp_path: pathlib.Path) -> None:
    """Absolute addresses of both kinds: an error on every rank, no crash."""
    seen = run(tmp_path, way, 100 * BLOCK, "--mixed", *verb)
    assert all("one datatype with memory of the host and of a GPU" in rank["errors"][0] for rank in seen), seen
    if not verb:
        assert (np.fromfile(tmp_path / "data", np.uint8) == 0xEE).all()


#: Of the driver's functions: which call fails, and how.
FAILURES = {
    "first-copy": "cuMemcpyDtoHAsync_v2:1:999",
    "later-copy": "cuMemcpyDtoHAsync_v2:3:999",
    "out-of-memory": "cuStreamCreate:1:2",
    "lost-context": "cuStreamSynchronize:2:700",
    "no-context": "cuCtxPushCurrent_v2:1:201",
}


@pytest.mark.parametrize("failure", [*slow("later-copy"), "lost-context"])
def test_a_driver_of_hip_that_fails(failure: str, tmp_path: pathlib.Path) -> None:
    """The error has HIP's name."""
    seen = run(tmp_path, "two_phase", 200 * BLOCK, "--fail", f"1:{FAILURES[failure]}", driver=Driver.HIP)
    name = "hipErrorILLEGAL_ADDRESS" if failure == "lost-context" else "unknown"
    assert all("HIP memory (" in rank["errors"][0] and name in rank["errors"][0] for rank in seen), seen


def pairs() -> list[Any]:
    """Return each way and failure; a few of them in each run of the tests."""
    few = [("two_phase", failure) for failure in FAILURES] + [(way, "later-copy") for way in WAYS]
    return [
        pytest.param(*pair, marks=[] if pair in few else pytest.mark.slow) for pair in itertools.product(WAYS, FAILURES)
    ]


@pytest.mark.both_with("two_phase-later-copy")
@pytest.mark.slow_with("nodes-later-copy", "direct-later-copy", "nonblocking-later-copy", "cached-later-copy")
@pytest.mark.parametrize(("way", "failure"), pairs())
def test_a_driver_that_fails(way: str, failure: str, tmp_path: pathlib.Path) -> None:
    """Each rank of a collective gets the error, with the driver's name; the file has no byte that nobody wrote."""
    nbytes = 200 * BLOCK
    seen = run(tmp_path, way, nbytes, "--fail", f"1:{FAILURES[failure]}")
    collective = WAYS[way][0] == "_all" and way != "cached"  # those that are cached end alone: it is told by the close
    for rank, each in enumerate(seen):
        (error,) = each["errors"]
        assert bool(each["closing"]) == (way == "cached"), each
        assert bool(error) == (collective or rank == 1), seen
        assert not error or ("rank 1: " in error and "CUDA memory (" in error and "failed" in error), error
        if error and failure in ("lost-context", "no-context", "out-of-memory"):
            assert "CUDA_ERROR_" in error
    found, ours = written(tmp_path, nbytes)
    assert ((found == ours) | (found == 0xEE)).all()
    assert not (found[:, 1] == ours[:, 1]).all()


@pytest.mark.parametrize("way", ["two_phase", *slow("nodes", "independent"), "delegates"])
def test_the_next_access_works(way: str, tmp_path: pathlib.Path) -> None:
    """A failure that does not lose the context is over with its call."""
    nbytes = 100 * BLOCK
    seen = run(tmp_path, way, nbytes, "--fail", "1:cuMemcpyDtoHAsync_v2:2:1", "--again")
    assert seen[1]["errors"][0] and not any(rank["errors"][1] for rank in seen), seen
    found, ours = written(tmp_path, nbytes)
    assert (found == ours).all()


@pytest.mark.parametrize("way", ["two_phase", *slow("nodes"), "independent", *slow("delegates")])
def test_a_read_that_fails(way: str, tmp_path: pathlib.Path) -> None:
    nbytes = 200 * BLOCK
    seen = run(tmp_path, way, nbytes, "--fail", "1:cuMemcpyHtoDAsync_v2:2:999", "--read")
    assert "rank 1: " in seen[1]["errors"][0] and not seen[1]["right"], seen
    assert all(bool(rank["errors"][0]) == (WAYS[way][0] == "_all") for rank in (seen[0], seen[2])), seen


@pytest.mark.slow_except(
    "two_phase-cuStreamSynchronize:*", "independent-cuPointerGetAttributes:*", "delegates-cuStreamSynchronize:*"
)
@pytest.mark.parametrize("failure", ["cuStreamSynchronize:2:700", "cuPointerGetAttributes:1:700"])
@pytest.mark.parametrize("way", ["two_phase", "nodes", "direct", "independent", "delegates"])
def test_a_driver_that_no_longer_answers(way: str, failure: str, tmp_path: pathlib.Path) -> None:
    """Memory that the processor cannot access is no host memory: later calls end with an error, too."""
    nbytes = 100 * BLOCK
    seen = run(tmp_path, way, nbytes, "--fail", f"1:{failure}", "--again")
    for rank, each in enumerate(seen):
        for error in each["errors"]:
            assert bool(error) == (rank == 1 or WAYS[way][0] == "_all"), seen
            assert not error or ("rank 1: " in error and "CUDA_ERROR_ILLEGAL_ADDRESS" in error), error


@pytest.mark.slow_with("independent-Driver.CUDA-700", "delegates-Driver.CUDA-700")
@pytest.mark.parametrize(
    ("way", "driver", "result"),
    [*((way, Driver.CUDA, 700) for way in ("two_phase", "independent", "delegates")), ("two_phase", Driver.HIP, 100)],
)
def test_host_memory_of_which_the_driver_says_nothing(
    way: str, driver: Driver, result: int, tmp_path: pathlib.Path
) -> None:
    """What the processor can access is written without the driver, also if that has found no GPU (100)."""
    nbytes = 100 * BLOCK
    failure = f"1:cuPointerGetAttributes:1:{result}"
    seen = run(tmp_path, way, nbytes, "--kind", "MANAGED", "--fail", failure, driver=driver)
    assert all(rank["errors"] == [""] and rank["copies"] == 0 for rank in seen), seen
    found, ours = written(tmp_path, nbytes)
    assert (found == ours).all()


@pytest.mark.parametrize("way", ["independent", "two_phase"])
def test_direct_io(way: str, tmp_path: pathlib.Path) -> None:
    """Blocks that lie askew in memory pass through an aligned buffer, which the processor would fill."""
    nbytes = 400 * BLOCK
    hints = ("-H", "direct_read=true", "-H", "direct_write=true")
    for verb in ((), ("--read",)):
        seen = run(tmp_path, way, nbytes, "--whole", "--shift", "8", *verb, *hints)
        assert all(rank["errors"] == [""] for rank in seen), seen
        assert all(rank["device_bytes_read" if verb else "device_bytes_written"] == nbytes for rank in seen)
        if not verb:
            found = np.fromfile(tmp_path / "data", np.uint8).reshape(RANKS, nbytes)
            assert (found == written(tmp_path, nbytes)[1].swapaxes(0, 1).reshape(RANKS, nbytes)).all()


def test_threads_whose_first_accesses_come_at_once(tmp_path: pathlib.Path) -> None:
    """None goes on as if there were no driver while another one looks for it."""
    program = PROGRAM.with_name("gpu_threads.py")
    env = {pretended_gpu.VARIABLE: pretended_gpu.library(), "PRETENDED_GPU_LATE": "100000"}
    done = python_run([str(program), str(tmp_path / "data")], 1, env=env, timeout_s=120)
    assert json.loads(done.stdout) == [""] * 4


def test_accesses_that_grow(tmp_path: pathlib.Path) -> None:
    """Buffers that became too small go: what stays is two of the largest access."""
    (seen, *_) = run(tmp_path, "independent", 100 * BLOCK, "--growing", buffer="1M")
    assert seen["errors"] == [""] and seen["registered"] == 2 * 53248, seen


@pytest.mark.parametrize("way", ["two_phase", *slow("nodes", "direct"), "independent"])
def test_the_end_of_the_file(way: str, tmp_path: pathlib.Path) -> None:
    """Bytes that are not there are not counted."""
    nbytes, blocks = 200 * BLOCK, 100
    seen = run(tmp_path, way, nbytes, "--read", "--end", str(blocks * RANKS * BLOCK))
    assert all(rank["errors"] == [""] and rank["device_bytes_read"] == blocks * BLOCK for rank in seen), seen


@pytest.mark.parametrize("way", ["two_phase", "independent"])
def test_host_memory_that_is_not_registered(way: str, tmp_path: pathlib.Path) -> None:
    nbytes = 100 * BLOCK
    seen = run(tmp_path, way, nbytes, "--fail", "1:cuMemHostRegister_v2:1:2")
    assert all(rank["errors"] == [""] for rank in seen) and seen[1]["most_registered"] == 0, seen
    found, ours = written(tmp_path, nbytes)
    assert (found == ours).all()


@pytest.mark.slow_with("contiguous-independent", "chunked-collective")
@pytest.mark.parametrize(
    "case",
    [
        "array",
        *("-".join(words) for words in itertools.product(("contiguous", "chunked"), ("independent", "collective"))),
    ],
)
def test_arrays_and_datasets(case: str, tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> None:
    """An array of mpi4py, and HDF5 where it does not touch the data itself."""
    if case != "array":
        request.getfixturevalue("parallel_h5py")
    program = PROGRAM.with_name("gpu_hdf5.py")
    env = {pretended_gpu.VARIABLE: pretended_gpu.library()}
    done = python_run([str(program), case, str(tmp_path)], 2, env=env, timeout_s=120)
    assert done.stdout.count("right") == 2  # lines of ranks may come in one


def test_the_script_that_measures(tmp_path: pathlib.Path) -> None:
    """It compares each byte, and prints a figure for each pattern and kind of memory."""
    script = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "gpu_check.py"
    command = [str(script), "--megabytes", "1", "--rounds", "2", "--folder", str(tmp_path)]
    done = python_run(command, 2, env={pretended_gpu.VARIABLE: pretended_gpu.library()}, timeout_s=120)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert len(figures) == 9 and all(len(each) == 6 and min(each) > 0 for each in figures.values()), done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_page_has_the_bytes(tmp_path: pathlib.Path) -> None:
    """The page of a run says of the file how many bytes were in GPU memory."""
    page = tmp_path / "io.html"
    program = [sys.executable, str(PROGRAM), "_all", str(tmp_path / "data"), str(200 * BLOCK)]
    command = [
        str(launcher()),
        "-n",
        str(RANKS),
        sys.executable,
        "-m",
        "mpiio_ext",
        "run",
        "--report",
        str(page),
        "--",
        *program,
    ]
    env = base_environment() | {pretended_gpu.VARIABLE: pretended_gpu.library()}
    run_bounded(command, env=env, timeout_s=120, cwd=tmp_path)
    (row,) = mpiio_ext.run_report(page).library.rows()
    assert f"{RANKS * 200 * BLOCK // 1000} kB in GPU memory" in row["method"], row


@pytest.mark.parametrize(
    "hints",
    [
        (),
        ("mpiox_subfiles=2",),
        ("mpiox_delegates=1", "mpiox_close=staged"),
        pytest.param(
            ("mpiox_delegates=2", "mpiox_delegate_mode=thread", "mpiox_delegate_ack=replica"), marks=pytest.mark.slow
        ),
        ("mpiox_storage=io_uring",),
    ],
    ids=lambda hints: hints[-1].partition("=")[2] if hints else "plain",
)
def test_a_driver_that_is_loaded_late(hints: tuple[str, ...], tmp_path: pathlib.Path) -> None:
    """The driver is found when the file has long been open, whatever way the file is stored or accessed."""
    program = PROGRAM.with_name("gpu_late.py")
    env = {pretended_gpu.VARIABLE: pretended_gpu.library()}
    done = python_run([str(program), str(tmp_path / "data"), *hints], RANKS, env=env, timeout_s=120)
    assert done.stdout.count("right") == RANKS  # lines of ranks may come in one
