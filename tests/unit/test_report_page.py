"""The page of `mpiio-ext bench report`: well-formed, self-contained, small, and true to its input."""

from __future__ import annotations

import json
import shlex
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.bench.options import command as bench_command
from mpiio_ext.bench.results.files import write_results
from mpiio_ext.common.results import Absent, Row, Spread, measure, with_ratios
from mpiio_ext.report.baseline import compare
from mpiio_ext.report.load import load, load_all, rows_of
from mpiio_ext.report.page import MOST_BYTES, render
from mpiio_ext.report.reproduce import command
from mpiio_ext.report.verdict import judge, kinds, sentences, tally, worth
from mpiio_ext.report.words import bandwidth, done_by_extension, histogram_words, ratio
from support import report_results as results
from support.html_page import Page


def page_of(
    *documents: dict, folder: Path, title: str = "title", baseline: dict | None = None, **more
) -> tuple[Page, str]:
    paths = [results.write(folder / f"set{k}" / "results.json", document) for k, document in enumerate(documents)]
    sets, peers = load_all(paths)
    old = load_all([results.write(folder / "old" / "results.json", baseline)])[0] if baseline else []
    html = render(sets, peers, title=title, comparison=compare(old, sets) if old else None, **more).text
    return Page(html), html


def tables(page: Page, first: str) -> list[list[list[str]]]:
    """Return the tables whose first column is called so."""
    return [rows for rows in page.of_class("plain") if rows[0][0] == first]


def speeds_of(page: Page) -> list[list[list[str]]]:
    """Return the tables of bandwidths, one of each case."""
    return [rows for rows in tables(page, "operation") if rows[0][2] == "MB/s"]


def small_document(**more) -> dict:
    runs = [
        results.run(strategy, operation, repetition, 100.0 * factor * (1 + repetition / 10), ratio_to_native=factor)
        for strategy, factor in (("native", 1.0), ("native_tuned", 0.9), ("auto", 4.0), ("even", 0.5))
        for operation in ("write", "read")
        for repetition in range(3)
    ]
    return results.document(runs, **more)


# ---- form ----


@pytest.mark.parametrize(
    "documents, baseline",
    [
        ((small_document(),), None),
        ((small_document(), small_document(schema=2)), None),
        ((results.large_document(kernels=5, repetitions=2),), None),
        ((results.COMPARE,), None),
        ((small_document(), results.COMPARE), small_document()),
        ((results.document([results.run("auto")]),), None),
        ((results.document([results.run("native", environment={})], environment={}, configuration={}),), None),
    ],
)
def test_page_is_well_formed_and_needs_nothing_else(documents, baseline, tmp_path):
    page, html = page_of(*documents, folder=tmp_path, baseline=baseline)
    assert page.problems == []
    assert html.startswith("<!DOCTYPE html>")
    assert page.elements["h1"] == 1
    assert not {"script", "img", "link", "iframe", "object", "embed"} & set(page.elements)


def test_thirty_kernels_under_eight_methods_stay_below_a_megabyte(tmp_path):
    document = results.large_document(kernels=30, repetitions=5)
    assert len(document["runs"]) == 30 * 8 * 2 * 5
    page, html = page_of(document, folder=tmp_path)
    assert page.problems == []
    assert len(html.encode()) < MOST_BYTES <= 1e6
    assert "Left out" not in html
    assert len(speeds_of(page)) == 30
    assert sum(len(rows) - 1 for rows in speeds_of(page)) == 480


@pytest.mark.parametrize(
    "kernels, left_out, speeds, explained",
    [
        (50, "times, explanations and sizes of requests of methods other than native and auto", 8, 2),
        (
            90,
            "times, explanations and sizes of requests of methods other than native and auto; bandwidths of methods "
            "other than native and auto",
            2,
            2,
        ),
    ],
)
def test_a_page_that_would_be_larger_leaves_details_out_and_says_so(kernels, left_out, speeds, explained, tmp_path):
    document = results.large_document(kernels=kernels, repetitions=2)
    sets, _ = load_all([results.write(tmp_path / "results.json", document)])
    made = render(sets, [], title="t")
    page = Page(made.text)
    assert page.problems == []
    assert len(made.text.encode()) <= MOST_BYTES
    assert made.left_out == left_out
    assert left_out in page.text
    assert {len(rows) - 1 for rows in speeds_of(page)} == {2 * speeds}
    assert {len(rows) - 1 for rows in tables(page, "operation") if rows[0][2] != "MB/s"} == {2 * explained}
    (matrix,) = tables(page, "× native")
    assert sum(len(cells) - 1 for cells in matrix[1:]) == kernels * 2 * 7


def test_phone_print_and_dark(tmp_path):
    _, html = page_of(small_document(), folder=tmp_path)
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in html
    style = html.split("<style>")[1].split("</style>")[0]
    assert style.count("{") == style.count("}")
    for rule in (
        "@media print",
        "print-color-adjust: exact",
        "details::details-content",
        "prefers-color-scheme: dark",
        "@media screen and (max-width",
        "overflow-x: auto",
    ):
        assert rule in style


# ---- values ----


def bench_rows() -> list[Row]:
    out = []
    for k, run in enumerate(results.large_document(kernels=6, repetitions=3)["runs"]):
        record = run | {"order": k, "ratio_to_native": None, "ratio_to_best_native": None}
        record["request_size_log2"] = tuple(record["request_size_log2"]) if record["request_size_log2"] else None
        out.append(Row(**record))
    return with_ratios(out)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[list[Row], Path]:
    """Rows that the bench itself wrote."""
    folder = tmp_path_factory.mktemp("bench")
    rows = bench_rows()
    write_results(
        folder,
        environment=results.ENVIRONMENT,
        configuration=results.CONFIGURATION,
        rows=rows,
        absent=[Absent(what="HDF5 of s3d", reason="serial h5py")],
        failure=None,
    )
    return rows, folder


def test_rows_are_those_of_the_bench(written):
    rows, folder = written
    read = load(folder).rows
    assert len(read) > 90
    assert list(read) == measure(rows)


def test_tables_hold_the_input(written):
    rows, folder = written
    sets, _ = load_all([folder])
    page = Page(render(sets, [], title="t").text)
    assert page.problems == []
    summaries = measure(rows)
    methods = list(dict.fromkeys(row.key.strategy for row in summaries))
    by_place: dict[tuple, dict] = {}
    for row in summaries:
        by_place.setdefault(row.key.place, {})[row.key.strategy] = row

    (matrix,) = tables(page, "× native")
    assert matrix[0][1:] == methods[1:]
    assert len(matrix) - 1 == len(by_place)
    for cells, group in zip(matrix[1:], by_place.values(), strict=True):
        for method, cell in zip(methods[1:], cells[1:], strict=True):
            row = group[method]
            low, high = (f"{value:.2f}" for value in (row.ratio.low, row.ratio.high))
            symbol = {"faster": "▲", "level": "≈", "slower": "▼"}[judge(row.ratio)]
            assert cell == f"{symbol} {ratio(row.ratio.median)} {low}–{high}"

    lines = [cells for rows in speeds_of(page) for cells in rows[1:]]
    for cells, row in zip(lines, [row for group in by_place.values() for row in group.values()], strict=True):
        assert cells[1] == row.key.strategy
        assert cells[2].split()[0] == bandwidth(row.bandwidth.median)
        assert ratio(row.ratio.median) in cells[3]


def test_what_was_not_run_and_what_failed_is_told(tmp_path):
    page, _ = page_of(
        small_document(absent=[{"what": "HDF5 variants", "reason": "serial h5py"}], failure="wrong data at offset 17"),
        folder=tmp_path,
    )
    assert "HDF5 variants: serial h5py" in page.text
    assert "wrong data at offset 17" in page.text


def test_footnotes_are_those_in_use(tmp_path, expected):
    runs = [
        results.run("native", scaled=True, gaps_written=True, requests_source="", ratio_to_native=1.0),
        results.run("even", collectives_taken_over=0, native_calls=4, ratio_to_native=1.5),
    ]
    documents = {"small": small_document(), "scaled": results.document(runs)}
    pages = {name: page_of(document, folder=tmp_path / name) for name, document in documents.items()}
    marks = {name: [mark for mark in "~*°!" if f"<dt>{mark}<" in html] for name, (_, html) in pages.items()}
    expected({"marks": marks, "ratios": tables(pages["scaled"][0], "× native")})
    assert "passed every call on to the MPI library" in pages["scaled"][0].text


def test_peers_of_compare(tmp_path, expected):
    page, _ = page_of(results.COMPARE, folder=tmp_path)
    expected(tables(page, "pattern"))
    assert "OMPIO: took more than 20 s" in page.text


def test_comparison_table(tmp_path, expected):
    new = small_document()
    for run in new["runs"]:
        if run["strategy"] == "auto":
            run["bandwidth_mb_per_s"] *= 0.5
    page, html = page_of(new, folder=tmp_path, baseline=small_document(), limit=0.9)
    expected(tables(page, "row"))
    assert "the other way round" in html


# ---- escaping ----


HOSTILE = "<script>alert(1)</script>\"'&amp;<img src=http://x onerror=y></style></details>\ud800"


def test_nothing_from_the_results_becomes_markup(tmp_path):
    names = ("workload", "variant", "label", "interface", "operation", "phase", "partition", "reason", "compared")
    run = results.run("auto", ratio_to_native=2.0, **dict.fromkeys(names, HOSTILE))
    other = run | {"strategy": HOSTILE}
    document = results.document(
        [run, other],
        failure=HOSTILE,
        absent=[{"what": HOSTILE, "reason": HOSTILE}],
        environment={
            HOSTILE: HOSTILE,
            "mpi_library": HOSTILE,
            "variables": {HOSTILE: HOSTILE},
            "path": HOSTILE,
            "versions": {HOSTILE: HOSTILE},
            "hosts": [HOSTILE],
        },
        configuration={
            "sizes": {HOSTILE: HOSTILE},
            "strategies": {HOSTILE: {HOSTILE: HOSTILE}},
            "hints": {HOSTILE: HOSTILE},
            "workloads": {HOSTILE: {HOSTILE: HOSTILE}},
        },
    )
    peers = json.loads(json.dumps(results.COMPARE))
    peers["peers"]["ompio"] = HOSTILE
    peers["results"][0]["pattern"] = HOSTILE
    page, html = page_of(document, peers, folder=tmp_path, title=HOSTILE, baseline=document)
    assert page.problems == []
    assert not {"script", "img"} & set(page.elements)
    assert "<script>alert" not in html
    assert page.text.count("<script>alert(1)</script>") > 20
    assert HOSTILE.split("<")[1] not in page.raw


# ---- reproducing ----


def words_of(row_runs: list[dict], **configuration) -> list[str]:
    (row,) = measure([load_run(run) for run in row_runs])
    return shlex.split(command(results.ENVIRONMENT, results.CONFIGURATION | configuration, row))


def load_run(record: dict):
    (row,) = rows_of([record])
    return row


def test_command_of_a_pattern_is_one_that_the_bench_understands():
    words = words_of([results.run("group_cyclic+cb_nodes=2")])
    start = words.index("mpirun")
    assert words[:start] == ["MPIOX_RANKS_PER_NODE=2", "OMPI_MCA_io=romio321"]
    assert words[start : start + 6] == ["mpirun", "-n", "4", "python", "-m", "mpiio_ext.bench"]
    options = bench_command.main(args=words[start + 6 :], standalone_mode=False)
    assert options.patterns == ("interleaved",)
    assert options.sizes.file_bytes == 8388608
    assert options.sizes.blocks_bytes == (512,)
    assert options.interfaces == ("mpiio",)
    assert [strategy.name for strategy in options.methods] == ["native", "group_cyclic+cb_nodes=2"]
    assert options.hints == {"cb_nodes": "2"}
    assert str(options.path) == "/scratch/with space"


@pytest.mark.parametrize(
    "workload, option, value",
    [
        ("contiguous", "transfer_bytes", 4096),
        ("tiles2d", "ghost", 7),
        ("btio", "steps", 3),
        ("random", "seed", 9),
        ("random", "piece_bytes", 77),
    ],
)
def test_sizes_on_which_a_pattern_depends_are_in_its_command(workload, option, value):
    sizes = results.CONFIGURATION["sizes"] | {option: value}
    words = words_of(
        [results.run("auto", workload=workload, variant=workload)], sizes=sizes, repetitions=5, native_limit_s=0.5
    )
    options = bench_command.main(args=words[words.index("mpiio_ext.bench") + 1 :], standalone_mode=False)
    assert getattr(options.sizes, option) == value
    assert options.repetitions == 5
    assert options.native_limit_s == 0.5


def test_command_of_a_kernel():
    words = words_of([results.run("even", kind="kernel", workload="flash", variant="flash", interface="pnetcdf")])
    tail = words[words.index("mpiio_ext.bench") + 1 :]
    assert tail[:8] == ["--kernel", "flash", "--scale", "0.25", "-i", "pnetcdf", "-m", "native,even"]
    words = words_of([results.run("native", kind="kernel", workload="bt", variant="bt")])
    tail = words[words.index("mpiio_ext.bench") + 1 :]
    assert tail[:8] == ["--kernel", "bt", "--class", "A", "-i", "mpiio", "-m", "native"]


# ---- words and verdict ----


def test_words_of_what_was_done(expected):
    single = {"collectives_taken_over": 0, "independents_taken_over": 1, "native_calls": 2, "requests": None}
    runs = {
        "collective": results.run("even", messages=10, message_bytes=20480),
        "single": results.run("auto", **single, rounds=0, partition="", reason=""),
        "native": results.run("native"),
    }
    expected({name: done_by_extension(*measure([load_run(run)])) for name, run in runs.items()})


def test_words_of_a_histogram():
    counts = [0] * 48
    counts[0], counts[12], counts[20] = 1, 2000, 30
    assert histogram_words(counts) == "1 × 1 B, 2,000 × 4 KiB, 30 × 1 MiB"
    assert histogram_words([0] * 48) == ""


def shown_ratio(value: float) -> float:
    return float(f"{value:.2f}")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["native", "auto", "even"]),
            st.sampled_from([True, False, None]),
            st.lists(st.floats(0.01, 100), min_size=1, max_size=4),
        ),
        max_size=12,
    )
)
def test_tally_counts_what_it_says(cases):
    runs = [
        load_run(
            results.run(
                strategy, repetition=k, variant=f"v{number}", noncontiguous=noncontiguous, ratio_to_native=value
            )
        )
        for number, (strategy, noncontiguous, ratios) in enumerate(cases)
        for k, value in enumerate(ratios)
    ]
    found = {item.title: item for item in tally(measure(runs))}
    ours = [case for case in cases if case[0] != "native"]
    default = [case for case in ours if case[0] == "auto"]
    assert len(found) == bool(default) + (len(default) < len(ours))
    for title, chosen in (("auto, the default method", default), ("every method of the extension", ours)):
        if title not in found:
            continue
        item = found[title]
        assert len(item.rows) == len(chosen)
        faster, level, slower, unjudged = map(item.count, ("faster", "level", "slower", "not judged"))
        assert unjudged == sum(len(ratios) < 3 for _, _, ratios in chosen)
        shown = [
            sorted(map(shown_ratio, (*ratios, statistics.median(ratios))))
            for _, _, ratios in chosen
            if len(ratios) >= 3
        ]
        assert faster <= sum(ratios[0] > 1 for ratios in shown)
        assert slower <= sum(ratios[-1] < 1 for ratios in shown)
        assert faster + level + slower + unjudged == len(item.rows)
        often = [(noncontiguous, ratios) for _, noncontiguous, ratios in chosen if len(ratios) >= 3]
        judged = [(noncontiguous, statistics.median(ratios)) for noncontiguous, ratios in often]
        rounds = [statistics.median(each) for each in zip(*(ratios for _, ratios in often), strict=False)]
        assert item.rounds == (Spread.of(rounds) if rounds else None)
        told, medians = sentences(item), [median for noncontiguous, median in judged if noncontiguous]
        assert told[0] == (
            f"{faster:,} of {len(chosen):,} rows are faster than native beyond their noise, {slower:,} slower; of "
            f"{level:,} the noise is larger than the difference."
        )
        assert any("not judged" in line for line in told) == (unjudged > 0)
        median = f"median gain {ratio(statistics.median(medians))}×" if medians else ""
        goal = sum(shown_ratio(value) >= 1.3 for value in medians)
        assert [line for line in told if line.startswith("Noncontiguous")] == (
            [f"Noncontiguous access: {median}; the medians of {goal} of {len(medians)} judged rows reach 1.3×."]
            if medians
            else []
        )
        ends = dict(line.split(" row: ", 1) for line in told if " row: " in line)
        assert ("Worst" in ends) == bool(judged) and set(ends) <= {"Worst", "Best"}
        for name, end in (("Worst", min), ("Best", max)):
            assert name not in ends or f": {ratio(end(median for _, median in judged))}× (" in ends[name]


@pytest.mark.parametrize(
    "figures, word",
    [
        ([9.0], "not judged"),
        ([0.1, 0.1], "not judged"),
        ([1.3, 1.4, 1.5], "faster"),
        ([1.05, 1.1, 1.9], "level"),
        ([0.9, 1.1, 1.1], "level"),
        ([1.0, 1.0, 1.0], "level"),
        ([0.5, 0.52, 0.53], "slower"),
        ([0.5, 0.9, 0.99], "level"),
        ([1.004, 1.5, 1.5], "level"),
        ([0.9, 0.9, 0.996], "level"),
        ([0.9, 0.9, 0.994], "slower"),
        ([1.9, 2.0, 3.0], "faster"),
        ([1.9, 2.0, 3.9], "level"),
    ],
)
def test_judgment_against_native(figures, word):
    assert judge(Spread.of(figures)) == word


def row_of(variant: str, ratios: Sequence[float], **said: object) -> list[Row]:
    return [
        load_run(results.run("auto", variant=variant, repetition=k, ratio_to_native=value, **said))
        for k, value in enumerate(ratios)
    ]


#: A busy machine: no row is faster beyond its own noise, but their median in each round is.
NOISY = {"a": [3.0, 9.0, 2.5], "b": [8.5, 2.0, 4.0], "c": [1.2, 4.1, 5.0], "d": [3.5, 3.9, 1.1], "e": [4.0, 1.1, 3.6]}
#: Rows: the ratios to native of each repetition.
WORTH = {
    "several kinds of access": [
        *row_of("a", [2.0, 2.1, 2.2], noncontiguous=True),
        *row_of("b", [3.0, 3.1, 3.2], noncontiguous=True),
        *row_of("c", [0.9, 1.0, 1.1], noncontiguous=True),
        *row_of("d", [0.5, 0.5, 0.5], noncontiguous=False),
        *row_of("e", [0.9, 1.0, 1.1], noncontiguous=False, operation="read"),
        *row_of("f", [7.0, 7.0], noncontiguous=None),
    ],
    "two repetitions": row_of("a", [9.0, 9.0]),
    "slower": row_of("a", [0.5, 0.5, 0.5]),
    "level": row_of("a", [0.9, 1.0, 1.1]),
    "noise": row_of("a", [1.9, 4.32, 9.0]),
    "native alone": [load_run(results.run("native"))],
    "rows together have less noise than each": [
        row for name, ratios in NOISY.items() for row in row_of(name, ratios, noncontiguous=True)
    ],
    "more rounds are more certain": [*row_of("a", [2.0, 2.1, 2.2, 2.1, 2.0]), *row_of("b", [3.0, 3.1, 3.2, 3.1])],
    "more repetitions do not make a slow row count as fast": row_of("a", [0.45, 0.28, 0.45, 0.4, 1.97]),
}


@pytest.mark.parametrize("name", WORTH)
def test_the_first_sentence_says_for_which_access_it_is_worth_it(name, expected):
    rows = measure(WORTH[name])
    told = {item.title: sentences(item) for item in tally(rows)}
    rounds = {item.judgment: item.rounds for item in kinds(rows)}
    expected({"worth": worth(kinds(rows)), "rows": [judge(row.ratio) for row in rows], "rounds": rounds, **told})


def test_the_page_begins_with_a_sentence_and_a_picture(tmp_path):
    page, html = page_of(
        results.document(
            [
                run
                for number in range(3)
                for run in (
                    results.run("native", repetition=number, ratio_to_native=1.0),
                    results.run("auto", repetition=number, ratio_to_native=2.0 + number / 10),
                )
            ]
        ),
        folder=tmp_path,
    )
    assert page.problems == []
    first, picture, numbers = (
        html.index(text) for text in ("Worth it on this machine: yes", "<figure>", '<section id="verdict"')
    )
    assert first < picture < numbers


def test_noncontiguous_that_is_said_stays_and_that_of_a_kernel_is_not_guessed(tmp_path):
    runs = [results.run("auto", noncontiguous=False), results.run("even", kind="kernel", noncontiguous=None)]
    path = results.write(tmp_path / "results.json", results.document(runs))
    assert [row.last.noncontiguous for row in load(path).rows] == [False, None]


def test_interfaces_have_their_names(tmp_path):
    page, _ = page_of(results.document([results.run("auto", interface="netcdf4")]), folder=tmp_path)
    assert "[netCDF-4]" in page.text
