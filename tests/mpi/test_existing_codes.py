"""Existing codes, steered from outside: hints by file name reach the file they are meant for, and no other.

Unchanged programs (C with HDF5, C with PnetCDF, Fortran, h5py, netCDF4, Debian's ncmpigen) run under ``mpiio-ext run``
with one hints file for all of them, started both ways round. Each program verifies what it reads. The proof is
twofold: the statistics name the hints in force and who set them, and what was done (method, rounds, requests) is what
these hints lead to, computed here from the files' geometry.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest

from support import codes
from support.launch import Launch, base_environment, json_lines, launcher, mpi_run, run_bounded
from support.marks import slow

pytestmark = pytest.mark.mpi

RANKS = 4
KIB = 1024
HINTS = """\
# every file
mpiox_exchange = two_phase
cb_nodes = 2

[*.h5]
mpiox_partition = group_cyclic
striping_unit = 2k
striping_factor = 2
cb_nodes = 4

[*fields.h5]
mpiox_partition = static_cyclic   # stronger than the section above, whose other lines still hold
cb_nodes = 3

[*checkpoint*.nc]
mpiox_partition = transpose
striping_unit = 1k
striping_factor = 3

[*checkpoint.0001.nc]
mpiox_enable = false

[*.bt]
mpiox_partition = aligned
mpiox_stripe_size_io = true
striping_unit = 4k
cb_buffer_size = 16k

[*.flash]
striping_unit = 4k
cb_nodes = 1

[*history*]
mpiox_partition = even
cb_nodes = 1
cb_buffer_size = 8k

[grid.nc]
mpiox_partition = transpose
cb_nodes = 4
striping_unit = 512
striping_factor = 3
"""
FILE = "MPIOX_HINTS_FILE"
COMMON = {"mpiox_exchange": "two_phase"}
HDF5 = COMMON | {"striping_unit": "2048", "striping_factor": "2"}
EXPECTED: dict[str, dict[str, str]] = {
    "particles.h5": HDF5 | {"mpiox_partition": "group_cyclic", "cb_nodes": "4"},
    "fields.h5": HDF5 | {"mpiox_partition": "static_cyclic", "cb_nodes": "3"},
    "checkpoint.0000.nc": COMMON
    | {"mpiox_partition": "transpose", "cb_nodes": "2", "striping_unit": "1024", "striping_factor": "3"},
    "checkpoint.0001.nc": COMMON
    | {
        "mpiox_partition": "transpose",
        "cb_nodes": "2",
        "striping_unit": "1024",
        "striping_factor": "3",
        "mpiox_enable": "false",
    },
    "solution.bt": COMMON
    | {
        "mpiox_partition": "aligned",
        "mpiox_stripe_size_io": "enable",  # as the library spells it
        "cb_nodes": "2",
        "striping_unit": "4096",
        "cb_buffer_size": "16384",
    },
    "checkpoint.flash": COMMON | {"cb_nodes": "1", "striping_unit": "4096"},
    "history.nc": COMMON | {"mpiox_partition": "even", "cb_nodes": "1", "cb_buffer_size": "8192"},
    "grid.nc": COMMON
    | {"mpiox_partition": "transpose", "cb_nodes": "4", "striping_unit": "512", "striping_factor": "3"},
}
VERIFIES_ITSELF = set(codes.CODES) - {"ncmpigen"}


def program(name: str, folder: pathlib.Path) -> list[str]:
    """Return a code's command line, or skip the test."""
    try:
        return codes.command(name, folder)
    except codes.CodeAbsentError as error:
        pytest.skip(str(error))


def run_under(folder: pathlib.Path, words: list[str], outside: bool, options: list[str]) -> Launch:
    """Start a program with ``mpiio-ext run`` outside or inside of mpiexec."""
    run = [sys.executable, "-m", "mpiio_ext", "run", *options, f"--stats={folder / 'stats.jsonl'}", "--"]
    launch = [str(launcher()), "-n", str(RANKS)]
    command = [*run, *launch, *words] if outside else [*launch, *run, *words]
    return run_bounded(command, env=base_environment(), timeout_s=120)


def reports(folder: pathlib.Path) -> list[dict[str, Any]]:
    """Return the statistics of every file that was closed, with the name for the path."""
    lines = json_lines(folder / "stats.jsonl")
    return [line | {"name": pathlib.Path(line["path"]).name} for line in lines if line["kind"] == "file"]


def hints_of(report: dict[str, Any], source: str = FILE) -> dict[str, str]:
    """Return the hints that one source has set."""
    return {name: hint["value"] for name, hint in report["hints"].items() if hint["source"] == source}


@pytest.mark.slow_except("vpicio-run_mpiexec", "s3dio-mpiexec_run", "flashio-run_mpiexec")
@pytest.mark.parametrize("outside", [True, False], ids=["run_mpiexec", "mpiexec_run"])
@pytest.mark.parametrize("name", codes.CODES)
def test_hints_by_file_name(extension: str, tmp_path: pathlib.Path, name: str, outside: bool) -> None:
    """One hints file for all codes; every file gets its sections, and the statistics say so."""
    words = program(name, tmp_path)
    hints = tmp_path / "hints"
    hints.write_text(HINTS, encoding="utf-8")
    launch = run_under(tmp_path, words, outside, ["--hints-file", str(hints)])
    assert name not in VERIFIES_ITSELF or f"{name} verified" in launch.stdout, launch.describe()
    assert "mpiio_ext:" not in launch.stderr, launch.describe()

    found = reports(tmp_path)
    assert {report["name"] for report in found} == {path.name for path in codes.files(name, tmp_path)}
    assert any(report["ranks"] == RANKS for report in found)
    for report in found:
        assert hints_of(report) == EXPECTED[report["name"]], report
        assert report["errors"] == 0
        if report["ranks"] == 1:  # netCDF-C: every rank looks at the file's first bytes to learn its format
            assert name == "climate"
            assert report["collective_writes"] == report["collective_reads"] == report["native_calls"] == 0
        elif EXPECTED[report["name"]].get("mpiox_enable") == "false":
            assert report["collective_writes"] == report["collective_reads"] == report["write_requests"] == 0
            assert report["native_calls"] > 0
            assert report["reason"] == "mpiox_enable=false"
        elif name == "flashio":
            assert report["ranks"] == RANKS
            assert report["collective_writes"] + report["collective_reads"] == report["native_calls"] == 0
            assert report["independent_writes"] + report["independent_reads"] > 0
        else:
            assert report["ranks"] == RANKS
            assert report["collective_writes"] + report["collective_reads"] > 0
            assert report["native_calls"] == report["direct_calls"] == 0
            assert report["partition"] == EXPECTED[report["name"]]["mpiox_partition"]


def test_buffers_and_requests_follow_the_hints(extension: str, tmp_path: pathlib.Path) -> None:
    """BT-IO has one known region per call, so that rounds and request sizes can be computed from the hints."""
    words = program("btio", tmp_path)
    hints = tmp_path / "hints"
    hints.write_text(HINTS, encoding="utf-8")
    run_under(tmp_path, words, True, ["--hints-file", str(hints)])
    n, steps = (int(word) for word in codes.CODES["btio"].small)
    cube_bytes = n**3 * 40
    stripe_bytes, window_bytes, aggregators = 4 * KIB, 16 * KIB, 2
    rounds = 0
    for step in range(steps):
        start, end = step * cube_bytes, (step + 1) * cube_bytes
        middle = round((start + end) / 2 / stripe_bytes) * stripe_bytes  # the nearest stripe boundary
        domains = [(start, middle), (middle, end)]
        assert len(domains) == aggregators
        rounds += max((high - 1) // window_bytes - low // window_bytes + 1 for low, high in domains)
    for report in reports(tmp_path):
        assert report["rounds"] == rounds, report
        sizes = report["request_size_log2"]
        assert sum(sizes[13:]) == 0, f"a request is larger than two stripes: {sizes}"
        requests = report["write_requests"] + report["read_requests"]
        data_bytes = report["write_request_bytes"] + report["read_request_bytes"]
        assert data_bytes == cube_bytes * steps
        # one request per stripe and step: the stripes at a step's ends are requested by both neighbours
        ends = [(step * cube_bytes, (step + 1) * cube_bytes) for step in range(steps)]
        stripes = sum((end - 1) // stripe_bytes - start // stripe_bytes + 1 for start, end in ends)
        assert requests == stripes


def test_command_line_is_stronger_than_the_file(extension: str, tmp_path: pathlib.Path) -> None:
    """``-H`` for one of two files: that hint comes from the command line, all others from the hints file."""
    words = program("vpicio", tmp_path)
    hints = tmp_path / "hints"
    hints.write_text(HINTS, encoding="utf-8")
    options = ["--hints-file", str(hints), "-H", "*particles*:mpiox_partition=transpose", "-H", "*.nc:cb_nodes=1"]
    run_under(tmp_path, words, True, options)
    for report in reports(tmp_path):
        assert hints_of(report, "MPIOX_HINTS") == {"mpiox_partition": "transpose"}
        rest = dict(EXPECTED["particles.h5"])
        del rest["mpiox_partition"]
        assert hints_of(report) == rest
        assert report["partition"] == "transpose"


@pytest.mark.both
def test_hints_of_pnetcdf_are_not_swallowed(extension: str, tmp_path: pathlib.Path) -> None:
    """PnetCDF reads its own hints before it opens the file: from outside they reach it by its variable only."""
    sizes = {}
    hints = "nc_header_align_size=65536"
    for variable in ("", "MPIOX_HINTS", "PNETCDF_HINTS"):
        folder = tmp_path / f"with_{variable}"
        folder.mkdir()
        words = program("s3dio", folder)
        launch = mpi_run(words, 2, env={variable: hints} if variable else {}, preload=True, timeout_s=60)
        sizes[variable] = codes.files("s3dio", folder)[0].stat().st_size
        complaint = f'hint nc_header_align_size cannot reach PnetCDF from here: set PNETCDF_HINTS="{hints}"; ignored'
        assert launch.stderr.count(complaint) == (variable == "MPIOX_HINTS"), launch.stderr
    assert sizes["MPIOX_HINTS"] == sizes[""] < sizes["PNETCDF_HINTS"]


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("flashio", 2),
        ("vpicio", 5),
        *slow(("btio", 4), ("s3dio", 2), ("flashio", 5), ("vpicio", 2), ("ipic3d", 2), ("ipic3d", 5), ("s3dio", 5)),
    ],
)
def test_staged_closes_change_no_byte(extension: str, tmp_path: pathlib.Path, name: str, ranks: int) -> None:
    """Codes that close, open and read again while delegates write: the files are those of the MPI library."""
    found = {}
    for close in ("native", "staged"):
        (folder := tmp_path / close).mkdir()
        hints = "*:mpiox_delegates=2:mpiox_delegate_cache=4m:mpiox_close=staged:mpiox_drain_rate=200k"
        launch = mpi_run(
            program(name, folder),
            ranks,
            env={"MPIOX_HINTS": hints} if close == "staged" else {},
            preload=close == "staged",
            timeout_s=120,
        )
        assert f"{name} verified" in launch.stdout and "mpiio_ext:" not in launch.stderr, launch.describe()
        found[close] = {path.name: path.read_bytes() for path in codes.files(name, folder)}
        assert found[close] and not list(folder.glob(".*")), launch.describe()
    assert found["staged"] == found["native"]


def test_statistics_as_text_name_the_hints(extension: str, tmp_path: pathlib.Path) -> None:
    """What a person reads at close says the same, of the file that is written and of the same file read.

    HDF5 1.14 opens the second with the hints in force in the first; they are listed before.
    """
    words = program("vpicio", tmp_path)
    run = [sys.executable, "-m", "mpiio_ext", "run", "-H", "*.h5:cb_nodes=3", "--stats", "--"]
    launch = run_bounded([*run, str(launcher()), "-n", "2", *words], env=base_environment(), timeout_s=120)
    lines = [line.split() for line in launch.stderr.splitlines() if "cb_nodes" in line]
    assert [line[-2:] for line in lines] == [["cb_nodes=3", "(MPIOX_HINTS)"]] * 2, launch.stderr
    assert lines[0][0] == "hints", launch.stderr
