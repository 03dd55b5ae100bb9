"""The search space of `mpiio-ext tune`, the optimiser on it, and the hints files of its settings."""

from __future__ import annotations

import pathlib

import pytest

from mpiio_ext import hints as library
from mpiio_ext.tune.errors import TuneError
from mpiio_ext.tune.hintsfile import OwnHints, own_hints, text_of, write
from mpiio_ext.tune.program import matching, present_hints, registry_defaults, removable_hints, usage_of
from mpiio_ext.tune.search import Search
from mpiio_ext.tune.setting import BASELINE, Setting
from mpiio_ext.tune.space import Options, Space, Usage, build
from mpiio_ext.tune.trial import FileUse, Outcome
from support.expected import Expected
from support.parts import require

require("optuna")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    for name in ("MPIOX_HINTS", "MPIOX_HINTS_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MPIOX_SITE_FILE", str(tmp_path / "site"))
    (tmp_path / "site").write_text("", encoding="utf-8")


def use(**changes) -> FileUse:
    values = {"path": "/d/f", "ranks": 4, "bytes_moved": 100, "written": True, "collective_s": 1.0}
    values |= {"independent_s": 0.0}
    calls = {"collective_calls": 2, "independent_calls": 0, "direct_calls": 0, "native_calls": 0}
    return FileUse(**(values | calls | changes))


def space_of(usage: Usage | None = None, options: Options | None = None, **present: str) -> Space:
    defaults = registry_defaults()
    user = frozenset(present)
    found = usage or Usage(ranks=4)
    force = defaults | present
    return build(found, options or Options(), defaults=defaults, in_force=force, user=user, removable=user)


def drawn(space: Space, count: int) -> list[Setting]:
    search, found = Search(space, 1.0, seed=3), []
    for number in range(count):
        setting, token = search.ask()
        found.append(setting)
        search.tell(token, None if number % 7 == 3 else 1.0 + number % 5)
    return found


def in_force_under(
    text: str, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, path: str = "/d/f"
) -> dict[str, str]:
    """Return what the project's own reader makes of a hints file, which must have no problem."""
    file = folder / "under.hints"
    file.write_text(text, encoding="utf-8")
    monkeypatch.setenv("MPIOX_HINTS_FILE", str(file))
    assert library.problems() == ()
    return {item.spec.name: item.value for item in library.in_force(path)}


def test_every_setting_is_made_of_hints_that_the_library_accepts(tmp_path, monkeypatch) -> None:
    space = space_of(options=Options(striping=True, direct_io=True), cb_nodes="1", cb_buffer_size="4096")
    settings = drawn(space, 60)
    assert len(set(settings)) > 30
    for setting in settings:
        for name, value in setting.hints:
            library.check(name, value)
        text = text_of(OwnHints(file=tmp_path / "own", text="cb_nodes = 1\ncb_buffer_size = 4k\n"), "*", setting)
        expected = registry_defaults() | {"cb_nodes": "1", "cb_buffer_size": "4096"} | setting.as_dict()
        assert in_force_under(text, tmp_path, monkeypatch) == expected


@pytest.mark.parametrize("removable", [True, False])
def test_known_points_exist_whatever_the_user_has_set(removable: bool) -> None:
    """Every hint set to a value that no list has, alone and with all others."""
    values = {"cb_nodes": "3", "cb_buffer_size": "8192", "ind_rd_buffer_size": "77", "cb_config_list": "a:1"}
    values |= {"mpiox_buffers": "5", "romio_cb_write": "disable", "romio_cb_read": "disable", "striping_unit": "99"}
    defaults = registry_defaults()
    for present in [values, *({name: value} for name, value in values.items())]:
        user = frozenset(present)
        for options in (Options(), Options(striping=True, direct_io=True, native=False)):
            space = build(
                Usage(ranks=4),
                options,
                defaults=defaults,
                in_force=defaults | present,
                user=user,
                removable=user if removable else frozenset(),
            )
            points = space.starting_points()
            assert drawn(space, len(points)) == [space.setting_of(point) for point in points]
            zeros = {item.hint for item in space.parameters if "0" in item.values}
            assert removable or not zeros & user


def test_the_optimiser_begins_with_the_known_points() -> None:
    space = space_of()
    points = space.starting_points()
    assert drawn(space, len(points)) == [space.setting_of(point) for point in points]
    texts = [space.setting_of(point).as_dict() for point in points]
    assert {} in texts  # the library's own choice is the baseline when nobody has set a hint
    assert {"mpiox_enable": "false"} in texts
    tuned = {"mpiox_enable": "false", "cb_nodes": "4", "cb_config_list": "*:*", "romio_cb_write": "enable"}
    assert tuned | {"romio_cb_read": "enable"} in texts
    ways = {text.get("mpiox_partition") for text in texts}
    assert ways >= {"even", "aligned", "static_cyclic", "group_cyclic", "transpose"}


def test_bad_hints_of_the_user_are_put_back_at_once() -> None:
    space = space_of(cb_nodes="1", cb_buffer_size="4096", mpiox_coverage_map="true")
    first = space.setting_of(space.starting_points()[0]).as_dict()
    assert first == {"cb_nodes": "0", "cb_buffer_size": "0", "mpiox_coverage_map": "false"}


def test_zero_is_never_written_for_hints_that_the_mpi_library_reads(tmp_path, monkeypatch) -> None:
    own = OwnHints(file=tmp_path / "own", text="[*]\ncb_nodes = 1\n[*.h5]\ncb_buffer_size=4k\nmpiox_buffers = 4\n")
    text = text_of(own, "*", Setting((("cb_buffer_size", "0"), ("cb_nodes", "0"), ("mpiox_buffers", "2"))))
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "["))]
    assert lines == ["mpiox_buffers = 2"]
    assert in_force_under(text, tmp_path, monkeypatch, "/d/x.h5") == registry_defaults()
    defaults, user = registry_defaults(), frozenset({"cb_nodes"})
    fixed = build(Usage(ranks=4), Options(), defaults=defaults, in_force={"cb_nodes": "1"}, user=user)
    assert all("0" not in item.values for item in fixed.parameters if item.hint == "cb_nodes")


def test_a_section_for_some_files_leaves_the_others_alone(tmp_path, monkeypatch) -> None:
    own = OwnHints(file=tmp_path / "own", text="cb_nodes = 1\n")
    text = text_of(own, "*.h5", Setting((("cb_nodes", "3"),)), ["head"], {"cb_nodes": "why"})
    assert in_force_under(text, tmp_path, monkeypatch, "/d/x.h5")["cb_nodes"] == "3"
    assert in_force_under(text, tmp_path, monkeypatch, "/d/x.nc")["cb_nodes"] == "1"
    assert text.startswith("# head\n") and "# why\ncb_nodes = 3\n" in text


#: What programs did, and how they are tuned.
USAGES = {
    "collective reads": (Usage(ranks=4, collective=True, independent=False, written=False), Options()),
    "independent accesses": (Usage(ranks=4, collective=False, independent=True), Options()),
    "all": (Usage(ranks=4), Options()),
    "without the MPI library": (Usage(ranks=4), Options(native=False)),
    "with striping and direct I/O": (Usage(ranks=4), Options(striping=True, direct_io=True)),
}


@pytest.mark.parametrize("name", USAGES)
def test_hints_follow_from_what_the_program_did(name: str, expected: Expected) -> None:
    space = space_of(*USAGES[name])
    hints = {item.hint: ", ".join(sorted(item.ways)) for item in space.parameters}
    expected({"ways": space.ways, "hints": dict(sorted(hints.items()))})


@pytest.mark.parametrize(
    ("ranks", "numbers"), [(1, ["1"]), (3, ["1", "2"]), (4, ["1", "2", "4"]), (500, ["1", "2", "4", "8"])]
)
def test_delegates_are_a_way_of_their_own(ranks: int, numbers: list[str]) -> None:
    space = space_of(Usage(ranks=ranks))
    below = {item.hint: item.values for item in space.below("delegates")}
    assert list(below["mpiox_delegates"]) == numbers
    assert below["mpiox_delegate_mode"] == ("spawn", "process")
    assert "romio_ds_write" not in below and "ind_wr_buffer_size" not in below
    assert not any(
        name.startswith("mpiox_delegate")
        for way in space.ways
        if way != "delegates"
        for name in (item.hint for item in space.below(way))
    )
    point = space.point("delegates", {})
    assert space.setting_of(point).as_dict()["mpiox_delegates"] == numbers[0]
    texts = [space.setting_of(point).as_dict() for point in space.starting_points()]
    tried = {text["mpiox_delegates"] for text in texts if "mpiox_delegates" in text}
    assert tried == set(numbers[:2])


def test_delegates_of_the_user_are_a_choice_too() -> None:
    space = space_of(mpiox_delegates="per_node=3", mpiox_delegate_cache="1048576", mpiox_delegate_threads="7")
    below = {item.hint: item.values for item in space.below("delegates")}
    assert below["mpiox_delegates"] == ("1", "2", "4", "per_node=3")
    assert below["mpiox_delegate_cache"][-1] == "1048576"
    assert set(below["mpiox_delegate_threads"]) == {"1", "7"}
    assert space.setting("auto", {}).as_dict() == {"mpiox_delegates": "0"}
    assert "mpiox_delegates" not in space.setting("delegates", {"mpiox_delegates": "per_node=3"}).as_dict()


@pytest.mark.parametrize("ranks", [1, 2, 4, 16, 17, 100, 4096])
def test_aggregators_are_at_most_the_ranks(ranks: int) -> None:
    for item in space_of(Usage(ranks=ranks)).parameters:
        if item.hint == "cb_nodes":
            numbers = [int(value) for value in item.values if value != "0"]
            assert numbers == sorted(set(numbers)) and numbers[0] == 1 and numbers[-1] == ranks and len(numbers) <= 17


def test_a_setting_is_what_differs() -> None:
    assert Setting.of({"a": "1", "b": "2"}, {"a": "1", "b": "3"}) == Setting((("b", "2"),))
    assert Setting((("a", "1"), ("b", "2"))).without("a") == Setting((("b", "2"),))
    assert Setting.of({}, {}) == BASELINE


def test_usage_is_read_from_the_statistics() -> None:
    assert usage_of([use()]) == Usage(ranks=4, collective=True, independent=False, written=True)
    direct = use(independent_calls=8, direct_calls=2)  # eight accesses of two direct collectives on four ranks
    assert not usage_of([direct]).independent
    assert usage_of([use(collective_calls=0, independent_calls=3, written=False)]) == Usage(
        ranks=4, collective=False, independent=True, written=False
    )
    assert usage_of([use(collective_calls=0, native_calls=1)]).collective
    through = use(independent_calls=8, delegated_calls=2)  # the same of two collectives through delegates
    assert not usage_of([through]).independent
    with pytest.raises(TuneError, match="no file matches"):
        matching(Outcome(status="ok", elapsed_s=1, files=(use(),), ranks=4), "*.h5")
    with pytest.raises(TuneError, match="no file through MPI-IO"):
        matching(Outcome(status="ok", elapsed_s=1, ranks=4), "*")
    with pytest.raises(TuneError, match="reached the extension"):
        matching(Outcome(status="ok", elapsed_s=1), "*")
    assert matching(Outcome(status="ok", elapsed_s=1, files=(use(), use(path="/d/x.h5"))), "*.h5")[0].path == "/d/x.h5"


def test_hints_of_the_variable_become_sections(tmp_path, monkeypatch) -> None:
    (tmp_path / "own").write_text("cb_nodes = 2\n", encoding="utf-8")
    environment = {"MPIOX_HINTS": "*.h5:mpiox_buffers=4,cb_buffer_size=1m", "MPIOX_HINTS_FILE": str(tmp_path / "own")}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    own = own_hints(["/d/f", "/d/x.h5"], environment)
    present = present_hints([use(path="/d/x.h5", bytes_moved=900), use()])
    assert present.values["mpiox_buffers"] == "4" and present.sources["cb_nodes"] == "MPIOX_HINTS_FILE"
    assert removable_hints(present, "*") == {"cb_nodes", "mpiox_buffers", "cb_buffer_size"}
    assert removable_hints(present, "*.h5") == frozenset()
    expected = {path: {i.spec.name: i.value for i in library.in_force(path)} for path in ("/d/f", "/d/x.h5")}
    monkeypatch.delenv("MPIOX_HINTS")
    text = text_of(own, "*", Setting())
    for path, values in expected.items():
        assert in_force_under(text, tmp_path, monkeypatch, path) == values


def test_what_a_file_cannot_say_is_refused(monkeypatch) -> None:
    monkeypatch.setenv("MPIOX_HINTS", "romio_no_indep_rw=true")
    with pytest.raises(TuneError, match="romio_no_indep_rw"):
        own_hints(["/d/f"], {"MPIOX_HINTS": "romio_no_indep_rw=true"})
    with pytest.raises(TuneError, match="cannot read the hints file"):
        own_hints([], {"MPIOX_HINTS_FILE": "/nowhere/x"})


def test_writing_is_all_or_nothing(tmp_path) -> None:
    target = tmp_path / "a.hints"
    write(target, "x\n")
    assert target.read_text() == "x\n" and list(tmp_path.glob(".*")) == []
    with pytest.raises(TuneError, match="cannot be written"):
        write(tmp_path / "missing" / "a.hints", "x\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(TuneError, match="cannot be written"):
        write(tmp_path / "folder", "x\n")
    assert [path.name for path in tmp_path.glob(".*")] == []
