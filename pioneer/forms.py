"""The form of an output by the extension of its name: a file named .txt is text, an unknown one is refused.

A workload path is Parquet, JSON, or the text of `show`, which is for people: no command reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpiio_ext.common.files import replacing

if TYPE_CHECKING:
    from mpiio_ext.pioneer.path import WorkloadPath

#: The written form, by extension.
FORMS_OF_PATHS = {".parquet": "Parquet", ".json": "JSON", ".txt": "the text of `pioneer show`, for reading alone"}
FORMS_OF_PROFILES = {".json": "JSON"}


def named_after(forms: dict[str, str]) -> Callable[[click.Context, click.Parameter, str], str]:
    """Return a callback of an option: a name whose extension is none of `forms` is refused, before any work."""

    def check(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001
        found = Path(value).suffix
        if found in forms:
            return value
        known = ", ".join(f"{extension} ({form})" for extension, form in forms.items())
        what = f"has the extension {found}" if found else "has no extension"
        raise click.BadParameter(f"{value!r} {what}, which selects the form; there are: {known}")

    return check


def _factors(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:  # noqa: ARG001
    """Return the factors of ``NAME=X``; raises click.BadParameter."""
    found = {}
    for text in values:
        name, equals, number = text.partition("=")
        try:
            if not equals or name not in ("files", "opens", "sizes", "slack"):
                raise ValueError
            found[name] = float(number)
        except ValueError:
            raise click.BadParameter(f"{text!r} is not files=X, opens=X, sizes=X or slack=X") from None
    return found


#: ``--multiply``: the values that the synthesis in mode tuned multiplies.
multiply_option = click.option(
    "--multiply",
    multiple=True,
    callback=_factors,
    metavar="NAME=X",
    help="tuned: files, opens, sizes (and offsets) or slack X times as many, large or long; may be repeated.",
)


def save_path(path: WorkloadPath, output: Path) -> None:
    """Write a workload path in the form of its file's extension.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    if output.suffix != ".txt":
        path.save(output)
        return
    from mpiio_ext.pioneer.show import show

    if not output.parent.is_dir():
        raise FileNotFoundError(f"{output} cannot be written: there is no folder {output.parent}")
    with replacing(output) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in show(path, output.name))
