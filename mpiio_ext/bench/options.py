"""The options of the command, and the command line that makes them.

An option on the command line overrides ``--quick``, which overrides a suite, which overrides the defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from mpiio_ext.bench import interfaces, kernels, methods
from mpiio_ext.bench.arguments import HintType, ListType, one_of, positive_size
from mpiio_ext.bench.asked import Options
from mpiio_ext.bench.kernels import Sizes
from mpiio_ext.bench.kernels.request import DEFAULT_PRESET, KernelRequest, parse_parameter
from mpiio_ext.bench.methods import Method, parse_method, with_delegates, without_delegates
from mpiio_ext.bench.suites import files
from mpiio_ext.bench.suites.files import Suite
from mpiio_ext.common.commands import LazyGroup, output_option
from mpiio_ext.common.options import Duration, Size
from mpiio_ext.errors import ArgumentError

#: Values that a preset gives to options that the user did not give, as they would be typed.
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "size": "8MiB",
        "block": "64KiB,512B",
        "repeats": 3,
        "method": "native,auto,even,group_cyclic,transpose",
        "native_limit": 2.0,
        "preset": "quick",
    }
}

_INTERFACES = list(interfaces.REGISTRY)
_PRESET_NAMES = list(dict.fromkeys(name for kind in kernels.KERNELS.values() for name in kind.presets))


# ---- suites and presets: defaults that are not the command's own ----


def _use_quick(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    if value:
        ctx.meta["quick"] = PRESETS["quick"]
        ctx.default_map = {**(ctx.default_map or {}), **PRESETS["quick"]}
    return value


def _checked_options(ctx: click.Context, suite: Suite) -> dict[str, Any]:
    """Return the suite's options after a check of names and values; raises ArgumentError with file and entry."""
    known = {param.name: param for param in ctx.command.params if param.name}
    options = dict(suite.options)
    for name, value in suite.options.items():
        try:
            one_of(known)(name)
            if known[name].multiple and isinstance(value, str):
                options[name] = value = [value]
            known[name].type_cast_value(ctx, value)
        except click.BadParameter as error:
            raise ArgumentError(f"{suite.where}: options.{name}: {error.message}") from error
        except ValueError as error:
            raise ArgumentError(f"{suite.where}: options: {error}") from error
    return options


def _use_suite(ctx: click.Context, _: click.Parameter, value: str | None) -> Suite | None:
    if value is None:
        return None
    try:
        suite = files.load(value)
        given = _checked_options(ctx, suite)
    except ArgumentError as error:
        raise click.BadParameter(str(error), param_hint="'--suite'") from error
    ctx.default_map = {**(ctx.default_map or {}), **given, **ctx.meta.get("quick", {})}
    return suite


# ---- which patterns and kernels ----


class _Choice:
    """Decides which patterns and kernels are requested: -k alone means no patterns, -w alone no kernels."""

    def __init__(self, ctx: click.Context, values: dict[str, Any]) -> None:
        self._ctx, self._values = ctx, values
        self._suite: Suite | None = values["suite"]
        self._interfaces: tuple[str, ...] = values["interface"] or ()

    def _given(self, name: str) -> bool:
        return self._ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE

    def _from_suite(self, name: str) -> bool:
        return self._suite is not None and name in self._suite.options

    def patterns(self) -> tuple[str, ...]:
        """Return the patterns."""
        names: tuple[str, ...] = self._values["workload"]
        if self._given("workload"):
            return names
        if self._given("kernel") or (self._suite is not None and not self._from_suite("workload")):
            return ()
        return names

    def kernels(self) -> tuple[KernelRequest, ...]:
        """Return the kernels; raises click.BadParameter."""
        names: tuple[str, ...] = self._values["kernel"] or ()
        if self._given("workload") and not self._given("kernel"):
            names = ()
        elif self._suite is not None and self._suite.entries:
            return self._entries(self._suite, names if self._given("kernel") else ())
        preset = self._values["preset"] or DEFAULT_PRESET
        every = len(names) == len(kernels.KERNELS) > 1
        parameters = self._parameters(names)
        return tuple(
            KernelRequest(
                kernel=name,
                preset=preset,
                parameters=parameters,
                scale=self._values["scale"],
                interfaces=tuple(
                    way for way in kernels.kind_of(name).interfaces if not self._interfaces or way in self._interfaces
                ),
                required=self._given("kernel") and not every,
            )
            for name in names
        )

    def _entries(self, suite: Suite, names: tuple[str, ...]) -> tuple[KernelRequest, ...]:
        """Return the suite's entries, or those of the kernels that are named."""
        self._parameters(())
        strong = self._given("preset") or ("quick" in self._ctx.meta and not self._from_suite("preset"))
        preset = self._values["preset"]
        wanted = [entry for entry in suite.entries if not names or entry.kernel in names]
        missing = set(names) - {entry.kernel for entry in wanted}
        if missing and len(names) < len(kernels.KERNELS):
            raise click.BadParameter(f"{suite.where} has no kernel {sorted(missing)[0]}", param_hint="'--kernel'")
        return tuple(
            entry.request(
                preset=preset if strong else None,
                fallback=preset,
                scale=self._values["scale"],
                interfaces=self._interfaces,
            )
            for entry in wanted
        )

    def _parameters(self, names: tuple[str, ...]) -> dict[str, Any]:
        given = self._values["param"]
        if not given:
            return {}
        if len(names) != 1:
            raise click.BadParameter("goes with exactly one --kernel, without a suite", param_hint="'--param'")
        try:
            return dict(parse_parameter(kernels.kind_of(names[0]), text) for text in given)
        except ArgumentError as error:
            raise click.BadParameter(str(error), param_hint="'--param'") from error


class _Patterns(ListType):
    """Names of patterns; "none" is an empty list."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        return () if value == "none" else super().convert(value, param, ctx)


# ---- the command ----

_SIZE = Size()
_FOLDER = click.Path(path_type=Path)
_LIST_HELP = {
    "workload": ", ".join(kernels.PATTERNS),
    "kernel": ", ".join(kernels.KERNELS),
    "interface": ", ".join(_INTERFACES),
    "method": ", ".join(methods.NAMES),
}

_EPILOG = """
\b
Examples:
  mpirun -n 4 mpiio-ext bench --suite quick --path /dev/shm
  mpirun -n 4 mpiio-ext bench --path /lustre/me --size 4GiB --repeats 5
  mpirun -n 4 mpiio-ext bench -w interleaved --block 8,64,4KiB -m native,auto,even
  mpirun -n 4 mpiio-ext bench -k vpic -i hdf5 -P particles=1000000 -m native,group_cyclic
  mpiio-ext bench --suite tokio-abc --scale 0.1 --dry-run --ranks 64

\b
Every file is verified byte for byte, every read compared; wrong data ends the bench.
Exit status: 0 done, 1 a run failed, 2 bad argument or path, or another suite is running, 3 wrong data.
"""


#: Subcommand -> (module, attribute, help line). All but `explore` are no MPI programs; some launch such.
_COMMANDS = {
    "compare": ("mpiio_ext.bench.compare.compare", "command", "Compare with the native library, launch by launch."),
    "explore": ("mpiio_ext.bench.explore.command", "command", "Under mpirun: patterns over numbers of I/O delegates."),
    "arbitration": ("mpiio_ext.bench.arbitrated.command", "command", "Run two jobs under a live arbiter."),
    "report": ("mpiio_ext.cli.report", "report", "Make one HTML page of results, or compare two sets."),
}


class _Bench(LazyGroup):
    """The bench; as a command of ``mpiio-ext`` it does what ``python -m mpiio_ext.bench`` does."""

    #: `mpiio_ext.bench.__main__` processes its arguments.
    program: Callable[[list[str]], None] | None = None

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Run the bench itself when another program calls it as a command."""
        if parent is None or parent.resilient_parsing or self.program is None:
            return super().make_context(info_name, args, parent=parent, **extra)
        self.program(args)
        raise SystemExit


@click.group(
    name="mpiio-ext bench",
    cls=_Bench,
    subcommands=_COMMANDS,
    invoke_without_command=True,
    context_settings={"max_content_width": 110, "show_default": True},
    epilog=_EPILOG,
)
@click.option(
    "--suite",
    is_eager=True,
    callback=_use_suite,
    metavar="NAME",
    help=f"Run a suite: {', '.join(files.names())}, or a parameter file FILE.toml; options that are given "
    "still count, and --workload or --kernel choose a part of it.",
)
@click.option(
    "--quick",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_use_quick,
    show_default=False,
    help="Small files, fewer methods and repetitions; options that are given still count.",
)
@click.option(
    "--path",
    type=_FOLDER,
    default=".",
    metavar="FOLDER",
    help="Existing folder on the file system to measure; a temporary folder is made in it.",
)
@output_option(
    type=_FOLDER,
    metavar="FOLDER",
    show_default=False,
    help="Where results go.  [default: ./bench-results/<date>, of a suite: in the archive]",
)
@click.option(
    "--archive",
    type=_FOLDER,
    default="bench-results",
    metavar="FOLDER",
    help="Results of suites go to FOLDER/<suite>/<date>/<time>; one suite at a time.",
)
@click.option(
    "-w",
    "--workload",
    type=_Patterns(one_of(kernels.PATTERNS), "LIST", everything=kernels.PATTERNS),
    default="all",
    show_default="all, with --kernel none",
    help=f"Access patterns, comma-separated, all or none: {_LIST_HELP['workload']}.",
)
@click.option(
    "-k",
    "--kernel",
    type=ListType(kernels.kernel_name, "LIST", everything=kernels.KERNELS),
    show_default="none",
    help=f"Kernels of applications, comma-separated or all: {_LIST_HELP['kernel']}; see --list; and "
    "pioneer:FILE, a workload path of mpiio-ext pioneer.",
)
@click.option(
    "--preset",
    type=click.Choice(_PRESET_NAMES),
    metavar="NAME",
    show_default=DEFAULT_PRESET,
    help="Size of the kernels: quick, laptop, published, or a class of a kernel's own; see --list.",
)
@click.option(
    "--scale",
    type=click.FloatRange(min=0, min_open=True, max=kernels.LARGEST_SCALE),
    default=1.0,
    metavar="FACTOR",
    help=f"Multiply the kernels' volume per rank, by at most {kernels.LARGEST_SCALE:g}.",
)
@click.option(
    "-P", "--param", multiple=True, metavar="NAME=VALUE", help="Parameter of the one --kernel; may be repeated."
)
@click.option(
    "-i",
    "--interface",
    type=ListType(one_of(_INTERFACES), "LIST"),
    show_default="all there are",
    help=f"Interfaces, comma-separated: {_LIST_HELP['interface']}; patterns have mpiio, and hdf5 for 3-D arrays.",
)
@click.option(
    "-m",
    "--method",
    type=ListType(parse_method, "LIST"),
    default=",".join(methods.DEFAULT),
    help=f"Methods, comma-separated: {_LIST_HELP['method']}; each with modifiers such as +stripe_size_io or "
    "+cb_nodes=2.",
)
@click.option(
    "--delegates",
    metavar="N",
    show_default="1",
    help="I/O delegates of the method delegates: N, N% of the ranks, or per_node=N; without --method it is "
    "then one of the methods.",
)
@click.option(
    "--delegate-mode",
    type=click.Choice(["spawn", "split", "process", "thread", "auto"]),
    default="spawn",
    help="How they are started.",
)
@click.option(
    "-s",
    "--size",
    type=_SIZE,
    default="64MiB",
    metavar="SIZE",
    help="Size of each file of the patterns; they round down to their geometry.",
)
@click.option(
    "-b",
    "--block",
    type=ListType(positive_size, "LIST"),
    default="64KiB,512B",
    help="interleaved: block sizes, comma-separated.",
)
@click.option(
    "--transfer",
    type=_SIZE,
    default="0",
    metavar="SIZE",
    help="contiguous: bytes per rank and call; 0 = all in one call.",
)
@click.option("--piece", type=_SIZE, default="4KiB", metavar="SIZE", help="random: longest piece.")
@click.option(
    "--ghost", type=click.IntRange(min=0), default=2, metavar="CELLS", help="tiles2d: ghost cells on each side."
)
@click.option("--steps", type=click.IntRange(min=1), default=5, metavar="N", help="btio: time steps in the file.")
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="random: seed of the layout.")
@click.option(
    "-r",
    "--repeats",
    type=click.IntRange(min=1),
    default=3,
    metavar="N",
    help="Repetitions; the methods alternate inside each.",
)
@click.option(
    "--budget",
    type=Duration(zero=True),
    default="75s",
    metavar="TIME",
    help="Repeat fewer rows, and begin no repetition, that would end later than this; 0 = no limit, as when "
    "--repeats is given.",
)
@click.option(
    "--fit/--no-fit",
    default=False,
    help="Make files smaller rather than repeat fewer rows, so that three repetitions fit into --budget.",
)
@click.option(
    "--read-shift",
    type=click.IntRange(min=0),
    default=1,
    metavar="N",
    help="Patterns: rank r reads what rank r+N wrote; 0 = its own data.",
)
@click.option(
    "-H",
    "--hint",
    type=HintType(),
    multiple=True,
    metavar="NAME=VALUE",
    help="Hint for every method, native too; may be repeated.",
)
@click.option("--stripe-size", type=_SIZE, metavar="SIZE", help="Same as --hint striping_unit=SIZE.")
@click.option("--stripe-count", type=click.IntRange(min=1), metavar="N", help="Same as --hint striping_factor=N.")
@click.option(
    "--native-limit",
    type=Duration(zero=True),
    default="6s",
    metavar="TIME",
    help="Native runs of patterns that would take longer use a smaller file and are marked; 0 = no limit.",
)
@click.option(
    "--native-size", type=_SIZE, metavar="SIZE", help="File size of patterns for the native methods, if smaller."
)
@click.option("--figures/--no-figures", "plot", default=True, help="Draw the ratios to native.")
@click.option("--page/--no-page", "report", default=True, help="Make report.html.")
@click.option(
    "--progress/--no-progress",
    default=None,
    show_default="a bar on a terminal, elsewhere lines",
    help="Show progress: the row, of how many in all repetitions, and the time that is left.",
)
@click.option(
    "--list",
    "list_kernels",
    is_flag=True,
    show_default=False,
    help="Print the kernels with interfaces and sizes, and end; needs no mpirun.",
)
@click.option("--dry-run", is_flag=True, show_default=False, help="Print what would be run, and end; needs no mpirun.")
@click.option(
    "--ranks",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="the launcher's, or 4",
    help="For --list and --dry-run: number of ranks.",
)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> Options | None:
    """Measure I/O: access patterns and kernels of parallel codes, native against the extension's methods.

    Each is written, verified, read and compared under every method in turn; results are a table, JSON, Parquet, a plot
    and a report. Run it under mpirun; ranks may outnumber processors.
    """
    return _options(ctx, values) if ctx.invoked_subcommand is None else None


def _hints(values: dict[str, Any]) -> dict[str, str]:
    hints = dict(values["hint"])
    for option, name in (("stripe_size", "striping_unit"), ("stripe_count", "striping_factor")):
        if values[option] is not None:
            hints[name] = str(values[option])
    return hints


def _methods(values: dict[str, Any], *, named: bool) -> tuple[Method, ...]:
    """Return the methods; --delegates adds its own if the user named no method."""
    from mpiio_ext.hints import check, in_force

    chosen: tuple[Method, ...] = values["method"]
    count, mode = values["delegates"], values["delegate_mode"]
    if count is not None:
        try:
            check("mpiox_delegates", count)
        except ArgumentError as error:
            raise click.BadParameter(str(error), param_hint="'--delegates'") from error
        if not named and not any(method.delegated for method in chosen):
            chosen = (*chosen, parse_method("delegates"))
    chosen = tuple(with_delegates(method, count or "1", mode) for method in chosen)
    if any(method.delegated for method in chosen):
        chosen = tuple(method if method.delegated or method.native else without_delegates(method) for method in chosen)
    jobs = {tuple(sorted(method.job_hints.items())): method.name for method in chosen if method.delegated}
    if len(jobs) > 1:
        raise click.BadParameter(
            f"{' and '.join(jobs.values())} differ in the hints of their delegates: all files of "
            "a job have the same ones",
            param_hint="'--method'",
        )
    elsewhere = {one.spec.name: one.value for one in in_force(str(values["path"]))}  # the environment, files of hints
    for hints in (_hints(values), elsewhere, *(dict(method.hints) for method in chosen)):
        wanted = hints.get("mpiox_subfiles", "0")
        if wanted.lower().removeprefix("per_node=") != "0":  # it reads files that were written without the library
            raise click.BadParameter(
                f"mpiox_subfiles={wanted}: the bench verifies plain files alone; to measure subfiles, time the program "
                "and mpiio-ext subfiles merge",
                param_hint="'--hint'",
            )
    return chosen


def _sizes(values: dict[str, Any]) -> Sizes:
    if values["size"] < 1:
        raise click.BadParameter("must be at least one byte", param_hint="'--size'")
    if values["piece"] < 4:
        raise click.BadParameter("must be at least 4 bytes", param_hint="'--piece'")
    return Sizes(
        file_bytes=values["size"],
        blocks_bytes=values["block"],
        transfer_bytes=values["transfer"],
        piece_bytes=values["piece"],
        ghost=values["ghost"],
        steps=values["steps"],
        seed=values["seed"],
    )


#: Fields of `Options` that are values of the command line as they are.
_AS_GIVEN = (
    *("path", "output", "archive", "suite", "delegate_mode", "read_shift", "plot", "report", "progress"),
    *("dry_run", "list_kernels", "ranks", "fit"),
)


def _options(ctx: click.Context, values: dict[str, Any]) -> Options:
    def given(name: str) -> bool:
        return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE

    budget_s = values["budget"]
    in_suite = values["suite"].options if values["suite"] is not None else {}
    counted = given("repeats") or ("repeats" in in_suite and "budget" not in in_suite)
    if counted and not given("budget"):
        budget_s = 0.0
    if values["ranks"] is not None and not (values["dry_run"] or values["list_kernels"]):
        raise click.BadParameter(
            "is for --dry-run and --list; otherwise the launcher sets the number of ranks", param_hint="'--ranks'"
        )
    choice = _Choice(ctx, values)
    return Options(
        **{name: values[name] for name in _AS_GIVEN},
        sizes=_sizes(values),
        patterns=choice.patterns(),
        kernels=choice.kernels(),
        interfaces=values["interface"] or (),
        methods=_methods(values, named=given("method")),
        methods_given=given("method") or given("delegates"),
        delegates=values["delegates"] or "1",
        hints=_hints(values),
        repetitions=values["repeats"],
        budget_s=budget_s,
        native_limit_s=values["native_limit"],
        native_bytes=values["native_size"] or 0,
    )
