"""Verification, options, methods, order, results and picture of the bench, without MPI."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from mpiio_ext.bench import kernels
from mpiio_ext.bench.environment import file_system_of
from mpiio_ext.bench.execution.afford import predict
from mpiio_ext.bench.execution.agreement import Watch
from mpiio_ext.bench.execution.case import Case
from mpiio_ext.bench.execution.content import Content
from mpiio_ext.bench.execution.counters import Counted, with_counters
from mpiio_ext.bench.execution.runner import Runner
from mpiio_ext.bench.execution.values import POISON, fill_range, salt_of_run
from mpiio_ext.bench.execution.verify import Fault, check_files, check_memory
from mpiio_ext.bench.interfaces import Interface
from mpiio_ext.bench.interfaces.base import RawReader
from mpiio_ext.bench.interfaces.mpiio import MpiIo
from mpiio_ext.bench.kernels import Sizes
from mpiio_ext.bench.kernels.program import Access
from mpiio_ext.bench.methods import DEFAULT, METHODS, parse_method
from mpiio_ext.bench.options import PRESETS, command
from mpiio_ext.bench.results.files import write_results
from mpiio_ext.bench.results.plot import plot_ratios
from mpiio_ext.bench.results.table import print_table
from mpiio_ext.common.results import Absent, Row, measure, summary, tables, with_ratios
from mpiio_ext.report.load import load
from support import report_results
from support.bench_options import parse

RUN = 2
SIZES = Sizes(file_bytes=3_000_000, blocks_bytes=(4096,))


# ---- verification ----


class Offset(MpiIo):
    """Raw files whose array begins somewhere and that hold more than it, as those of self-describing formats do."""

    def __init__(self, start: int) -> None:
        self.start = start

    def reader(self, path, layout):
        return RawReader(path, {variable.name: self.start for variable in layout.variables})


def make_file(folder: Path, name: str, way: Interface, start: int = 0, form: int = 0):
    pattern = kernels.create_patterns((name,), SIZES, 4)[form]
    content = np.zeros(pattern.extent_bytes, np.uint8)
    fill_range(content, 0)
    content ^= salt_of_run(RUN)
    mask = pattern.mask(0, content.size)
    if mask is not None:
        content[~mask] = 0
    content = content[: pattern.written_end_bytes]
    path = way.path(folder, pattern.files()[0])
    path.write_bytes(b"h" * start + content.tobytes())
    return path, pattern, mask


def check(folder, pattern, way, run=RUN) -> tuple[Fault | None, Fault | None]:
    """Return the first fault of data and the first of what nobody writes, found by three ranks."""
    every = [
        check_files(
            Content(pattern, run), way, folder, pattern.versions("write", way.name), rank=rank, ranks=3, complete=True
        )
        for rank in range(3)
    ]
    return tuple(
        min((f for f in found if f is not None), default=None)
        for found in ([f.data for f in every], [f.foreign for f in every])
    )


FORMS = [(name, form) for name in kernels.PATTERNS for form in range(len(kernels.create_patterns((name,), SIZES, 4)))]


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_right_file_passes_and_each_kind_of_fault_is_found(tmp_path, name, form):
    way = MpiIo()
    path, pattern, mask = make_file(tmp_path, name, way, form=form)
    good = bytearray(path.read_bytes())
    assert check(tmp_path, pattern, way) == (None, None)

    stale, gap = check(tmp_path, pattern, way, run=RUN + 1)
    assert stale is not None
    assert gap is None

    for offset in (0 if mask is None else int(np.flatnonzero(mask)[0]), 1_048_577, len(good) - 1):
        bad = bytearray(good)
        bad[offset] ^= 0x10
        path.write_bytes(bad)
        mismatch, other = check(tmp_path, pattern, way)
        if mask is not None and not mask[offset]:
            mismatch, other = other, mismatch
        assert other is None
        assert mismatch.offset_bytes == offset
        assert f"byte {offset}: expected 0x{good[offset]:02x}" in str(mismatch)
        assert str(mismatch).endswith(f"found 0x{bad[offset]:02x}")

    path.write_bytes(good[:-1])
    short = check(tmp_path, pattern, way)[0]
    assert f"a file of {len(good) - 1} bytes in place of {len(good)}" in str(short) or "the file ends" in str(short)
    cut = check(tmp_path, pattern, Offset(0))[0]
    assert (cut.offset_bytes, "the file ends" in str(cut)) == (len(good) - 1, True)
    path.write_bytes(good + b"\0")
    assert f"a file of {len(good) + 1} bytes" in str(check(tmp_path, pattern, way)[0])
    if mask is not None:
        gap = int(np.flatnonzero(~mask[: len(good)])[-1])
        bad = bytearray(good)
        bad[gap] = 1
        path.write_bytes(bad)
        wrong, mismatch = check(tmp_path, pattern, way)
        assert wrong is None
        assert mismatch.offset_bytes == gap
        assert f"byte {gap}: expected 0x00 (no rank writes this byte), found 0x01" in str(mismatch)


def test_swapped_blocks_are_found(tmp_path):
    way = MpiIo()
    path, pattern, _ = make_file(tmp_path, "interleaved", way)
    content = bytearray(path.read_bytes())
    content[4096:8192], content[8192:12288] = content[8192:12288], content[4096:8192]
    path.write_bytes(content)
    assert 4096 <= check(tmp_path, pattern, way)[0].offset_bytes < 4200


def test_dataset_inside_a_file(tmp_path):
    way = Offset(2048)
    path, pattern, _ = make_file(tmp_path, "block3d", way, start=2048)
    assert check(tmp_path, pattern, way) == (None, None)
    content = bytearray(path.read_bytes())
    content[2048 + 77] ^= 2
    path.write_bytes(content)
    assert check(tmp_path, pattern, way)[0].offset_bytes == 77


@pytest.mark.parametrize("name", ["tiles2d", "btio", "random"])
def test_memory_is_compared_with_its_surroundings(name):
    (pattern,) = kernels.create_patterns((name,), SIZES, 4)
    content, path = Content(pattern, RUN), Path("f")
    access = [step for step in pattern.steps("read", 1, "mpiio") if isinstance(step, Access)][-1]
    memory = content.memory(access)
    poison = POISON ^ salt_of_run(RUN)
    assert memory.size == access.call.memory.extent_bytes
    assert check_memory(content, access, memory, path) is None
    assert (content.poison(access) != memory).sum() == access.call.memory.size_bytes
    holes = np.flatnonzero(memory == poison)
    inside = int(np.flatnonzero(memory != poison)[-5])
    memory[inside] ^= 4
    fault = check_memory(content, access, memory, path)
    assert fault.offset_bytes == content.position(access, inside)
    assert f"byte {fault.offset_bytes} (byte {inside} of the memory): expected 0x{memory[inside] ^ 4:02x}" in str(fault)
    memory[inside] ^= 4
    for outside in holes[:1]:
        assert content.position(access, int(outside)) is None
        memory[outside] ^= 4
        assert f"byte {outside} of the memory, which is no part of" in str(check_memory(content, access, memory, path))


# ---- methods and options ----


def test_methods_have_the_hints_of_their_names(expected):
    names = ["native", "native_tuned", *METHODS, "aligned+stripe_size_io+cb_nodes=2", "native+independent+cb_nodes=2"]
    found = {name: parse_method(name) for name in names}
    ways = {name: f"native: {each.native}, independent: {each.independent}" for name, each in found.items()}
    expected({name: {"way": ways[name], "hints of 6 nodes": each.hints_for(6)} for name, each in found.items()})


@pytest.mark.parametrize(
    "text, message",
    [
        ("group_cylic", "did you mean 'group_cyclic'"),
        ("even+", "bad modifier"),
        ("even+fast", "bad modifier"),
        ("native+stripe_size_io", "bad modifier"),
        ("zzz", "one of native"),
    ],
)
def test_bad_methods(text, message):
    with pytest.raises(ValueError, match=message):
        parse_method(text)


@pytest.mark.parametrize("words", [["-m", "native,auto+mpiox_subfiles=4"], ["-H", "mpiox_subfiles=4"], []])
def test_subfiles_are_refused_before_they_are_called_wrong_data(words, monkeypatch):
    if not words:
        monkeypatch.setenv("MPIOX_HINTS", "*:mpiox_subfiles=4")
    with pytest.raises(click.BadParameter, match="mpiox_subfiles=4: the bench verifies plain files alone"):
        parse(*words)
    monkeypatch.delenv("MPIOX_HINTS", raising=False)
    for none in ("0", "per_node=0"):
        assert parse("-H", f"mpiox_subfiles={none}").hints == {"mpiox_subfiles": none}


def test_defaults():
    options = parse()
    assert options.sizes == Sizes()
    assert options.patterns == tuple(kernels.PATTERNS)
    assert tuple(s.name for s in options.methods) == DEFAULT
    assert not options.methods_given
    assert options.budget_s > 0


def test_quick_yields_to_what_is_given():
    options = parse("--quick", "--size", "1MiB", "-r", "5")
    assert options.sizes.file_bytes == 1 << 20
    assert options.repetitions == 5
    assert options.budget_s == 0
    assert ",".join(s.name for s in options.methods) == PRESETS["quick"]["method"]
    assert not options.methods_given


def test_options_reach_the_sizes():
    options = parse(
        "-b",
        "8,64,4KiB",
        "-w",
        "interleaved,btio",
        "-m",
        "native,even",
        "-H",
        "cb_nodes=2",
        "--stripe-size",
        "1MiB",
        "--stripe-count",
        "3",
        "--steps",
        "7",
        "--ghost",
        "0",
    )
    assert options.sizes.blocks_bytes == (8, 64, 4096)
    assert (options.sizes.steps, options.sizes.ghost) == (7, 0)
    assert options.patterns == ("interleaved", "btio")
    assert options.methods_given
    assert options.hints == {"cb_nodes": "2", "striping_unit": "1048576", "striping_factor": "3"}


@pytest.mark.parametrize(
    "text, size",
    [("4096", 4096), ("64KiB", 65536), ("64k", 65536), ("1.5GiB", 3 << 29), ("2MB", 2_000_000), ("512B", 512)],
)
def test_sizes(text, size):
    assert parse("--size", text).sizes.file_bytes == size


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--size", "many"], "is not a size"),
        (["--size", "0"], "at least one byte"),
        (["--size", "-4"], "is less than 0 B"),
        (["--block", "64,0"], "at least one byte"),
        (["--block", ""], "empty"),
        (["-w", "blok3d"], "mean 'block3d'"),
        (["-i", "pnetcdf9"], "did you mean 'pnetcdf'"),
        (["-i", "adios"], "one of mpiio"),
        (["-m", "evn"], "did you mean 'even'"),
        (["-r", "0"], "repeats"),
        (["--hint", "cb_nodes"], "name=value"),
        (["--nonsense"], "No such option"),
        (["stray"], "No such command"),
        (["--piece", "1"], "at least 4"),
    ],
)
def test_wrong_arguments_are_one_clear_line(arguments, message):
    with pytest.raises(click.ClickException) as caught:
        parse(*arguments)
    assert message in caught.value.format_message()


def test_help_names_every_option_workload_and_method(capsys):
    assert command.main(args=["--help"], standalone_mode=False) == 0
    text = capsys.readouterr().out
    for word in [*kernels.PATTERNS, *METHODS, "--path", "--size", "--output", "--native-limit", "Exit status"]:
        assert word in text


# ---- results ----


def row(strategy: str, operation: str, repetition: int, bandwidth: float, **more) -> Row:
    more |= {"variant": "interleaved_64", "label": "interleaved blocks of 64 B", "order": repetition}
    more |= {"bandwidth_mb_per_s": bandwidth, "bandwidth_total_mb_per_s": bandwidth / 2}
    more |= {"repetition": repetition, "data_s": 0.001 / bandwidth * 1e3}
    return report_results.row("interleaved", strategy, operation, **more)


def rows() -> list[Row]:
    out = []
    for repetition, (native, even) in enumerate([(100, 150), (50, 100), (200, 220)]):
        for operation, factor in (("write", 1), ("read", 2)):
            out.append(row("native", operation, repetition, native * factor))
            out.append(
                row(
                    "even",
                    operation,
                    repetition,
                    even * factor * factor,
                    rounds=3,
                    requests=7,
                    requests_source="extension",
                    collectives_taken_over=4,
                    native_calls=0,
                )
            )
    return with_ratios(out)


def measured(rows):
    """Return the ratios and bandwidths of what was measured."""
    found = {}
    for one in measure(rows):
        ratios = {"ratio": one.ratio, "to the best native": one.ratio_best, "bandwidth": one.bandwidth}
        spreads = {
            name: each and f"{each.median:.4g} ({each.low:.4g} to {each.high:.4g})" for name, each in ratios.items()
        }
        found[f"{one.key.strategy} {one.key.operation}"] = {**spreads, "taken over": one.taken_over}
    return found


def test_ratios_are_formed_inside_a_repetition(expected):
    """The best native is the faster of the two, and without native there is no ratio."""
    two = [row("native", "write", 0, 10.0), row("native_tuned", "write", 0, 20.0), row("even", "write", 0, 30.0)]
    alone = with_ratios([row("even", "write", 0, 5.0)])
    assert summary(measure(alone)[0])["ratio_to_native"] is None
    expected({"three": measured(rows()), "two": measured(with_ratios(two)), "alone": measured(alone)})


def test_files_hold_the_same_rows_and_say_where_they_come_from(tmp_path):
    paths = write_results(
        tmp_path,
        environment={"hosts": ["a"]},
        configuration={"repetitions": 3},
        rows=rows(),
        absent=[Absent(what="HDF5", reason="none")],
        failure=None,
    )
    assert [path.name for path in paths] == ["results.json", "runs.parquet", "summary.parquet"]
    document = json.loads(paths[0].read_text())
    assert document["schema_version"] == 2
    assert document["absent"] == [{"what": "HDF5", "reason": "none"}]
    for path, key in ((paths[1], "runs"), (paths[2], "summary")):
        table = pq.read_table(path)
        assert table.to_pylist() == document[key]
        assert json.loads(table.schema.metadata[b"mpiio_ext.bench.environment"]) == {"hosts": ["a"]}


def test_times_of_measurements_are_kept_and_may_be_missing(tmp_path):
    timed = [
        row("even", "write", number, 5.0, begin_unix_s=begin, end_unix_s=end)
        for number, (begin, end) in enumerate([(1e9, 1e9 + 2), (None, None), (1e9 + 30, 1e9 + 31.5)])
    ]
    columns = summary(measure(timed)[0])
    assert (columns["begin_unix_s"], columns["end_unix_s"]) == (1e9, 1e9 + 31.5)
    paths = write_results(tmp_path, environment={}, configuration={}, rows=timed, absent=[], failure=None)
    assert pq.read_table(paths[1])["end_unix_s"].to_pylist() == [1e9 + 2, None, 1e9 + 31.5]
    (measured,) = load(paths[0]).rows
    assert measured.periods == ((1e9, 1e9 + 2), (1e9 + 30, 1e9 + 31.5))
    document = json.loads(paths[0].read_text())
    for run in document["runs"]:
        del run["begin_unix_s"], run["end_unix_s"]
    paths[0].write_text(json.dumps(document))
    assert load(paths[0]).rows[0].periods == ()


def test_a_watch_does_not_run_backwards(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1000.0)
    watch = Watch()
    monkeypatch.setattr("time.time", lambda: 0.0)
    first = watch.now_unix_s()
    assert 1000.0 == watch.begin_unix_s <= first <= watch.now_unix_s()


def test_empty_results_still_have_their_schema(tmp_path):
    paths = write_results(tmp_path, environment={}, configuration={}, rows=[], absent=[], failure="no space")
    assert pq.read_table(paths[1]).num_rows == 0
    assert "bandwidth_mb_per_s" in pq.read_table(paths[1]).column_names
    assert json.loads(paths[0].read_text())["failure"] == "no space"


def test_every_measured_column_carries_its_unit():
    pure = {
        "rounds",
        "requests",
        "messages",
        "ranks",
        "repetition",
        "repetitions",
        "order",
        "collectives_taken_over",
        "native_calls",
        "files",
        "delegates",
        "delegated_accesses",
        "cache_hits",
        "cache_misses",
        "prefetched_pages",
        "prefetch_used_pages",
        "independents_taken_over",
        "ratio_to_native",
        "ratio_to_best_native",
        "ratio_to_native_min",
        "ratio_to_native_max",
    }
    units = {}
    for table in tables([], {}).values():
        for field in table.schema:
            unit = units[field.name] = field.metadata[b"unit"].decode()
            if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
                assert bool(unit) != (field.name in pure), field.name
    assert {units[name] for name in ("open_s", "io_median_s")} == {"s"}
    assert units["begin_unix_s"] == "s since 1970-01-01 UTC"
    assert (units["data_bytes"], units["bandwidth_min_mb_per_s"]) == ("B", "10^6 B/s")


def test_table_shows_marks_and_notes(expected):
    made = [
        row("native", "write", 0, 10.0, requests=12, requests_source="kernel"),
        row("even", "write", 0, 20.0, collectives_taken_over=0, native_calls=4),
    ]
    made[0] = Row(**{**{n: getattr(made[0], n) for n in Row.__slots__}, "scaled": True})
    text = io.StringIO()
    print_table(Console(file=text, width=132), measure(with_ratios(made)))
    expected("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def test_picture_only_when_there_is_something_to_compare(tmp_path):
    assert plot_ratios(measure(with_ratios([row("native", "write", 0, 1.0)])), tmp_path) == []
    paths = plot_ratios(measure(rows()), tmp_path)
    assert [path.name for path in paths] == ["ratios.svg", "ratios.png"]
    assert paths[0].read_text().startswith("<svg")
    assert paths[1].read_bytes().startswith(b"\x89PNG")


# ---- the runner's order and arithmetic ----


class OneRank:
    """A communicator of one rank, as far as the order of the runs needs one."""

    rank, size = 0, 1

    def bcast(self, value):
        return value


def test_runs_are_interleaved_over_patterns_and_kernels(monkeypatch, tmp_path):
    """Every case in each repetition, the methods one behind the other and rotated; other bytes in every run."""
    seen = []

    def run_once(self, team, case, method):
        seen.append((case.variant, method.name, self._runs))
        return [row(method.name, operation, 0, 1.0) for operation in ("write", "read")]

    monkeypatch.setattr(Runner, "_run_once", run_once)
    monkeypatch.setattr(Runner, "_remove", lambda self, team, case: None)
    monkeypatch.setattr(Runner, "_compare", lambda self, team, case, reference, first: "" if first else "bytes")
    (pattern,) = kernels.create_patterns(("contiguous",), SIZES, 1)
    cases = [
        Case(program=pattern, interface=MpiIo(), sizes=SIZES),
        Case(program=kernels.create("vpic", 1, preset="quick"), interface=MpiIo()),
    ]
    shown: list[str] = []
    runner = Runner(
        comm=OneRank(), folder=tmp_path, methods=[parse_method("auto"), parse_method("even")], advance=shown.append
    )
    for number in range(2):
        for case in cases:
            runner.repetition(case, number)
    assert [run[:2] for run in seen] == [
        ("contiguous", "auto"),
        ("contiguous", "even"),
        ("vpic", "auto"),
        ("vpic", "even"),
        ("contiguous", "even"),
        ("contiguous", "auto"),
        ("vpic", "even"),
        ("vpic", "auto"),
    ]
    of_pattern = [run for variant, _, run in seen if variant == "contiguous"]
    assert len(set(of_pattern)) == 4, "each run of a pattern writes other bytes"
    assert seen[2][2] == seen[3][2] != seen[6][2] == seen[7][2], "methods of a kernel write the same bytes"
    assert [(item.repetition, item.order) for item in runner.rows if item.operation == "read"] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 4),
        (1, 5),
        (1, 6),
        (1, 7),
    ]
    assert [item.compared for item in runner.rows if item.operation == "write"] == ["", "", "", "bytes", *[""] * 4]
    assert len(shown) == 8


@pytest.mark.parametrize(
    "trials, size, seconds",
    [
        ([(100, 1.0)], 400, 4.0),
        ([(100, 1.0), (200, 2.0)], 400, 4.0),
        ([(100, 1.0), (200, 4.0)], 400, 16.0),
        ([(100, 4.0), (200, 1.0)], 400, 2.0),
        ([(100, 1.0), (200, 1000.0)], 400, 1000 * 2**2.5),
    ],
)
def test_native_time_is_extrapolated_by_its_growth(trials, size, seconds):
    assert predict(trials, size) == pytest.approx(seconds)


def counters(**values):
    texts = {"partition": "even", "reason": "asked for"}
    return {**dict.fromkeys(report_results.COUNTERS, 0), "request_size_log2": (0,) * 48, **texts, **values}


def calls(requests):
    return SimpleNamespace(write_requests=requests, write_bytes=100 * requests, read_requests=0, read_bytes=0)


def counted(extension, before=None, after=None):
    """What a rank counted: the extension's statistics, and requests of the system before and after."""
    return Counted(extension=extension, system_calls=tuple(None if n is None else calls(n) for n in (before, after)))


SIZES_OF_REQUESTS = (0, 2, *(0,) * 46)
TWO_PHASE = {"collective_writes": 1, "rounds": 5, "write_requests": 3, "write_request_bytes": 30, "io_s": 0.5}
INDEPENDENT = {"independent_writes": 1, "independent_reads": 2, "write_requests": 3, "read_requests": 4}
MORE = {"independent_s": 0.25, "request_size_log2": SIZES_OF_REQUESTS}
#: Operations, and what the ranks counted; requests come from the system where the library has not worked.
COUNTED = {
    "the library": (
        "write",
        [
            counted(counters(**TWO_PHASE), 0, 9),
            counted(counters(collective_writes=1, rounds=4, write_requests=2, write_request_bytes=20, io_s=0.7), 0, 9),
        ],
    ),
    "a phase that writes and reads": ("both", [counted(counters(**INDEPENDENT, **MORE), 0, 9)] * 2),
    "the system": ("write", [counted(None, 1, 9), counted(None, 2, 4)]),
    "the system, native": ("write", [counted(counters(native_calls=1), *of) for of in ((1, 9), (2, 4))]),
    "nothing": ("write", [counted(None)]),
}


@pytest.mark.parametrize("name", COUNTED)
def test_where_counters_come_from(name, expected):
    operation, ranks = COUNTED[name]
    base = row("even", operation, 0, 1.0)
    found = with_counters(base, ranks)
    changed = {key: getattr(found, key) for key in Row.__slots__ if getattr(found, key) != getattr(base, key)}
    sizes = enumerate(changed.pop("request_size_log2", None) or ())
    expected({**changed, "requests of 2^n B": {power: count for power, count in sizes if count}})


def test_file_system_of_proc():
    assert file_system_of(Path("/proc/self"))[0] == "proc"
