"""The bench as a user runs it: small runs at several numbers of ranks, its messages and its exit statuses."""

from __future__ import annotations

import datetime
import itertools
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mpiio_ext.bench import kernels
from mpiio_ext.bench.compare.launches import ACCESSES, parse_output
from mpiio_ext.bench.compare.peers import HDF5_PATTERNS, HDF5_PROGRAM
from mpiio_ext.bench.methods import METHODS
from support import fuzz, hosts
from support.launch import base_environment, run_bounded
from support.marks import slow

pytestmark = pytest.mark.mpi

BENCH = ["-m", "mpiio_ext.bench"]
PATTERNS = set(kernels.PATTERNS)


@pytest.fixture
def bench(extension, mpi_python, tmp_path):
    """Run the bench in a folder of its own; returns the launch and the results, None when there are none.

    Figures and the page, which take longer than most of these runs, are made where they are looked at.
    """

    def run(ranks, *arguments, program=BENCH, check=True, timeout_s=120, figures=False):
        files = tmp_path / "files"
        files.mkdir(exist_ok=True)
        output = tmp_path / "results"
        given = [] if "--path" in arguments else ["--path", files]
        given += [] if "--output" in arguments else ["--output", output]
        given += [] if figures else ["--no-figures", "--no-page"]
        launch = mpi_python([*program, *given, *arguments], ranks, timeout_s=timeout_s, check=check, cwd=tmp_path)
        path = output / "results.json"
        return launch, json.loads(path.read_text()) if path.exists() else None

    run.files = tmp_path / "files"
    run.output = tmp_path / "results"
    return run


def said_by_bench(launch):
    return [line for line in (launch.stdout + launch.stderr).splitlines() if "mpiio-ext: " in line]


def assert_one_clear_line(launch, status, *words):
    assert not launch.timed_out, launch.describe()
    assert launch.returncode != 0, launch.describe()
    lines = said_by_bench(launch)
    assert len(lines) == 1, launch.describe()
    for word in words:
        assert word in lines[0], launch.describe()
    assert "Traceback" not in launch.stderr, launch.describe()
    assert "Usage:" not in launch.stdout + launch.stderr, launch.describe()
    if "Exit code:" in launch.stderr:
        assert f"Exit code:    {status}" in launch.stderr, launch.describe()


@pytest.mark.parametrize("ranks", [*slow(1), 5, *slow(2, 3, 4)])
def test_every_pattern_under_every_method(bench, ranks):
    # Methods differ in which bytes are whose, which does not depend on the pattern.
    forced = METHODS if fuzz.all_examples() else ["transpose"]
    methods = ["native", "native_tuned", "auto", "direct", *forced, "aligned+stripe_size_io"]
    launch, results = bench(
        ranks,
        "--size",
        "300KiB",
        "--block",
        "4KiB,56",
        "-i",
        "mpiio",
        "-r",
        "1",
        "-m",
        ",".join(methods),
        "--stripe-size",
        "16KiB",
        "--stripe-count",
        "2",
    )
    runs = results["runs"]
    assert {run["workload"] for run in runs} == PATTERNS
    assert [run["strategy"] for run in runs if run["variant"] == "btio" and run["operation"] == "read"] == methods
    variants = {"interleaved": 2, "climate": 4}  # two lengths of blocks; three cases, one of them with memory apart
    assert len(runs) == 2 * len(methods) * sum(variants.get(name, 1) for name in PATTERNS)
    for run in runs:
        assert run["ranks"] == (ranks if run["workload"] != "btio" else {1: 1, 2: 1, 3: 1, 4: 4, 5: 4}[ranks])
        if run["strategy"].startswith("native"):
            assert run["collectives_taken_over"] == 0
            assert run["native_calls"] > 0
        else:
            calls = run["ranks"] * (5 if run["workload"] == "btio" else 1)
            assert run["collectives_taken_over"] == calls, (run["variant"], run["strategy"], run["operation"])
        if run["strategy"] in METHODS:
            assert run["partition"] == run["strategy"], run
            assert run["rounds"] > 0, run
            assert run["requests"] > 0, run
            assert run["requests_source"] == "extension", run
    if ranks in (2, 3, 5):
        assert "take part" in launch.stdout
    assert results["failure"] is None
    assert not list(bench.files.iterdir()), "bench files are left behind"


@pytest.mark.hdf5
@pytest.mark.parametrize("ranks", [4, *slow(1, 2, 3, 5)])
def test_hdf5_variants(bench, ranks):
    launch, results = bench(
        ranks, "--size", "300KiB", "-w", "block3d,btio", "-r", "1", "-m", "native,auto,group_cyclic"
    )
    absent = [item for item in results["absent"] if "HDF5" in item["what"]]
    if absent:
        assert "h5py" in absent[0]["reason"]
        assert "not run: HDF5 variants" in launch.stdout
        pytest.skip(absent[0]["reason"])
    runs = [run for run in results["runs"] if run["interface"] == "hdf5"]
    assert len(runs) == 12
    for run in runs:
        if run["strategy"] != "native":
            assert run["collectives_taken_over"] > 0, run
    assert results["environment"]["versions"]["h5py"]


@pytest.mark.both
def test_results_say_everything(bench):
    launch, results = bench(
        2, "--size", "200KiB", "-w", "contiguous", "-m", "native,even", "-r", "2", "-i", "mpiio", figures=True
    )
    environment = results["environment"]
    for name in (
        "mpi_library",
        "hosts",
        "kernel",
        "cpus_online_count",
        "file_system_type",
        "git_revision",
        "variables",
        "command_line",
        "versions",
    ):
        assert name in environment
    assert environment["ranks"] == 2
    assert "mpiio_ext.bench" in environment["command_line"]
    assert results["configuration"]["strategies"]["native"] == {"mpiox_enable": "false"}
    assert [row["repetitions"] for row in results["summary"]] == [2] * 4
    assert pq.read_table(bench.output / "runs.parquet").num_rows == len(results["runs"]) == 8
    orders = [(run["repetition"], run["strategy"]) for run in results["runs"] if run["operation"] == "write"]
    assert orders == [(0, "native"), (0, "even"), (1, "even"), (1, "native")], "the order rotates"
    started = datetime.datetime.fromisoformat(environment["started"]).timestamp()
    in_order = sorted(results["runs"], key=lambda run: run["begin_unix_s"])
    assert [(run["order"], run["operation"]) for run in in_order] == [
        (run["order"], run["operation"]) for run in results["runs"]
    ], "one after the other"
    for run, following in itertools.pairwise(in_order):
        assert started <= run["begin_unix_s"] < run["end_unix_s"]
        assert run["end_unix_s"] <= following["begin_unix_s"] + 0.1, "but for a clock that is set a little"
        parts = sum(run[name] for name in ("open_s", "view_s", "data_s", "close_s"))
        assert run["end_unix_s"] - run["begin_unix_s"] >= parts - 1e-3, "from before opening to after closing"
    assert (bench.output / "ratios.svg").exists()
    assert "× native" in launch.stdout
    assert "\x1b" not in launch.stdout + launch.stderr, "no colours and no progress without a terminal"


@pytest.mark.slow
def test_native_size_is_marked(bench):
    launch, results = bench(
        2, "--size", "1MiB", "--native-size", "300KiB", "-w", "interleaved", "-b", "64", "-r", "1", "-m", "native,even"
    )
    by_strategy = {run["strategy"]: run for run in results["runs"]}
    assert by_strategy["native"]["scaled"]
    assert by_strategy["native"]["file_bytes"] < by_strategy["even"]["file_bytes"] == 1 << 20
    assert not by_strategy["even"]["scaled"]
    assert "native*" in launch.stdout


def test_slow_native_is_run_smaller(bench):
    _, results = bench(
        2,
        "--size",
        "4MiB",
        "--native-limit",
        "0.000001",
        "-w",
        "interleaved",
        "-b",
        "64",
        "-r",
        "1",
        "-m",
        "native,even",
    )
    sizes = {run["strategy"]: run["file_bytes"] for run in results["runs"]}
    assert sizes["native"] < sizes["even"]


def test_budget_ends_the_repetitions(bench):
    launch, results = bench(2, "--size", "100KiB", "--budget", "0.001", "-w", "contiguous", "-m", "native,even")
    assert {run["repetition"] for run in results["runs"]} == {0}
    assert "not run: 2 of 3 repetitions" in launch.stdout


@pytest.mark.slow
def test_default_output_folder(extension, mpi_python, tmp_path):
    mpi_python([*BENCH, "--quick", "--size", "100KiB", "-w", "contiguous", "-r", "1"], 2, cwd=tmp_path)
    (folder,) = (tmp_path / "bench-results").iterdir()
    assert {path.name for path in folder.iterdir()} >= {"results.json", "runs.parquet", "summary.parquet", "ratios.png"}


# ---- errors ----


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--size", "huge"], ["--size", "not a size"]),
        (["-w", "nothing"], ["--workload", "unknown name"]),
        *slow(
            (["-m", "evn"], ["--method", "did you mean 'even'"]),
            (["--bad-option"], ["No such option"]),
            (["--path", "/nonexistent/folder"], ["/nonexistent/folder", "no such folder"]),
            (["--path", "/proc"], ["/proc", "cannot write there"]),
            (["--path", "/dev/null"], ["/dev/null", "not a folder"]),
            (["--output", "/proc/results"], ["--output", "cannot write there"]),
            (["--size", "4000TiB", "-w", "contiguous"], ["B needed", "B free"]),
            (["--size", "10B"], ["--size", "too few"]),
            (["-H", "cb_nodes=x"], ["--hint", "bad value"]),
        ),
        (["-w", "random", "-i", "hdf5", "--size", "1MiB"], ["mpiio-ext: "]),
    ],
)
def test_wrong_argument_or_path(bench, arguments, words):
    launch, _ = bench(2, *arguments, check=False, timeout_s=60)
    assert_one_clear_line(launch, 2, *words)


def test_help_is_printed_once(extension, mpi_python, tmp_path):
    launch = mpi_python([*BENCH, "--help"], 3, cwd=tmp_path)
    assert launch.stdout.count("Usage:") == 1
    assert "--native-limit" in launch.stdout


SPOILED = """
import mpiio_ext
import sys
from mpi4py import MPI
from mpiio_ext.bench import __main__
from mpiio_ext.bench.interfaces.mpiio import MpiIoFile

kind = {kind!r}
close, access_all = MpiIoFile.close, MpiIoFile.access_all

def spoil_file(file):
    close(file)
    if file.where.mode == "write" and "{method}" in str(file.where.hints) and MPI.COMM_WORLD.rank == 0:
        with open(file.where.path, "r+b") as file:
            file.seek({offset})
            file.write({byte!r})

def spoil_memory(file, requests):
    access_all(file, requests)
    if not requests[0].access.write and MPI.COMM_WORLD.rank == 1:
        requests[0].memory[10] ^= 2

def fail_on_one_rank(file, requests):
    access_all(file, requests)
    if MPI.COMM_WORLD.rank == 2:
        raise OSError(28, "No space left on device")

if kind == "file":
    MpiIoFile.close = spoil_file
elif kind == "memory":
    MpiIoFile.access_all = spoil_memory
elif kind == "error":
    MpiIoFile.access_all = fail_on_one_rank
__main__.main(sys.argv[1:])
"""


def spoiled(kind, *, method="", offset=1234, byte=b"\0"):
    return SPOILED.format(kind=kind, method=method, offset=offset, byte=byte)


def test_wrong_file_is_named(bench, script):
    program = script(spoiled("file", method="cb_nodes"))
    launch, results = bench(
        3,
        "--size",
        "300KiB",
        "-w",
        "contiguous",
        "-m",
        "native,native_tuned",
        "-r",
        "1",
        program=[program],
        check=False,
    )
    assert_one_clear_line(
        launch,
        3,
        "contiguous-mpiio.dat",
        "byte 1234:",
        "expected 0x",
        "found 0x00",
        "native_tuned, phase write wrote wrong data",
    )
    assert {run["strategy"] for run in results["runs"]} == {"native"}, "what was measured before is kept"
    assert "wrong data" in results["failure"]
    assert list(bench.files.glob("*/contiguous-mpiio.dat")), "the wrong file is left for inspection"


def test_bytes_that_nobody_writes_are_forgiven_only_to_native(bench, script):
    arguments = ("--size", "300KiB", "-w", "tiles2d", "-r", "1")
    program = script(spoiled("file", method="mpiox_enable", offset=0, byte=b"x"))
    launch, results = bench(2, *arguments, "-m", "native", program=[program])
    assert all(run["gaps_written"] for run in results["runs"])
    assert "native°" in launch.stdout
    launch, _ = bench(2, *arguments, "-m", "even", program=[program], check=False)
    assert_one_clear_line(
        launch,
        3,
        "byte 0:",
        "0x00 (no rank writes this byte)",
        "found 0x78",
        "even, phase write wrote what no rank wrote",
    )


def test_native_must_be_native(extension, mpi_python, tmp_path):
    launch = mpi_python(
        [
            *BENCH,
            "--path",
            tmp_path,
            "--output",
            tmp_path / "o",
            "--size",
            "100KiB",
            "-w",
            "contiguous",
            "-m",
            "native",
            "-r",
            "1",
        ],
        2,
        env={"MPIOX_HINTS": "*:mpiox_enable=true"},
        check=False,
    )
    assert_one_clear_line(launch, 1, "the extension was active under 'native'", "MPIOX_HINTS")


def test_wrong_read_is_named(bench, script):
    program = script(spoiled("memory"))
    launch, _ = bench(
        3, "--size", "300KiB", "-w", "contiguous", "-m", "native", "-r", "1", program=[program], check=False
    )
    # rank 1 of 3 reads the segment of rank 2
    assert_one_clear_line(
        launch,
        3,
        "native, phase read read wrong data",
        f"byte {2 * (300 * 1024 // 24) * 8 + 10} (byte 10 of the memory):",
        "found by rank 1",
    )


@pytest.mark.parametrize("ranks", [3, *slow(5)])
def test_error_of_one_rank_ends_all(bench, script, ranks):
    program = script(spoiled("error"))
    workload = "contiguous" if ranks == 3 else "btio"
    launch, results = bench(
        ranks, "--size", "300KiB", "-w", workload, "-m", "native", "-r", "1", program=[program], check=False
    )
    assert_one_clear_line(launch, 1, "No space left on device", "rank 2, 1 of")
    assert results["runs"] == []
    assert not list(bench.files.iterdir()), "bench files are left behind"


# ---- the micro-benchmark and compare ----


@pytest.fixture
def benchmark(extension, mpi, tmp_path):
    """Run the micro-benchmark on 3 ranks; returns what it printed, one dictionary per line."""
    program = Path(extension).parent.parent / "bin" / "mpiio_bandwidth"

    def run(*arguments, preload=True, check=True):
        launch = mpi([program, "--file", tmp_path / "k", *map(str, arguments)], 3, preload=preload, check=check)
        assert not (tmp_path / "k").exists() or not check, "the micro-benchmark's file is left behind"
        return launch, [json.loads(line) for line in launch.stdout.splitlines() if line.startswith("{")]

    return run


@pytest.mark.parametrize("access", ACCESSES)
def test_benchmark_accesses(benchmark, access):
    for pattern in ("inter", "random", "contiguous"):
        _, records = benchmark(
            "--pattern",
            pattern,
            "--block",
            24,
            "--bytes",
            72_000,
            "--access",
            access,
            "--repeats",
            2,
            "--sync",
            "--time-limit",
            50,
        )
        assert [(record["access"], record["wrong_bytes"], record["bytes"]) for record in records] == [
            (access, 0, 72_000)
        ] * 2


@pytest.mark.parametrize("calls", ["whole", *slow("small")])
def test_benchmark_independent_calls(benchmark, calls):
    """One call a rank or one a piece, through the library and past it: the same bytes, and the close is in the sum."""
    common = ["--block", 24, "--bytes", 72_000, "--access", "independent", "--calls", calls]
    least_bytes = {"inter": 72_000, "contiguous": 72_000, "blocks3d": 64_000, "random_gaps": 40_000}
    for hint in ("mpiox_enable=true", "mpiox_enable=false"):
        for pattern, least in least_bytes.items():
            _, (record,) = benchmark("--pattern", pattern, *common, "--hint", hint)
            assert (record["calls"], record["wrong_bytes"]) == (calls, 0)
            assert least <= record["bytes"] <= (68_000 if pattern == "random_gaps" else least)
            assert 0 < record["write_close_s"] + record["read_close_s"] < record["open_close_s"]
    launch, _ = benchmark("--calls", calls, "--access", "collective", check=False)
    assert ("--calls small goes with independent" in launch.stderr) == (calls == "small")


@pytest.mark.both
def test_benchmark_memory(benchmark):
    """The claim at small scale: the same at 300 pieces and at 3 million, at most the collective buffers and 2 MiB."""
    growth = []
    for block in (10_000, 1):
        _, (record,) = benchmark(
            "--pattern",
            "inter",
            "--block",
            block,
            "--bytes",
            3_000_000,
            "--hint",
            "cb_nodes=1",
            "--hint",
            "cb_buffer_size=524288",
        )
        assert record["memory_growth_bytes"] <= 2 * 524_288 + (2 << 20)
        growth.append(record["memory_growth_bytes"])
    assert abs(growth[0] - growth[1]) < 400_000


def test_benchmark_refuses_an_unknown_access(benchmark):
    launch, records = benchmark("--access", "some", check=False)
    assert launch.returncode != 0
    assert "unknown access" in launch.stderr
    assert not records


def run_tool(tmp_path, *arguments):
    """Run `mpiio-ext bench` as a tool that launches by itself; returns the launch and its JSON."""
    files = tmp_path / "files"
    files.mkdir()
    command = [
        sys.executable,
        *BENCH,
        arguments[0],
        "--path",
        str(files),
        "--json",
        "-o",
        str(tmp_path / "r.json"),
        "--plot",
        str(tmp_path / "r.svg"),
        *arguments[1:],
    ]
    launch = run_bounded(command, env=base_environment(), timeout_s=400, cwd=tmp_path)
    assert not list(files.iterdir()), "files are left behind"
    assert (tmp_path / "r.svg").read_text().startswith("<svg")
    return launch, json.loads((tmp_path / "r.json").read_text())


def test_compare_quick(extension, family, tmp_path):
    launch, document = run_tool(
        tmp_path,
        "compare",
        "--quick",
        "--nodes",
        "2",
        "--access",
        "independent",
        "--size",
        "1048576",
        "--repeats",
        "1",
        "--pattern",
        "inter64",
    )
    assert (document["environment"]["access"], document["environment"]["pretended_nodes"]) == ("independent", 2)
    assert "independent bandwidth" in launch.stdout
    assert "2 pretended nodes" in launch.stdout
    assert [(row["pattern"], row["op"]) for row in document["results"]] == [
        ("inter64", operation) for operation in ("write", "rewrite", "read")
    ]
    for row in document["results"]:
        assert row["ours"] == f"ours_{family}"
        assert {row["ours"], "raw"} <= set(row["present"]) == set(row["mbytes_per_s"]), row["absent"]
        assert row["ratio_native"] > 0
        assert row["ratio_raw"] > 0
        assert row["memory_growth_bytes"][row["ours"]] > 0


@pytest.mark.parametrize("raw", [False, True])
def test_program_of_hdf5(extension, mpi, tmp_path, raw, parallel_h5py):
    """Rows and blocks of an odd number of ranks, under the library; the second write is what is read."""
    for pattern in HDF5_PATTERNS:
        words = ["--pattern", pattern, "--bytes", "300000", "--repeats", "2", "--rewrite", "--file", tmp_path / "k"]
        launch = mpi([sys.executable, HDF5_PROGRAM, *words, *(["--raw"] if raw else [])], 3, preload=not raw)
        records = parse_output(launch.stdout)
        assert [(one["repetition"], one["wrong_bytes"]) for one in records] == [(0, 0), (1, 0)]
        assert all(200_000 < one["bytes"] <= 300_000 for one in records)
        assert all(one[f"{name}_s"] > 0 for one in records for name in ("write", "rewrite", "read", "open_close"))
    assert not list(tmp_path.iterdir()), "the program's file is left behind"


def test_compare_on_hosts(extension, family, tmp_path):
    hosts.require()
    command = [
        sys.executable,
        *BENCH,
        "compare",
        "--quick",
        "--hosts",
        "2",
        "--ranks-per-host",
        "1",
        "--size",
        "4194304",
        "--repeats",
        "1",
        "--pattern",
        "inter64",
        "--json",
    ]
    launch = run_bounded(command, env=base_environment(), timeout_s=400, cwd=tmp_path)
    document = json.loads(launch.stdout)
    assert document["environment"]["hosts"] == 2
    assert "bytes sent over the network" in launch.stderr
    ours = f"ours_{family}"
    for row in document["results"]:
        assert row["cross_bytes"][ours] == {"even": 2 << 20, "least": 2 << 20}, "half of the data is of the other host"
        assert row["sent_bytes"][ours] >= 2 << 20, "it went over the network"
        assert row["ratio_sent_cross"][ours] < 1.5
        assert "raw" not in row["sent_bytes"]
