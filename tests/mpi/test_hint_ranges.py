"""Every size and count that a hint sets, at its smallest, a usual and its largest value: byte for byte as MPI-IO alone.

The bounds are the registry's, so that a new hint is tried too; it needs its line in `USUAL`. What the machine does not
have (caches of a TiB, as many delegates as the library admits) is clamped or left out with a line, never with an error.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Mapping, Sequence

import pytest

from mpiio_ext import hints
from support import fuzz
from support.launch import PROGRAMS, mpi_family, python_run

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

#: A usual value of each number, and the hints under which it counts.
DELEGATES = "mpiox_delegates=2:mpiox_delegate_mode=thread:mpiox_delegate_cache=1m:mpiox_delegate_page=4k"
ROUNDS = "mpiox_exchange=two_phase"
USUAL = {
    "mpiox_buffers": ("3", f"{ROUNDS}:cb_buffer_size=8k"),
    "mpiox_ranks_per_node": ("2", ROUNDS),
    "mpiox_wait_limit": ("60", ROUNDS),
    "mpiox_io_uring_depth": ("16", "mpiox_storage=io_uring"),
    "mpiox_device_buffer": ("64k", ROUNDS),
    "cb_buffer_size": ("64k", ROUNDS),
    "cb_nodes": ("2", ROUNDS),
    "ind_wr_buffer_size": ("64k", "romio_ds_write=enable"),
    "ind_rd_buffer_size": ("64k", "romio_ds_read=enable"),
    "striping_unit": ("64k", f"{ROUNDS}:mpiox_partition=static_cyclic"),
    "striping_factor": ("4", f"{ROUNDS}:mpiox_partition=group_cyclic:striping_unit=4k"),
    "start_iodevice": ("1", ROUNDS),
    "mpiox_delegate_cache": ("4m", DELEGATES),
    "mpiox_delegate_page": ("64k", f"{DELEGATES}:mpiox_delegate_cache=4m"),
    "mpiox_delegate_threads": ("2", DELEGATES),
    "mpiox_delegate_prefetch": ("4", DELEGATES),
    "mpiox_delegate_bypass": ("8k", DELEGATES),
    "mpiox_delegate_write_behind": ("64k", f"{DELEGATES}:mpiox_ranks_per_node=1"),
    "mpiox_delegate_timeout": ("30", DELEGATES),
    "mpiox_delegate_report": ("20", DELEGATES),
    "mpiox_delegate_quantum": ("16k", f"{DELEGATES}:mpiox_delegate_scheduler=aioli"),
    "mpiox_delegate_time_slice": ("500", f"{DELEGATES}:mpiox_delegate_scheduler=twins"),
    "mpiox_delegate_patience": ("1000", f"{DELEGATES}:mpiox_delegate_scheduler=mlf"),
    "mpiox_delegate_weight": ("3", f"{DELEGATES}:mpiox_delegate_scheduler=wfq"),
    "mpiox_delegate_owners": ("1", DELEGATES),
    "mpiox_drain_rate": ("1m", DELEGATES),
    "mpiox_drain_patience": ("60", DELEGATES),
    "mpiox_subfile_unit": ("64k", f"{ROUNDS}:mpiox_subfiles=3"),
}
#: Texts that are numbers: values and surroundings. (Of ``*:0`` ROMIO itself says at open that no aggregator matches.)
COUNTS = {
    "mpiox_delegates": (("576",), "mpiox_delegate_mode=thread"),
    "mpiox_subfiles": (("0", "1", "4096", "per_node=1", "per_server"), f"{ROUNDS}:mpiox_subfile_unit=4k"),
    "cb_config_list": (("*:1", "*:2147483647", "*:*"), ROUNDS),
}
#: Others of these, which all examples have. Shares and numbers per node of usual size run each time in other tests.
MORE_COUNTS = {"mpiox_delegates": ("0", "1", "50%", "100%", "per_node=1", "per_node=576")}
#: The most that is tried: a slice of a second in which a server is not served is waited for at every request.
TRIED = {"mpiox_delegate_time_slice": "100000"}


def bounds_of(spec: hints.HintSpec) -> tuple[str, str]:
    """Return the smallest and the largest value by the registry."""
    found = re.search(r"^(-?\d+) \.\. (\d+)$|^(1 or more )?bytes up to (\d+[mgt]), ", spec.values)
    assert found, f"{spec.name}: no bounds in {spec.values!r}"
    if spec.type == "integer":
        return found[1], found[2]
    return ("1" if found[3] else "0"), found[4]


NUMBERS = {spec.name: spec for spec in hints.registry() if spec.type in ("integer", "bytes")}
#: Those that need no delegates: a launch can try each value of each of them.
OF_FILES = [name for name in sorted(NUMBERS) if "mpiox_delegates" not in USUAL.get(name, ("", DELEGATES))[1]]
#: What was in force under each value, and what was printed.
Found = tuple[list[dict[str, str]], str]


def values_of(name: str) -> list[str]:
    """Return the values that are tried. Other tests have the usual ones of delegates, which are a launch each here."""
    least, most = bounds_of(NUMBERS[name])
    usual = [USUAL[name][0]] if fuzz.all_examples() or not name.startswith("mpiox_delegate") else []
    return list(dict.fromkeys((least, "1" if least in ("0", "-1") else least, *usual, TRIED.get(name, most))))


def launched(folder: pathlib.Path, texts: Sequence[str]) -> Found:
    """Write and read in all ways under each of these hints in turn, in one launch."""
    launch = python_run([PROGRAMS / "hint_ranges.py", folder, *texts], 3, env={"MPIOX_HINTS": texts[0]}, timeout_s=240)
    seen = [json.loads(line[5:]) for line in launch.stdout.splitlines() if line.startswith("SEEN ")]
    assert len(seen) == len(texts)
    return seen, launch.stderr


def round_trips(folder: pathlib.Path, name: str, values: Sequence[str], around: str) -> Found:
    """Write and read in all ways under each value in turn; return what was in force each time, and what was said."""
    # The MPI library alone may not bear these hints. What delegates are started with holds for the launch.
    if not name.startswith("mpiox_delegate"):
        return launched(folder, [f"ours*:{around}:{name}={value}" for value in values])
    said = ""
    seen: list[dict[str, str]] = []
    for value in values:
        (place := folder / str(len(seen))).mkdir()
        found, printed = launched(place, [f"*:{around}:{name}={value}"])
        seen += found
        said += printed
    return seen, said


@pytest.fixture(scope="module")
def of_files(extension: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Found]:
    """Return what was found of each of OF_FILES, all in one launch."""
    tried = [(name, value) for name in OF_FILES for value in values_of(name)]
    texts = [f"ours*:{USUAL[name][1]}:{name}={value}" for name, value in tried]
    seen, said = launched(tmp_path_factory.mktemp("files"), texts)
    return {name: ([each for (of, _), each in zip(tried, seen, strict=True) if of == name], said) for name in OF_FILES}


def test_every_number_has_a_usual_value() -> None:
    """A new hint that is a size or a count needs a line here."""
    assert set(USUAL) == set(NUMBERS)


@pytest.mark.slow_with(
    "mpiox_delegate_patience",
    "mpiox_delegate_quantum",
    "mpiox_delegate_report",
    "mpiox_delegate_time_slice",
    "mpiox_delegate_timeout",
    "mpiox_delegate_weight",
)
@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_smallest_usual_and_largest(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: pathlib.Path, name: str
) -> None:
    values = values_of(name)
    if name in OF_FILES:
        found, said = request.getfixturevalue("of_files")[name]
    else:
        found, said = round_trips(tmp_path, name, values, USUAL[name][1])
    assert ("the machine has" in said) == (name == "mpiox_delegate_cache"), said
    for value, seen in zip(values, found, strict=True):
        monkeypatch.setenv("MPIOX_HINTS", f"*:{name}={value}")
        assert seen[name] == next(hint.value for hint in hints.in_force() if hint.spec.name == name)


@pytest.mark.both_with("cb_config_list")
@pytest.mark.slow_with("mpiox_delegates")
@pytest.mark.parametrize("name", COUNTS)
def test_texts_that_are_counts(tmp_path: pathlib.Path, name: str) -> None:
    values, around = COUNTS[name]
    round_trips(tmp_path, name, (*values, *(MORE_COUNTS.get(name, ()) if fuzz.all_examples() else ())), around)


def test_a_list_that_allows_no_node_is_a_line(tmp_path: pathlib.Path) -> None:
    if mpi_family() == "mpich":
        pytest.skip("ROMIO refuses the open: no aggregators match")
    _, printed = round_trips(tmp_path, "cb_config_list", ["nosuch:2", "*:0"], ROUNDS)
    line = "mpiio_ext: cb_config_list=nosuch:2 allows no node of the job: each has one aggregator\n"
    assert printed.count(line) == printed.count("allows no node") == 1, printed


def test_a_list_that_is_none_of_romio_is_a_bad_value(tmp_path: pathlib.Path) -> None:
    seen, printed = round_trips(tmp_path, "cb_config_list", ["*:two", "a;b"], ROUNDS)
    assert [each.get("cb_config_list", "") for each in seen] == ["", ""]
    assert 'hint cb_config_list has the bad value "*:two"; allowed: ROMIO\'s syntax' in printed
