"""The options of the command, and the command line that makes them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from mpiio_ext.bench import interfaces, strategies, workloads
from mpiio_ext.bench.strategies import Strategy, parse_strategy
from mpiio_ext.bench.workloads import Sizes

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # not generic before click 8.2

__all__ = ["PRESETS", "Options", "command"]

#: Values that a preset gives to options that the user did not give, as they would be typed.
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "size": "8MiB",
        "block": "64KiB,512B",
        "repetitions": 2,
        "method": "native,auto,even,group_cyclic,transpose",
        "native_limit": 2.0,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for.

    Attributes
    ----------
    path : folder of the bench files
    output : folder of the results, None = a new one under ./bench-results
    sizes : geometry of the workloads
    workloads, interfaces : names; empty interfaces = all that are there
    strategies : what to compare
    strategies_given : the user named them, so that one that cannot run is an error rather than left out
    hints : set for every strategy
    repetitions, read_shift : counts
    budget_s : fewer repetitions where they would take longer; 0 = no limit
    native_limit_s, native_bytes : see `Runner`
    keep_files : leave the bench files behind
    plot : draw the picture
    progress : None = when there is a terminal
    """

    path: Path
    output: Path | None
    sizes: Sizes
    workloads: tuple[str, ...]
    interfaces: tuple[str, ...]
    strategies: tuple[Strategy, ...]
    strategies_given: bool
    hints: dict[str, str]
    repetitions: int
    budget_s: float
    read_shift: int
    native_limit_s: float
    native_bytes: int
    keep_files: bool
    plot: bool
    progress: bool | None


class _Size(_ParamType):
    """Bytes: a number with an optional unit."""

    name = "size"
    _UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}  # noqa: RUF012

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(b?)\s*", str(value).lower())
        if match is None or (match[3] and not match[2]):
            self.fail(f"'{value}' is not a size; write for example 4096, 64KiB, 64MiB or 1.5GiB", param, ctx)
        decimal = match[2] and match[4] and not match[3]
        unit = 1000 ** " kmgt".index(match[2]) if decimal else self._UNITS[match[2]]
        return int(float(match[1]) * unit)


class _List(_ParamType):
    """A comma-separated list without repetitions."""

    name = "list"

    def __init__(self, item: Callable[[str], Any], metavar: str) -> None:
        self._item = item
        self.name = metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        items = [text.strip() for text in str(value).split(",") if text.strip()]
        if not items:
            self.fail("the list is empty", param, ctx)
        try:
            return tuple(dict.fromkeys(self._item(text) for text in items))
        except (ValueError, click.BadParameter) as error:
            self.fail(str(error), param, ctx)


def _one_of(names: list[str]) -> Callable[[str], str]:
    def choose(text: str) -> str:
        if text in names:
            return text
        nearest = difflib.get_close_matches(text, names, n=1)
        hint = f"did you mean '{nearest[0]}'?" if nearest else f"one of {', '.join(names)}"
        raise ValueError(f"unknown name '{text}', {hint}")

    return choose


def _positive_size(text: str) -> int:
    size = _Size().convert(text, None, None)
    if size < 1:
        raise ValueError("a block must have at least one byte")
    return size


class _Hint(_ParamType):
    """``name=value``."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not equals or not name or not text:
            self.fail(f"'{value}' is not of the form name=value", param, ctx)
        return name, text


def _use_quick(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    if value:
        ctx.default_map = PRESETS["quick"]
    return value


_SIZE = _Size()
_LIST_HELP = {
    "workload": ", ".join(workloads.REGISTRY),
    "interface": ", ".join(interfaces.REGISTRY),
    "method": ", ".join(strategies.NAMES),
}

_EPILOG = """
\b
Examples:
  mpirun -n 4 python -m mpiio_ext.bench --quick
  mpirun -n 4 python -m mpiio_ext.bench --path /lustre/me --size 4GiB --repetitions 5
  mpirun -n 4 python -m mpiio_ext.bench -w interleaved --block 8,64,4KiB -m native,auto,even
  mpirun -n 4 python -m mpiio_ext.bench -w block3d -i hdf5 -m native,group_cyclic+stripe_size_io

\b
Every file is verified byte for byte, every read compared; wrong data ends the bench.
Exit status: 0 done, 1 a run failed, 2 bad argument or path, 3 wrong data.
"""


@click.command(
    name="python -m mpiio_ext.bench",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
    epilog=_EPILOG,
)
@click.option("--quick", is_flag=True, is_eager=True, expose_value=False, callback=_use_quick, show_default=False,
              help="Small files, fewer methods and repetitions; options that are given still count.")
@click.option("--path", type=click.Path(path_type=Path), default=".", metavar="FOLDER",
              help="Existing folder on the file system to measure; a temporary folder is made in it.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Where results go.  [default: ./bench-results/<date>]")
@click.option("-w", "--workload", type=_List(_one_of(list(workloads.REGISTRY)), "LIST"),
              default=",".join(workloads.REGISTRY), help=f"Workloads, comma-separated: {_LIST_HELP['workload']}.",
              show_default="all")
@click.option("-i", "--interface", type=_List(_one_of(list(interfaces.REGISTRY)), "LIST"), show_default="all there are",
              help=f"Interfaces, comma-separated: {_LIST_HELP['interface']} (3-D arrays only).")
@click.option("-m", "--method", type=_List(parse_strategy, "LIST"), default=",".join(strategies.DEFAULT),
              help=f"Methods, comma-separated: {_LIST_HELP['method']}; each with modifiers such as +stripe_size_io or "
                   "+cb_nodes=2.")
@click.option("-s", "--size", type=_SIZE, default="64MiB", metavar="SIZE",
              help="Size of each file; workloads round down to their geometry.")
@click.option("-b", "--block", type=_List(_positive_size, "LIST"), default="64KiB,512B",
              help="interleaved: block sizes, comma-separated.")
@click.option("--transfer", type=_SIZE, default="0", metavar="SIZE",
              help="contiguous: bytes per rank and call; 0 = all in one call.")
@click.option("--piece", type=_SIZE, default="4KiB", metavar="SIZE", help="random: longest piece.")
@click.option("--ghost", type=click.IntRange(min=0), default=2, metavar="CELLS",
              help="tiles2d: ghost cells on each side.")
@click.option("--steps", type=click.IntRange(min=1), default=5, metavar="N", help="btio: time steps in the file.")
@click.option("--seed", type=click.IntRange(min=0), default=1, metavar="N", help="random: seed of the layout.")
@click.option("-r", "--repetitions", type=click.IntRange(min=1), default=3, metavar="N",
              help="Repetitions; the methods alternate inside each.")
@click.option("--budget", type=click.FloatRange(min=0), default=75.0, metavar="SECONDS",
              help="Begin no repetition that would end later than this; 0 = no limit, as when --repetitions is given.")
@click.option("--read-shift", type=click.IntRange(min=0), default=1, metavar="N",
              help="Rank r reads what rank r+N wrote; 0 = its own data.")
@click.option("-H", "--hint", type=_Hint(), multiple=True, metavar="NAME=VALUE",
              help="Hint for every method, native too; may be repeated.")
@click.option("--stripe-size", type=_SIZE, metavar="SIZE", help="Same as --hint striping_unit=SIZE.")
@click.option("--stripe-count", type=click.IntRange(min=1), metavar="N", help="Same as --hint striping_factor=N.")
@click.option("--native-limit", type=click.FloatRange(min=0), default=6.0, metavar="SECONDS",
              help="Native runs that would take longer use a smaller file and are marked; 0 = no limit.")
@click.option("--native-size", type=_SIZE, metavar="SIZE", help="File size for the native methods, if smaller.")
@click.option("--keep", is_flag=True, show_default=False, help="Leave the files behind.")
@click.option("--plot/--no-plot", default=True, help="Draw the ratios to native.")
@click.option("--progress/--no-progress", default=None, show_default="when there is a terminal", help="Show progress.")
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> Options:
    """Measure collective I/O: access patterns of parallel codes, native against the file-domain methods.

    Each workload is written, verified, read and compared under every method in turn; results are a table, JSON, Parquet
    and a plot. Run it under mpirun; ranks may outnumber processors.
    """

    def given(name: str) -> bool:
        return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE

    size = values["size"]
    if size < 1:
        raise click.BadParameter("must be at least one byte", param_hint="'--size'")
    if values["piece"] < 4:
        raise click.BadParameter("must be at least 4 bytes", param_hint="'--piece'")
    hints = dict(values["hint"])
    for option, name in (("stripe_size", "striping_unit"), ("stripe_count", "striping_factor")):
        if values[option] is not None:
            hints[name] = str(values[option])
    budget_s = values["budget"]
    if given("repetitions") and not given("budget"):
        budget_s = 0.0
    sizes = Sizes(
        file_bytes=size,
        blocks_bytes=values["block"],
        transfer_bytes=values["transfer"],
        piece_bytes=values["piece"],
        ghost=values["ghost"],
        steps=values["steps"],
        seed=values["seed"],
    )
    return Options(
        path=values["path"],
        output=values["output"],
        sizes=sizes,
        workloads=values["workload"],
        interfaces=values["interface"] or (),
        strategies=values["method"],
        strategies_given=given("method"),
        hints=hints,
        repetitions=values["repetitions"],
        budget_s=budget_s,
        read_shift=values["read_shift"],
        native_limit_s=values["native_limit"],
        native_bytes=values["native_size"] or 0,
        keep_files=values["keep"],
        plot=values["plot"],
        progress=values["progress"],
    )
