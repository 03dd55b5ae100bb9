"""Of which kind the values of an option are."""

from __future__ import annotations

import re

import click

from mpiio_ext.common.options import Bandwidth, Counts, Duration, Size


def kind_of(option: click.Option) -> str:
    """Return of which kind an option's values are."""
    if option.is_flag:
        return "flag"
    kinds = {
        Size: "size",
        Duration: "duration",
        Bandwidth: "bandwidth",
        click.Path: "path",
        Counts: "number",
        click.types.IntParamType: "number",
        click.types.FloatParamType: "number",
    }
    for kind, name in kinds.items():
        if isinstance(option.type, kind):
            return name
    if option.metavar and re.search(r"FILE|FOLDER|DIR|PATH", option.metavar) and "|" not in option.metavar:
        return "path" if "pioneer:" not in option.metavar else "text"
    known = {"_Paths": "path", "_SystemNodes": "number"}
    return known.get(type(option.type).__name__, "text")
