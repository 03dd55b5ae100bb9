"""Exploration without MPI: patterns of the command line and of FORGE's files, places of requests, curves and tables."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.bench.errors import SetupError
from mpiio_ext.bench.explore import forge, results
from mpiio_ext.bench.explore.command import command
from mpiio_ext.bench.explore.content import PERIOD_BYTES, Content
from mpiio_ext.bench.explore.explore import Options, _check, _steps
from mpiio_ext.bench.explore.measure import Measured
from mpiio_ext.bench.explore.results import Run
from mpiio_ext.bench.explore.spec import Spec, parse
from mpiio_ext.cli import main
from mpiio_ext.delegates.arbitration.store import Store
from mpiio_ext.delegates.arbitration.tables import read_forge
from mpiio_ext.errors import ArgumentError

#: As in the runs on MareNostrum 4 of the paper's authors: numbers.
NUMBERS = {
    "forwarders": 2,
    "handlers": 1,
    "dispatchers": 16,
    "path": "/gpfs/scratch/me/forge",
    "validation": 0,
    "number_of_files": "shared",
    "spatiality": "strided",
    "total_size": 137438953472,
    "request_size": 4194304,
    "operations": "write",
    "direct_io": 1,
    "stone_wall": 60,
}
#: As in the README: texts; it did both operations.
TEXTS = {
    "forwarders": "1",
    "listeners": "16",
    "dispatchers": "4",
    "path": "/mnt/pfs/test",
    "number_of_files": "individual",
    "spatiality": "contiguous",
    "total_size": "4294967296",
    "request_size": "32768",
    "validation": "1",
}
PHASES = {
    "forwarders": 4,
    "handlers": 2,
    "dispatchers": 8,
    "phases": [
        {
            "repetitions": 3,
            "patterns": [
                {"path": "/scratch/a", "operation": "open", "number_of_files": "shared"},
                {
                    "path": "/scratch/a",
                    "operation": "write",
                    "number_of_files": "shared",
                    "spatiality": "contiguous",
                    "total_size": 1048576,
                    "request_size": 4096,
                },
                {"path": "/scratch/a", "operation": "close", "number_of_files": "shared"},
            ],
        },
        {
            "repetitions": 1,
            "patterns": [
                {
                    "path": "/scratch/a",
                    "operation": "read",
                    "number_of_files": "shared",
                    "spatiality": "strided",
                    "total_size": 1048576,
                    "request_size": 4096,
                    "stone_wall": 2,
                }
            ],
        },
    ],
}


def one(text: str) -> Spec:
    (spec,) = parse(text, total_bytes=1 << 20)
    return spec


# ---- the command line ------------------------------------------------------------------------------------------------


def test_words_in_any_order() -> None:
    spec = one("shared,strided,64KiB,256MiB,5s,read,direct")
    assert spec == one("direct , 5s, 64k, READ, 256m, strided, shared")
    assert spec == Spec(
        layout="shared",
        spatiality="strided",
        request_bytes=65536,
        total_bytes=1 << 28,
        direct=True,
        operation="read",
        stonewall_s=5.0,
    )
    assert one("4KiB") == Spec(layout="shared", spatiality="contiguous", request_bytes=4096, total_bytes=1 << 20)
    assert one("individual,4KiB").layout == "file-per-process"


def test_the_patterns_of_the_paper() -> None:
    """21 of them: with 3 numbers of nodes and 3 of processes a node they are the 189 of Section 2."""
    specs = parse("paper,8s,64MiB", total_bytes=1)
    assert len(set(specs)) == 21 and {spec.stonewall_s for spec in specs} == {8.0}
    assert sorted({spec.request_bytes >> 10 for spec in specs}) == [32, 128, 512, 1024, 4096, 6144, 8192]
    assert {spec.total_bytes for spec in specs} == {64 << 20}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("shared", "size of a request"),
        ("shared,4k,individual", "layout twice"),
        ("4k,8k,16k", "total size twice"),
        ("4k,sparse", "'sparse'"),
        ("individual,strided,4k", "strided needs a shared file"),
        ("1MiB,4k", "less than one"),
        ("paper,shared", "has its own layouts"),
        ("paper,4k,8m", "one size"),
        ("0,4k", "1 byte"),
        ("4k,9999999s", "stonewall"),
        ("4k,write,read", "operation twice"),
    ],
)
def test_what_is_no_pattern(text: str, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        parse(text, total_bytes=1 << 20)


def asked(*words: str) -> Options:
    options = command.main(args=list(words), standalone_mode=False)
    assert isinstance(options, Options)
    return options


def test_options(tmp_path: Path) -> None:
    file = tmp_path / "forge.json"
    file.write_text(json.dumps([TEXTS, {**TEXTS, "forwarders": "2"}]))
    options = asked(
        "--pattern", "4k,1m", "--pattern", str(file), "-H", "mpiox_delegate_bypass=0", "--io-nodes", "0,1,1,4"
    )
    assert options.io_nodes == (0, 1, 4) and options.most == 4 and len(options.specs) == 3
    assert options.path == Path("/mnt/pfs") and options.hints == {
        "mpiox_delegate_bypass": "0",
        "mpiox_delegate_threads": "4",
    }
    direct, served = (options.file_hints(options.specs[0], count) for count in (0, 1))
    assert direct["mpiox_delegates"] == "0" and "mpiox_delegate_owners" not in direct
    assert served["mpiox_delegates"] == "4" and served["mpiox_delegate_owners"] == "1"
    assert asked("--pattern", str(file)).most == 2
    assert asked("--pattern", "4k", "--io-nodes", "0..3,8,64..576:256").io_nodes == (0, 1, 2, 3, 8, 64, 320, 576)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pattern", "4k", "--io-nodes", "1,x"], "'x' is neither a number nor a range"),
        (["--pattern", "4k", "--io-nodes", "0..577:577"], "577: a job has 576 delegates at most"),
        (["--pattern", "4q"], "'4q'"),
        (["--pattern", "none.json"], "none.json: cannot be read"),
        (["--io-nodes", "1"], "--pattern"),
        (["--pattern", "4k", "-H", "mpiox_delegates=3"], "mpiox_delegates is set"),
        (["--pattern", "4k", "--program", "a b"], "letters"),
    ],
)
def test_wrong_options(words: list[str], message: str) -> None:
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2 and message in done.output, done.output


# ---- FORGE's files ---------------------------------------------------------------------------------------------------


def read(tmp_path: Path, document: object) -> forge.Forge:
    path = tmp_path / "forge.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return forge.read(path)


def test_numbers(tmp_path: Path) -> None:
    found = read(tmp_path, NUMBERS)
    assert found.specs == (
        Spec(
            layout="shared",
            spatiality="strided",
            request_bytes=4 << 20,
            total_bytes=1 << 37,
            direct=True,
            stonewall_s=60.0,
            io_nodes=(2,),
        ),
    )
    assert found.path == Path("/gpfs/scratch/me") and found.threads == forge.MOST_THREADS
    assert any("dispatchers 16" in note for note in found.notes) and any("validation" in note for note in found.notes)


def test_texts(tmp_path: Path) -> None:
    found = read(tmp_path, TEXTS)
    assert [spec.operation for spec in found.specs] == ["write", "read"]
    assert {(spec.layout, spec.request_bytes, spec.io_nodes) for spec in found.specs} == {
        ("file-per-process", 32768, (1,))
    }
    assert found.threads == 4 and any("listeners" in note for note in found.notes)


def test_phases(tmp_path: Path) -> None:
    found = read(tmp_path, PHASES)
    assert [(spec.operation, spec.repetitions, spec.io_nodes) for spec in found.specs] == [
        ("write", 3, (4,)),
        ("read", 1, (4,)),
    ]
    assert found.specs[1].stonewall_s == 2.0 and found.threads == 8


def test_a_list_of_one_pattern_with_other_forwarders(tmp_path: Path) -> None:
    found = read(tmp_path, [{**NUMBERS, "forwarders": count} for count in (4, 0, 2)])
    assert len(found.specs) == 1 and found.specs[0].io_nodes == (0, 2, 4)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "is not JSON"),
        ("3", "an object or a list"),
        ([], "no pattern"),
        ({"phases": 3}, "/phases: 3 is not a list"),
        ({**TEXTS, "request_sise": 1}, "/request_sise: there is no such name; there are .*request_size"),
        ({**TEXTS, "number_of_files": "many"}, '/number_of_files: "many" is not one of "shared", "individual"'),
        ({**TEXTS, "spatiality": "strided"}, "strided needs a shared file"),
        ({**TEXTS, "total_size": "4GiB"}, '/total_size: "4GiB" is not a whole number'),
        ({**TEXTS, "total_size": -1}, "/total_size: -1 is less than 0"),
        ({key: value for key, value in TEXTS.items() if key != "request_size"}, '/: "request_size" is missing'),
        ({**TEXTS, "operation": "append"}, "/operation: 'append' is not write, read or both"),
        ({**TEXTS, "forwarders": True}, "/forwarders"),
        ([TEXTS, {**TEXTS, "dispatchers": 3}], "/1/dispatchers: is 3"),
        ("[" * 100_000, "is not JSON"),
        ({"phases": [{"patterns": [{"operation": "open"}]}]}, "no pattern that writes or reads"),
        ({"phases": [3]}, "/phases/0: 3 is not an object"),
        (
            [TEXTS, {**TEXTS, "total_size": "x", "direct_io": -1}],
            "/1/total_size: .*\n.*/1/direct_io: -1 is less than 0",
        ),
    ],
)
def test_what_is_no_forge(tmp_path: Path, document: object, words: str) -> None:
    with pytest.raises(ArgumentError, match=words) as caught:
        read(tmp_path, document)
    assert str(tmp_path / "forge.json") in str(caught.value)


# ---- requests --------------------------------------------------------------------------------------------------------


@given(
    st.sampled_from([("shared", "contiguous"), ("shared", "strided"), ("file-per-process", "contiguous")]),
    st.integers(1, 7),
    st.integers(1, 9),
    st.integers(1, 300),
)
def test_requests_cover_the_file_once(kind: tuple[str, str], ranks: int, requests: int, size: int) -> None:
    spec = Spec(
        layout=kind[0],
        spatiality=kind[1],
        request_bytes=size,  # type: ignore[arg-type]
        total_bytes=size * ranks * requests + size - 1,
    )
    assert spec.requests(ranks) == requests
    places = [[spec.offset(rank, index, ranks, requests) for index in range(requests)] for rank in range(ranks)]
    if kind[0] == "shared":
        assert sorted(itertools.chain.from_iterable(places)) == [size * k for k in range(ranks * requests)]
    else:
        assert all(sorted(own) == [size * k for k in range(requests)] for own in places)
    step = {"contiguous": size, "strided": size * ranks}[kind[1]]
    assert all(b - a == step for own in places for a, b in itertools.pairwise(own))


def test_too_little_for_each_rank() -> None:
    with pytest.raises(ArgumentError, match="raise the total"):
        one("64k,128k").requests(3)


def test_content_tells_places_apart() -> None:
    content, other = Content(4096, 1), Content(4096, 2)
    assert all(PERIOD_BYTES % divisor for divisor in range(2, 1025))
    here = content.request(0, 0)
    assert here.size == 4096 and here.all()
    for file, offset in ((0, 4096), (0, 1 << 20), (0, 1), (1, 0), (5, 1 << 30)):
        assert not np.array_equal(content.request(file, offset), here), (file, offset)
    assert np.array_equal(content.request(3, PERIOD_BYTES - 10), content.request(3, 2 * PERIOD_BYTES - 10))
    assert not np.array_equal(other.request(0, 0), here)
    memory = np.empty(4096, np.uint8)
    content.poison(memory)
    assert not (memory == here).any()


# ---- order, results --------------------------------------------------------------------------------------------------


def test_numbers_alternate_inside_each_repetition() -> None:
    options = Options(specs=(one("4k"), replace(one("8k"), repetitions=1)), io_nodes=(0, 1, 2), repetitions=2)
    steps = list(_steps(options, _check_specs(options)))
    assert [(step.repetition, step.spec.request_bytes, step.count) for step in steps] == [
        (1, 4096, 0),
        (1, 4096, 1),
        (1, 4096, 2),
        (1, 8192, 0),
        (1, 8192, 1),
        (1, 8192, 2),
        (2, 4096, 1),
        (2, 4096, 2),
        (2, 4096, 0),
    ]


def _check_specs(options: Options) -> dict:
    return {spec.pattern(1, 2): spec for spec in options.specs}


def test_curves_that_could_not_be_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiio_ext.bench.extension.absent_reason", lambda: None)
    with pytest.raises(SetupError, match="runs of their own"):
        _check(Options(specs=(one("4k"), one("4k,2m")), io_nodes=(0, 1)), 2, 1)
    with pytest.raises(SetupError, match="--io-nodes is missing"):
        _check(Options(specs=(one("4k"),), io_nodes=()), 2, 1)
    with pytest.raises(SetupError, match="raise the total"):
        _check(Options(specs=(one("1m"),), io_nodes=(0,)), 2, 1)
    assert len(_check(Options(specs=(one("4k"), one("4k,read")), io_nodes=(0,)), 2, 1)) == 2


def measured(bandwidth: float, *, delegated: int = 0, serving: int = 0) -> Measured:
    return Measured(
        data_bytes=1_000_000,
        requests=10,
        stopped_ranks=0,
        open_s=0.1,
        data_s=0.5 / bandwidth,
        close_s=0.5 / bandwidth,
        delegated_bytes=delegated,
        bypass_bytes=0,
        serving_delegates=serving,
        verified_bytes=1_000_000,
    )


def runs() -> list[Run]:
    out = []
    for text, base in (("shared,strided,4k", 100.0), ("individual,1000", 300.0)):
        spec = one(text)
        for count, gain in ((0, 1.0), (1, 2.0), (2, 3.0)):
            for repetition, noise in enumerate((0.9, 1.0, 1.1), 1):
                out.append(
                    Run(
                        spec=spec,
                        pattern=spec.pattern(1, 2),
                        io_nodes=count,
                        repetition=repetition,
                        measured=measured(base * gain * noise, delegated=1_000_000, serving=count),
                    )
                )
    return out


def test_from_runs_to_curves_and_back(tmp_path: Path) -> None:
    """What is written is read by the arbitration as it was, repetitions included, and simulated with."""
    found = results.document(runs(), {}, {}, None)
    results.write(tmp_path, found, runs(), page=True)
    curves = read_forge([tmp_path / "curves.csv"])
    assert {pattern.request_bytes for pattern in curves} == {4096, 1000}  # FORGE's whole KiB cannot say 1000
    for pattern, curve in results.curves_of(runs()).items():
        assert curves[pattern].counts == curve.counts == (0, 1, 2)
        for count in curve.counts:
            assert curves[pattern].points[count].mean == pytest.approx(curve.points[count].mean, rel=1e-6)
            assert curves[pattern].points[count].repetitions == 3
            assert curves[pattern].points[count].deviation == pytest.approx(curve.points[count].deviation, rel=1e-4)
    done = CliRunner().invoke(
        main,
        [
            "delegates",
            "arbitrate",
            "simulate",
            "--forge",
            str(tmp_path / "curves.csv"),
            "--sets",
            "50",
            "--apps",
            "3",
            "--io-nodes",
            "0..4",
            "--json",
        ],
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["best_option_counts_of_maxima"] == {"0": 0, "1": 0, "2": 2}
    page = (tmp_path / "index.html").read_text()
    assert "shared-strided-4KiB-1x2-write, 2: 300.0 MB/s" in page and not list(tmp_path.glob("*.part"))


def test_the_curve_of_a_program(tmp_path: Path) -> None:
    curve = results.joint_curve(runs())
    assert curve.counts == (0, 1, 2)
    assert curve.points[0].mean == pytest.approx(2 / (1 / 100 + 1 / 300))  # of equal volumes
    Store(tmp_path / "store").save({"app": curve})
    assert Store(tmp_path / "store").load("app").points[2].mean == pytest.approx(450)


def test_what_went_past_the_delegates_is_said() -> None:
    spec = one("4k")
    some = [Run(spec=spec, pattern=spec.pattern(1, 2), io_nodes=2, repetition=1, measured=measured(5, serving=1))]
    (line,) = results.lines(results.document(some, {}, {}, None)["summary"])
    assert "100 % of the bytes went past the delegates" in line and "1 of the delegates had pages" in line
    summary = results.document(runs(), {}, {}, "disk full")
    assert summary["failure"] == "disk full" and summary["summary"][0]["delegated_part"] is None
