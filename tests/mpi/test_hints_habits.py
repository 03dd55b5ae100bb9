"""Hints from ROMIO_HINTS, MPICH_MPIIO_HINTS and Open MPI's parameters, in force for an open file on every rank."""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Iterable

import pytest

from support import hosts
from support.cases import Case, Cases
from support.launch import base_environment, launcher, mpi_family, python_run, run_bounded

# isort: split
from cluster import launchers

pytestmark = [pytest.mark.mpi, pytest.mark.both]

PROGRAM = """
import os
import sys

import mpiio_ext.hints
from mpi4py import MPI

comm = MPI.COMM_WORLD
folder = sys.argv[1]
if comm.rank > 0:  # rank 0 reads the sources, for all
    os.environ["ROMIO_HINTS"] = "/dev/null"
    os.environ["MPICH_MPIIO_HINTS"] = "*:cb_nodes=7:ind_wr_buffer_size=7"
    os.environ["OMPI_MCA_fs_lustre_stripe_width"] = "7"
info = MPI.Info.Create()
info.Set("cb_nodes", "2")
info.Set("ind_rd_buffer_size", "1048576")
info.Set("romio_lustre_start_iodevice", "0")  # by its older name
file = MPI.File.Open(comm, folder + "/data.h5", MPI.MODE_CREATE | MPI.MODE_RDWR, info)
found = {item.spec.name: (item.value, item.source) for item in mpiio_ext.hints.of(file)}
expected = {
    "cb_nodes": ("3", "MPICH_MPIIO_HINTS"),  # stronger than MPI_Info, as in Cray's MPI
    "ind_wr_buffer_size": ("262144", "MPICH_MPIIO_HINTS"),
    "ind_rd_buffer_size": ("1048576", "MPI_Info"),  # stronger than ROMIO_HINTS, as in ROMIO
    "start_iodevice": ("0", "MPI_Info"),
    "cb_buffer_size": ("4194304", "ROMIO_HINTS"),  # the first value
    "striping_unit": ("65536", "ROMIO_HINTS"),
    "striping_factor": ("1", "Open MPI parameter"),
    "romio_ds_write": ("disable", "site file"),
    "mpiox_buffers": ("4", "MPIOX_HINTS"),
}
for name, value in expected.items():
    assert found[name] == value, (name, found[name])
told = file.Get_info()
for name, (value, _) in expected.items():
    value = str(min(3, comm.size)) if name == "cb_nodes" else value  # as many as there are
    assert told.Get(name) == value, (name, told.Get(name))
told.Free()
data = bytes([65 + comm.rank]) * 1000
file.Write_at_all(1000 * comm.rank, data)
file.Close()
if comm.rank == 0:
    with open(folder + "/data.h5", "rb") as stream:
        assert stream.read() == b"".join(bytes([65 + rank]) * 1000 for rank in range(comm.size))
info.Free()
"""
ENVIRONMENT = {
    "MPIOX_SITE_FILE": "{folder}/site",
    "ROMIO_HINTS": "{folder}/romio",
    "MPICH_MPIIO_HINTS": "*.nc:cb_nodes=9,*.h5:cb_nodes=3:ind_wr_buffer_size=256k,*:cb_nodes=8",
    "OMPI_MCA_fs_lustre_stripe_width": "1",
    "OMPI_MCA_fs_lustre_stripe_size": "4096",
    "MPIOX_HINTS": "mpiox_buffers=4",
}
FILES = {
    "site": "romio_ds_write = disable\nstriping_factor = 3\n",
    "romio": (
        "# first values count\ncb_buffer_size 4M\ncb_buffer_size 8M\nstriping_unit 65536\ncb_nodes 1\n"
        "ind_rd_buffer_size 12345\nunknown_to_us_and_them 1\nthis line is wrong\n"
    ),
}
RANKS = (1, 2, 3, 4, 5)
CASES = {str(ranks): Case(text=PROGRAM, ranks=ranks, environment=ENVIRONMENT, files=FILES) for ranks in RANKS}


@pytest.mark.parametrize("ranks", RANKS)
def test_habits(cases: Cases, ranks: int) -> None:
    """Each source at its place, the same on all ranks although only rank 0 has the variables; reported by MPI."""
    cases.result(str(ranks))


#: The hints of a file as MPI tells them, with the library or, after "native", without.
TELL = """
import json, sys
if sys.argv[2] != "native":
    import mpiio_ext
from mpi4py import MPI
info = MPI.Info.Create()
info.Set("ind_rd_buffer_size", "1048576")
for pair in sys.argv[3:]:
    info.Set(*pair.split("="))
file = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR, info)
told = file.Get_info()
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps({name: told.Get(name) for name in told.keys()}))
file.Close()
"""
AS_ROMIO = {
    "ind_rd_buffer_size": "1048576",  # of the program
    "ind_wr_buffer_size": "131072",
    "romio_ds_write": "disable",
    "romio_cb_read": "disable",
    "striping_unit": "65536",
}


@pytest.mark.skipif(mpi_family() != "mpich", reason="the MPI library is to be ROMIO's")
def test_as_romio_does(tmp_path: pathlib.Path) -> None:
    """ROMIO alone and the library tell the same: the program wins, first values hold, other lines do not count."""
    (tmp_path / "romio").write_text(
        "# what both read\nind_rd_buffer_size 65536\nind_wr_buffer_size 131072\nind_wr_buffer_size 262144\n"
        "romio_ds_write = enable\nromio_ds_write disable\nromio_cb_read enable # really\nromio_cb_read\tdisable\n"
        "striping_unit 65536\n",
        encoding="utf-8",
    )
    environment = {"ROMIO_HINTS": str(tmp_path / "romio"), "NATIVE": "1"}
    native, ours = (
        json.loads(python_run(["-c", TELL, f"{tmp_path}/data", word], 2, env=environment).stdout)
        for word in ("native", "ours")
    )
    assert native.items() >= AS_ROMIO.items()
    different = {name for name, value in native.items() if ours[name] != value}
    own = {"cb_nodes", "cb_buffer_size", "romio_aggregator_list"}  # what each finds by itself
    assert different <= own
    assert all(name.startswith("mpiox_") for name in ours.keys() - native.keys())


@pytest.mark.parametrize("pairs", [("striping_unit=65536",), ("romio_cb_write=disable", "romio_no_indep_rw=true")])
def test_what_the_program_did_not_say_is_not_told(tmp_path: pathlib.Path, pairs: tuple[str, ...]) -> None:
    """No striping factor out of a striping unit; collective buffering is on where no independent access will come."""
    native, ours = (
        json.loads(python_run(["-c", TELL, f"{tmp_path}/data", word, *pairs], 2).stdout) for word in ("native", "ours")
    )
    assert ours.get("striping_factor", "0") == native.get("striping_factor", "0")
    if mpi_family() == "mpich":
        for name in ("romio_cb_read", "romio_cb_write", "romio_no_indep_rw", "striping_unit"):
            assert ours.get(name) == native.get(name)
    if "romio_no_indep_rw=true" in pairs:
        assert (ours["romio_cb_read"], ours["romio_cb_write"]) == ("enable", "enable")


DISABLED, ALONE = "romio_cb_write=disable", "romio_no_indep_rw=true"


@pytest.mark.parametrize(
    ("info", "variables"),
    [(DISABLED, {"MPIOX_HINTS": ALONE}), (ALONE, {"MPIOX_HINTS": DISABLED}), (DISABLED, {"ROMIO_HINTS": ALONE})],
)
def test_no_independent_accesses(tmp_path: pathlib.Path, info: str, variables: dict[str, str]) -> None:
    """They switch collective buffering on, whichever source switches it off, here and in ROMIO."""
    if "ROMIO_HINTS" in variables:
        (tmp_path / "romio").write_text(variables["ROMIO_HINTS"].replace("=", " ") + "\n", encoding="utf-8")
        variables = {"ROMIO_HINTS": str(tmp_path / "romio")}
    for word in ("native", "ours")[mpi_family() != "mpich" or "ROMIO_HINTS" not in variables :]:
        told = json.loads(python_run(["-c", TELL, f"{tmp_path}/data", word, info], 2, env=variables).stdout)
        assert (told["romio_cb_read"], told["romio_cb_write"]) == ("enable", "enable"), word


# ---- display ---------------------------------------------------------------------------------------------------------


def shown(text: str) -> dict[str, dict[str, str]]:
    """Return file -> {hint: value and source} of what is displayed."""
    files: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if line.startswith("mpiio_ext: PE 0: MPIIO hints for "):
            hints = files.setdefault(line.removeprefix("mpiio_ext: PE 0: MPIIO hints for ").removesuffix(":"), {})
        elif line.startswith(" " * 10):
            name, _, value = line.strip().partition(" = ")
            assert name.rstrip() not in hints  # once, although two ranks have opened the file
            hints[name.rstrip()] = value
    return files


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("MPICH_MPIIO_HINTS_DISPLAY", "1", True),
        ("MPICH_MPIIO_HINTS_DISPLAY", "enabled", True),
        ("MPICH_MPIIO_HINTS_DISPLAY", "0", False),
        ("ROMIO_PRINT_HINTS", "1", True),
        ("ROMIO_HINTS", "", False),
    ],
)
def test_display(tmp_path: pathlib.Path, variable: str, value: str, *, expected: bool) -> None:
    """The variables by which Cray's MPI and ROMIO show hints: what MPI_File_get_info tells, and who has set it."""
    environment = {"MPICH_MPIIO_HINTS": "*:cb_nodes=1:striping_unit=64k", variable: value}
    done = python_run(["-c", TELL, f"{tmp_path}/data", "ours"], 2, env=environment)
    found = shown(done.stderr)
    if not expected:
        assert found == {}
        return
    assert list(found) == [f"{tmp_path}/data"]
    hints = found[f"{tmp_path}/data"]
    assert hints["cb_nodes"] == "1 (MPICH_MPIIO_HINTS)"
    assert hints["striping_unit"] == "65536 (MPICH_MPIIO_HINTS)"
    assert hints["ind_rd_buffer_size"] == "1048576 (MPI_Info)"
    assert hints["mpiox_buffers"] == "2"
    (told,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert {name: value.partition(" (")[0].strip() for name, value in hints.items()} == {
        name: value.partition(" (")[0].strip() for name, value in told.items()
    }


# ---- aggregators -----------------------------------------------------------------------------------------------------

AGGREGATORS = """
import sys
import mpiio_ext, mpiio_ext.stats
from mpi4py import MPI
comm = MPI.COMM_WORLD
file = MPI.File.Open(comm, sys.argv[1] + "/data", MPI.MODE_CREATE | MPI.MODE_RDWR)
info = file.Get_info()
ranks = [int(word) for word in info.Get("romio_aggregator_list").split()]
assert len(set(ranks)) == len(ranks) == int(info.Get("cb_nodes")) == min(2, comm.size), ranks
file.Write_at_all(comm.rank * 100000, bytes(100000))
found = comm.allgather(mpiio_ext.stats.of(file).write_requests)
assert sorted(ranks) == [rank for rank, requests in enumerate(found) if requests], (ranks, found)
file.Close()
"""
OWNERS = {"MPIOX_HINTS": "*:mpiox_exchange=two_phase:mpiox_io_rank=owner:mpiox_ranks_per_node=2:cb_nodes=2"}
CASES |= {f"aggregators {ranks}": Case(text=AGGREGATORS, ranks=ranks, environment=OWNERS) for ranks in RANKS}


@pytest.mark.parametrize("ranks", RANKS)
def test_aggregators_are_those_that_write(cases: Cases, ranks: int) -> None:
    """ROMIO's romio_aggregator_list names the ranks that this library has chosen, not those of the MPI library."""
    cases.result(f"aggregators {ranks}")


# ---- the info object of one file opens another ---------------------------------------------------------------------

NEXT_FILE = """
import sys
from mpi4py import MPI
def reopened(info):
    file = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1] + "/data", MPI.MODE_CREATE | MPI.MODE_RDWR, info)
    found = file.Get_info()
    file.Close()
    return found, dict(pair.split("=") for pair in found.Get("mpiox_chosen").split(";") if pair)
info = MPI.INFO_NULL
for _ in range(3):
    info, chosen = reopened(info)
    assert chosen == {name: info.Get(name) for name in ("cb_nodes", "cb_buffer_size")}, chosen
info.Set("cb_buffer_size", str(2 * int(info.Get("cb_buffer_size"))))
for _ in range(2):
    info, chosen = reopened(info)
    assert chosen == {"cb_nodes": info.Get("cb_nodes")}, chosen
info.Set("cb_nodes", "1")
info, chosen = reopened(info)
assert (info.Get("cb_nodes"), chosen) == ("1", {}), chosen
"""
CASES |= {"next file": Case(text=NEXT_FILE, ranks=2, environment={"MPIOX_HINTS": "*:mpiox_ranks_per_node=1"})}


def test_the_next_file_takes_no_choice_as_a_request(cases: Cases) -> None:
    """HDF5 1.14 and later open each file of an access list with the info object of the one before."""
    cases.result("next file")


# ---- other hosts -----------------------------------------------------------------------------------------------------


def forgetful(agent: pathlib.Path, names: Iterable[str], made: pathlib.Path) -> pathlib.Path:
    """Return an agent that hands no such variables on, as ssh does not; the cluster's hands the environment on."""
    made.write_text(f'#!/bin/sh\nunset {" ".join(names)}\nexec {agent} "$@"\n', encoding="utf-8")
    made.chmod(0o755)
    return made


@pytest.mark.parametrize("own_option", [False, True])
def test_variables_reach_other_hosts(family: str, extension: str, *, own_option: bool) -> None:
    """`mpiio-ext run` hands them on, to rank 0 of a file that is on a host which has not the launcher's environment."""
    hosts.require()
    with hosts.cluster(2) as cluster:
        (cluster.folder / "romio").write_text("striping_unit 65536\n", encoding="utf-8")
        variables = {
            "ROMIO_HINTS": f"{cluster.folder}/none" if own_option else f"{cluster.folder}/romio",
            "MPICH_MPIIO_HINTS": "*:ind_wr_buffer_size=128k",
            "MPICH_MPIIO_HINTS_DISPLAY": "1",
        }
        own = {"openmpi": ["-x", f"ROMIO_HINTS={cluster.folder}/romio"]}.get(
            family, ["-genv", "ROMIO_HINTS", f"{cluster.folder}/romio"]
        )
        agent = forgetful(cluster.agent, variables, cluster.folder / "agent")
        words = launchers.start_of(family, str(launcher()), agent, {2: 1}, 1, own if own_option else [])
        program = [sys.executable, "-c", TELL, f"{cluster.folder}/data", "ours"]
        command = cluster.on(1, [pathlib.Path(sys.prefix) / "bin/mpiio-ext", "run", "--", *words, *program])
        done = run_bounded(command, env=base_environment() | variables, timeout_s=60.0, cwd=cluster.folder)
    (told,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert told["striping_unit"] == "65536" and told["ind_wr_buffer_size"] == "131072"
    assert "striping_unit            = 65536 (ROMIO_HINTS)" in done.stderr
