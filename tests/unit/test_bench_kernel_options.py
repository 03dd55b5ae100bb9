"""Kernels on the command line of the bench: which are chosen, sizes and parameters; what would be run, in words."""

from __future__ import annotations

import dataclasses
import io
import shlex
from typing import Any

import click
import pytest
from rich.console import Console

from mpiio_ext.bench import interfaces, kernels
from mpiio_ext.bench.errors import SetupError
from mpiio_ext.bench.kernels.request import (
    KernelRequest,
    command_words,
    convert_parameter,
    parameter_kinds,
    parse_parameter,
)
from mpiio_ext.bench.preview import launch_ranks, print_kernels, print_plan, volume_of
from mpiio_ext.bench.record import configuration
from mpiio_ext.bench.results.table import parts, print_table, print_worth
from mpiio_ext.bench.work import needed_bytes, plan
from mpiio_ext.common.results import Row, measure, with_ratios
from mpiio_ext.errors import ArgumentError
from support import report_results
from support.bench_options import parse

pytestmark = pytest.mark.usefixtures("every_interface_is_there")

VPIC = kernels.KERNELS["vpic"]


def error_of(*arguments: str) -> str:
    with pytest.raises(click.ClickException) as caught:
        parse(*arguments)
    return caught.value.format_message()


def printed(function, *arguments) -> str:
    text = io.StringIO()
    function(Console(file=text, width=200), *arguments)
    return text.getvalue()


# ---- which ----


#: Words of a command line that choose kernels, patterns, sizes and interfaces.
CHOSEN = (
    "-k vpic",
    "-w btio",
    "-w btio -k vpic,hacc",
    "",
    "-k vpic --scale 0.5 -P particles=1000",
    "-k vpic --quick",
    "-w block3d -k vpic,madbench -i mpiio,posix",
)


@pytest.mark.parametrize("words", CHOSEN)
def test_what_is_chosen(words, expected):
    options = parse(*words.split())
    work = plan(options, 3)
    expected(
        {
            "patterns": sorted({f"{case.variant} [{case.interface.name}]" for case in work.patterns}),
            "kernels": [f"{one.kernel}, {one.preset}: {one.create(3)}" for one in options.kernels],
            "interfaces": [f"{item.request.kernel} [{item.interface.name}]" for item in work.kernels],
        }
    )


def test_all_kernels_are_chosen_but_not_required():
    options = parse("-k", "all", "--preset", "C")
    assert [request.kernel for request in options.kernels] == list(kernels.KERNELS)
    work = plan(options, 4)
    assert {item.request.kernel for item in work.kernels} == {"nas_btio"}
    assert any(item.what == "vpic" and "no preset 'C'" in item.reason for item in work.absent)
    with pytest.raises(SetupError, match="--kernel vpic: no preset 'C'"):
        plan(parse("-k", "vpic", "--preset", "C"), 4)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["-k", "vpik"], "did you mean 'vpic'"),
        (["-k", "vpic", "--preset", "huge"], "--preset"),
        (["-k", "vpic", "--scale", "0"], "--scale"),
        (["-k", "vpic", "-P", "particles"], "not of the form name=value"),
        (["-k", "vpic", "-P", "partikel=1"], "unknown parameter 'partikel' (known: particles)"),
        (["-k", "vpic", "-P", "particles=many"], "particles must be a whole number"),
        (["-k", "vpic,hacc", "-P", "particles=1"], "exactly one --kernel"),
        (["-P", "particles=1"], "exactly one --kernel"),
        (["--ranks", "3"], "--dry-run and --list"),
        (["--suite", "nightly"], "or a parameter file FILE.toml"),
    ],
)
def test_wrong_arguments_are_one_clear_line(arguments, message):
    assert message in error_of(*arguments)


def test_an_interface_that_is_missing_is_left_out_unless_named(monkeypatch):
    monkeypatch.setattr(type(interfaces.REGISTRY["hdf5"]), "absent_reason", lambda self: "h5py is built without MPI")
    work = plan(parse("-k", "vpic"), 4)
    assert [item.interface.name for item in work.kernels] == ["mpiio"]
    assert [(item.what, item.reason) for item in work.absent] == [("HDF5 variants", "h5py is built without MPI")]
    with pytest.raises(SetupError, match="--interface hdf5: h5py is built without MPI"):
        plan(parse("-k", "vpic", "-i", "hdf5"), 4)


def test_nothing_to_run_is_an_error():
    with pytest.raises(SetupError, match="nothing to run"):
        plan(parse("-k", "vpic", "-i", "posix"), 4)
    with pytest.raises(SetupError, match="none of the methods"):
        plan(parse("-k", "madbench", "-i", "posix", "-m", "auto"), 4)


# ---- parameters ----


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Many(VPIC):
    """A kernel with a parameter of each kind."""

    flag: bool = False
    part: float = 0.5
    text: str = "a"
    shape: tuple[int, ...] = (1, 2)


@pytest.mark.parametrize(
    "text, value",
    [
        ("particles=12", 12),
        ("particles=4KiB", 4096),
        ("flag=true", True),
        ("flag=no", False),
        ("part=1e-3", 1e-3),
        ("text=hello", "hello"),
        ("shape=3,4,5", (3, 4, 5)),
        ("shape=7", (7,)),
    ],
)
def test_parameters_from_text(text, value):
    name, found = parse_parameter(Many, text)
    assert (name, found, type(found)) == (text.partition("=")[0], value, type(value))


@pytest.mark.parametrize(
    "name, value",
    [("particles", 1.5), ("particles", True), ("flag", 3), ("part", "much"), ("shape", ["x"]), ("flag", "maybe")],
)
def test_parameters_of_another_type_are_refused(name, value):
    with pytest.raises(ArgumentError, match=f"vpic: {name} must be"):
        convert_parameter(Many, name, value)


@pytest.mark.parametrize("name", list(kernels.KERNELS))
def test_every_preset_of_every_kernel_survives_the_command_line(name):
    """The options that are printed for a row ask for the very kernel that was run."""
    kind = kernels.KERNELS[name]
    assert set(parameter_kinds(kind)) == {field.name for field in dataclasses.fields(kind)} - {"ranks"}
    for preset in kind.presets:
        request = KernelRequest(
            kernel=name, interfaces=kind.interfaces, preset=preset, scale=0.5, parameters=dict(kind.presets[preset])
        )
        (again,) = parse(*command_words(request)).kernels
        assert dataclasses.replace(again, required=True) == dataclasses.replace(request, required=True)
        assert again.create(4) == request.create(4)


# ---- what would be run ----


def test_space_counts_the_files_that_are_kept_for_comparison():
    (item,) = plan(parse("-k", "madbench", "-i", "mpiio", "--preset", "quick", "-m", "native,auto"), 4).kernels
    once = needed_bytes(plan(parse("-k", "madbench", "-i", "posix", "--preset", "quick"), 4))
    twice = needed_bytes(plan(parse("-k", "madbench", "-i", "mpiio", "--preset", "quick"), 4))
    assert twice == 2 * once
    assert once >= item.bytes


def test_volume_is_that_of_the_steps():
    kernel = kernels.create("bdcats", 3, preset="quick")
    volume = volume_of(kernel, "hdf5")
    assert volume.written_bytes == 3 * kernel.particles * 32 == kernel.data_bytes("particles", "hdf5")
    assert volume.read_bytes == 3 * kernel.particles * 24
    assert volume.files == 1


def test_plan_in_words_names_each_item_and_the_total(expected):
    options = parse(
        "-w",
        "block3d",
        "-s",
        "1MiB",
        "-k",
        "bdcats,hacc",
        "-i",
        "mpiio",
        "--preset",
        "quick",
        "-m",
        "native,auto",
        "-r",
        "2",
        "-H",
        "cb_nodes=2",
        "--dry-run",
        "--ranks",
        "3",
    )
    work = plan(options, launch_ranks(options))
    text = printed(print_plan, options, work, 3)
    expected("\n".join(line.rstrip() for line in text.splitlines()))
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("mpirun")]
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line)
        assert words[:6] == ["mpirun", "-n", "3", "python", "-m", "mpiio_ext.bench"]
        alone = plan(parse(*words[6:]), 3)
        assert len(alone.cases) == 1
        assert [strategy.name for strategy in alone.methods] == ["native", "auto"]
        assert parse(*words[6:]).hints == {"cb_nodes": "2"}


def test_list_names_every_kernel_interface_and_preset():
    options = parse("--list", "--ranks", "4")
    text = printed(print_kernels, options, launch_ranks(options))
    for kind in kernels.KERNELS.values():
        assert kind.name in text
        assert all(word in text for word in (*kind.interfaces, *kind.presets))
    bytes_ = sum(layout.size_bytes for layout in kernels.create("vpic", 4, preset="quick").files())
    assert f"quick {bytes_ / 1e6:,.1f} MB" in text


def test_configuration_reproduces_each_row():
    options = parse("-k", "vpic", "--scale", "0.25", "-P", "particles=4000", "-i", "mpiio")
    recorded = configuration(options, plan(options, 2))["kernels"]["vpic"]
    assert recorded["particles"] == 1000
    assert (recorded["name"], recorded["preset"], recorded["scale"]) == ("vpic", "laptop", 0.25)
    assert parse(*recorded["options"]).kernels[0].create(2) == kernels.create("vpic", 2, parameters={"particles": 1000})


# ---- table ----


def row(kind: str, variant: str, phase: str, operation: str, strategy: str, order: int, speed: float = 1.0) -> Row:
    of: dict[str, Any] = {"label": variant.upper(), "interface": "hdf5", "kind": kind, "phase": phase, "order": order}
    of |= {"bandwidth_mb_per_s": speed, "bandwidth_total_mb_per_s": speed}
    return report_results.row(variant, strategy, operation, **of)


def test_phases_stand_side_by_side_only_as_one_write_and_one_read(expected):
    rows = [
        row("kernel", "pair", "out", "write", "native", 0),
        row("kernel", "pair", "in", "read", "native", 0),
        row("kernel", "three", "S", "write", "native", 1),
        row("kernel", "three", "W", "both", "native", 1),
        row("kernel", "three", "C", "read", "native", 1),
        row("kernel", "one", "dump", "write", "native", 2),
        row("pattern", "old", "", "write", "native", 3),
        row("pattern", "old", "", "read", "native", 3),
    ]
    summaries = measure(with_ratios(rows))
    text = printed(print_table, summaries)
    expected({"parts": list(parts(summaries)), "table": "\n".join(line.rstrip() for line in text.splitlines())})


@pytest.mark.parametrize("peers", [True, False])
def test_the_default_method_is_compared_with_what_programs_do_without_mpi_io(peers):
    """With the fastest of all other ways, HDF5 aside; not where there is none without MPI-IO."""
    speeds = {
        ("mpiio", "auto", "write"): 60,
        ("mpiio", "native", "write"): 20,
        ("posix", "native", "write"): 40,
        ("mpiio", "auto", "read"): 60,
        ("mpiio", "native_tuned", "read"): 80,
        ("transposed", "native", "read"): 50,
        ("hdf5", "auto", "write"): 900,
        ("hdf5", "native", "write"): 500,
    }
    rows = [
        dataclasses.replace(row("kernel", "pair", "", operation, strategy, 0, speed), interface=way)
        for (way, strategy, operation), speed in speeds.items()
        if peers or way in ("mpiio", "hdf5")
    ]
    text = io.StringIO()
    print_worth(Console(file=text, width=132), measure(with_ratios(rows)))
    said = "auto ÷ the fastest other way, PAIR: write 1.50 (POSIX), read 0.75 (native_tuned)\n"
    assert text.getvalue().count("auto ÷") == text.getvalue().count(said) == peers
