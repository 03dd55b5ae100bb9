"""Two sets of results compared: the rule, the matching, the exit statuses."""

from __future__ import annotations

import copy
import json

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.common.results import Spread
from mpiio_ext.report.baseline import compare, falls_below, judge_change
from mpiio_ext.report.environment import differences
from mpiio_ext.report.load import load_all
from support import report_results as results

FIGURES = st.lists(st.floats(0.001, 1e6), min_size=3, max_size=6)


def runs_of(figures: dict[str, list[float]], **more) -> list[dict]:
    return [
        results.run(strategy, repetition=k, bandwidth=value, **more)
        for strategy, values in figures.items()
        for k, value in enumerate(values)
    ]


def sets_of(folder, name: str, *documents: dict):
    paths = [results.write(folder / f"{name}{k}" / "results.json", item) for k, item in enumerate(documents)]
    return load_all(paths)[0]


def compared(folder, old: dict, new: dict):
    return compare(sets_of(folder, "old", old), sets_of(folder, "new", new))


# ---- the rule ----


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FIGURES, FIGURES)
def test_judgment_is_by_the_ranges(old, new):
    expected = "within noise"
    if all(a > b for a in new for b in old):
        expected = "faster"
    elif all(a < b for a in new for b in old):
        expected = "slower"
    assert judge_change(Spread.of(old), Spread.of(new)) == expected


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FIGURES, FIGURES)
def test_judgment_turns_round_with_the_sides(old, new):
    swapped = {"faster": "slower", "slower": "faster", "within noise": "within noise"}
    there = judge_change(Spread.of(old), Spread.of(new))
    assert judge_change(Spread.of(new), Spread.of(old)) == swapped[there]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FIGURES)
def test_the_same_figures_are_noise(figures):
    assert judge_change(Spread.of(figures), Spread.of(figures)) == "within noise"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.floats(0.001, 1e6), FIGURES)
def test_two_repetitions_are_not_judged(single, figures):
    for few in ([single], [single, single]):
        assert judge_change(Spread.of(few), Spread.of(figures)) == "not judged"
        assert judge_change(Spread.of(figures), Spread.of(few)) == "not judged"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=25)
@given(old=FIGURES, new=FIGURES, limit=st.floats(0.01, 10))
def test_limit(old, new, limit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("limit")
    (match,) = compared(
        folder, results.document(runs_of({"auto": old})), results.document(runs_of({"auto": new}))
    ).matches
    assert match.ratio_low <= match.ratio <= match.ratio_high
    assert falls_below(match, limit) == (max(new) / min(old) < limit)
    assert falls_below(match, 1.0) == (match.judgment == "slower") or max(new) / min(old) == 1.0
    assert not falls_below(match, limit) or falls_below(match, 2 * limit)


def test_rows_of_the_mpi_library_never_fall_below(tmp_path):
    (match,) = compared(
        tmp_path,
        results.document(runs_of({"native": [100, 100, 101]})),
        results.document(runs_of({"native": [10, 10, 11]})),
    ).matches
    assert match.judgment == "slower"
    assert not falls_below(match, 1.0)


# ---- matching ----


def test_rows_are_matched_by_what_they_are(tmp_path):
    old = runs_of({"native": [100, 105, 110], "auto": [200, 210, 220], "even": [1, 2]})
    new = runs_of({"native": [50, 52.5, 55], "auto": [300, 315, 330]}) + runs_of({"auto": [7, 8]}, interface="hdf5")
    found = compared(tmp_path, results.document(old), results.document(new))
    judged = [(match.key.strategy, match.judgment) for match in found.matches]
    assert judged == [("native", "slower"), ("auto", "faster")]
    assert [row.key.strategy for row in found.only_old] == ["even"]
    assert [(row.key.strategy, row.key.interface) for row in found.only_new] == [("auto", "hdf5")]
    assert found.native_drift == pytest.approx(0.5)
    assert found.matches[1].ratio == pytest.approx(1.5)
    assert (found.matches[1].ratio_low, found.matches[1].ratio_high) == pytest.approx((300 / 220, 330 / 200))
    assert found.warned == ()


def test_rows_without_fields_that_may_lack_match(tmp_path):
    found = compared(
        tmp_path,
        results.document(runs_of({"auto": [1, 2]})),
        results.document(runs_of({"auto": [1, 2]}, phase="", kind="pattern", files=1)),
    )
    assert len(found.matches) == 1
    found = compared(
        tmp_path, results.document(runs_of({"auto": [1, 2]})), results.document(runs_of({"auto": [1, 2]}, phase="S"))
    )
    assert (len(found.matches), len(found.only_old), len(found.only_new)) == (0, 1, 1)


def test_other_size_is_told(tmp_path):
    found = compared(
        tmp_path, results.document(runs_of({"auto": [1, 2]})), results.document(runs_of({"auto": [1, 2]}, data_bytes=1))
    )
    assert found.matches[0].other_size


def test_no_bandwidth_in_the_baseline_is_no_division_by_zero(tmp_path):
    (match,) = compared(
        tmp_path,
        results.document(runs_of({"auto": [1, 1]}, bandwidth_mb_per_s=0.0)),
        results.document(runs_of({"auto": [1, 2]})),
    ).matches
    assert (match.ratio, match.ratio_low, match.ratio_high) == (None, None, None)
    assert not falls_below(match, 1.0)


# ---- environments ----


@pytest.mark.parametrize(
    "key, value, what",
    [
        ("ranks", 8, "Ranks"),
        ("mpi_library", "MPICH 5", "MPI library"),
        ("file_system_type", "lustre", "File system"),
        ("cpu_model", "Other", "Processor"),
        ("variables", {"MPIOX_RANKS_PER_NODE": "4"}, "MPIOX_RANKS_PER_NODE"),
        ("versions", {"hdf5": "1.14"}, "Version of hdf5"),
    ],
)
def test_environments_that_differ(key, value, what):
    old = results.ENVIRONMENT
    found = differences(old, copy.deepcopy(old) | {key: value}, {}, {})
    assert what in [item.what for item in found]


def test_environments_that_differ_only_in_what_is_meant_to():
    old = results.ENVIRONMENT
    new = old | {
        "started": "later",
        "git_revision": "other",
        "hosts": ["node9"],
        "command_line": "other",
        "variables": old["variables"] | {"OMPI_MCA_ess": "other", "OMPI_MCA_orte_tmpdir_base": "/t"},
        "versions": old["versions"] | {"mpiio_ext": "0.2.0"},
    }
    assert differences(old, new, results.CONFIGURATION, copy.deepcopy(results.CONFIGURATION)) == []
    sizes = results.CONFIGURATION["sizes"] | {"file_bytes": 1}
    (found,) = differences(old, new, results.CONFIGURATION, results.CONFIGURATION | {"sizes": sizes})
    assert "file" in found.what.lower()


# ---- the command ----


@pytest.fixture
def folders(tmp_path):
    old = runs_of({"native": [100, 110, 105], "auto": [200, 220, 210], "even": [300, 310, 305]})
    new = runs_of({"native": [100, 110, 105], "auto": [100, 110, 105], "even": [300, 310, 305]})
    results.write(tmp_path / "old" / "results.json", results.document(old))
    results.write(tmp_path / "new" / "results.json", results.document(new))
    return tmp_path


def invoke(folder, *arguments: object):
    return CliRunner().invoke(main, ["bench", "report", str(folder / "new"), *map(str, arguments)])


def test_json(folders, monkeypatch):
    monkeypatch.chdir(folders)
    result = invoke(folders, "--baseline", folders / "old", "--json", "--fail-below", 0.9)
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["counts"] == {"faster": 0, "within noise": 2, "slower": 1, "not judged": 0}
    (failed,) = [item for item in document["matched"] if item["failed"]]
    assert (failed["strategy"], failed["judgment"], failed["ratio"]) == ("auto", "slower", 0.5)
    assert failed["baseline"] == {"median_mb_per_s": 210, "min_mb_per_s": 200, "max_mb_per_s": 220, "repetitions": 3}
    assert (failed["ratio_min"], failed["ratio_max"]) == (100 / 220, 110 / 200)
    assert "below 0.9: interleaved blocks of 512 B [MPI-IO], write, auto: 0.50× (0.45–0.55)" in result.stderr
    assert sorted(item.name for item in folders.iterdir()) == ["new", "old"]


@pytest.mark.parametrize("limit, status", [(0.9, 1), (0.56, 1), (0.55, 0), (0.1, 0)])
def test_exit_status_of_the_limit(folders, limit, status):
    result = invoke(folders, "--baseline", folders / "old", "--fail-below", limit, "-o", folders / "r.html")
    assert result.exit_code == status, result.output
    assert (folders / "r.html").exists()
    assert "3 rows compared: 0 faster, 2 within noise, 1 slower" in result.stdout


def test_json_with_a_page_too(folders):
    result = invoke(folders, "--baseline", folders / "old", "--json", "-o", folders / "r.html")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["fail_below"] is None
    assert "r.html: 3 rows" in result.stderr


def test_a_limit_that_judges_nothing_does_not_pass(folders):
    results.write(folders / "new" / "results.json", results.document(runs_of({"native": [1, 2], "auto": [5]})))
    result = invoke(folders, "--baseline", folders / "old", "--fail-below", 0.9, "-o", folders / "r.html")
    assert result.exit_code == 2
    assert "nothing to judge" in result.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--json",), "give --baseline too"),
        (("--fail-below", "0.9"), "give --baseline too"),
        (("--fail-below", "0", "--baseline", "x"), "not in the range"),
    ],
)
def test_options_that_need_a_baseline(folders, arguments, message):
    result = invoke(folders, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_row_twice_on_a_side_is_refused(folders):
    result = invoke(folders, folders / "old", "--baseline", folders / "old", "-o", folders / "r.html")
    assert result.exit_code == 2
    assert "both hold the row" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (folders / "r.html").exists()


def test_compare_files_are_no_baseline(folders):
    path = results.write(folders / "cmp.json", results.COMPARE)
    result = invoke(folders, "--baseline", path, "-o", folders / "r.html")
    assert result.exit_code == 2
    assert "cannot be a baseline" in result.stderr


def test_differing_environments_are_told(folders):
    document = json.loads((folders / "new" / "results.json").read_text())
    document["environment"]["ranks"] = 64
    results.write(folders / "new" / "results.json", document)
    result = invoke(folders, "--baseline", folders / "old", "-o", folders / "r.html")
    assert result.exit_code == 0
    assert "old and new differ in: Ranks" in result.stderr
    assert "Ranks: 4 → 64" in (folders / "r.html").read_text(encoding="utf-8")
