"""How many jobs use a layout of their own on Lustre, and which.

Problem. A shared file with the default layout of one stripe is limited by one OST. Which jobs request more?

Algorithm. :func:`mpiio_ext.analytics.analyses.striping.customised` finds the files that differ from the default of
their mount point: in stripe size or count, or by a layout of several components. The default is that of the set-up,
else Lustre's own (1 MiB, 1 stripe). A job counts as customised when one of its files is.

Source: IOMiner, Sections III-B and III-C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mpiio_ext.analytics.analyses.counting import count_words, jobs_of, leading, share, share_words
from mpiio_ext.analytics.analyses.result import Chart, Result
from mpiio_ext.analytics.analyses.source import Source, fetch
from mpiio_ext.analytics.site import StripeDefault

if TYPE_CHECKING:
    import ibis.expr.types as ir

#: Stripe counts from which files are counted together: name -> (from, to).
_COUNTS = {"1": (1, 1), "2–4": (2, 4), "5–8": (5, 8), "9–32": (9, 32), "33–128": (33, 128), "> 128": (129, None)}


def _finding(files: Sequence[int]) -> str:
    """Return the message of the figure: how many stripes the largest part of the files has."""
    first = leading(list(_COUNTS), files)
    if first is None:
        return "No number of stripes is that of most files"
    return f"{share_words(first[1])} of the files have {first[0]} stripe{'' if first[0] == '1' else 's'}"


def _own(table: ir.Table, mounts: Mapping[str, StripeDefault]) -> ir.BooleanValue:
    """Return whether each file's layout is its own: not the default of its mount point."""
    from mpiio_ext.analytics.analyses.striping import customised
    from mpiio_ext.analytics.dimensions import of_table
    from mpiio_ext.analytics.query.binding import bind
    from mpiio_ext.analytics.tables.schema import DARSHAN_FILE

    units = of_table(DARSHAN_FILE)
    mount = table["mount"].fill_null("")
    own = bind(customised(), table, units, boolean=True)[0]
    if mounts:
        own = own & ~mount.isin(list(mounts))
    for name, default in mounts.items():
        own = own | ((mount == name) & bind(customised(default), table, units, boolean=True)[0])
    return own.fill_null(False)


def _in_class(stripes: int | None, low: int, high: int | None) -> bool:
    return stripes is not None and stripes >= low and (high is None or stripes <= high)


def striping(source: Source, *, origin: str | None = "darshan") -> Result:
    """Return how many jobs and files have a layout that is not the default.

    Parameters
    ----------
    source : with the table ``darshan_file``; defaults of mount points are those of its set-up, where it has one.
    origin : logs to count: ``darshan``, ``bench``, ``library``, or all (None).

    Returns
    -------
    Result
        Rows: ``stripes``, ``files`` and ``customised`` files with so many stripes.
    """
    import pyarrow as pa

    columns = ["log_id", "mount", "stripe_size", "stripe_count", "stripe_offset", "components"]
    files = jobs_of(source, origin, columns, "darshan_file")
    striped = files.filter(files["stripe_count"].notnull())
    mounts = getattr(getattr(source, "setup", None), "mounts", {})
    marked = striped.select("log_id", "stripe_count", own=_own(striped, mounts))
    by_count = fetch(marked.group_by("stripe_count", "own").agg(files=marked.count())).to_pylist()
    own = [row for row in by_count if row["own"]]
    logs = marked["log_id"]
    [found] = fetch(marked.agg(jobs=logs.nunique(), customised=logs.nunique(where=marked["own"]))).to_pylist()
    jobs, customised = found["jobs"], found["customised"]
    numbers = [
        [sum(row["files"] for row in rows if _in_class(row["stripe_count"], *ends)) for ends in _COUNTS.values()]
        for rows in (by_count, own)
    ]
    every, changed = (sum(row["files"] for row in rows) for rows in (by_count, own))
    caption = (
        f"Of {count_words(jobs, 'job')} with files on Lustre, {customised:,} "
        f"({share_words(share(customised, jobs))}) have a file whose layout is not the default; of "
        f"{count_words(every, 'file')}, {changed:,} ({share_words(share(changed, every))})."
    )
    chart = Chart(
        kind="bars",
        name="striping",
        title=_finding(numbers[0]),
        data={
            "labels": list(_COUNTS),
            "x_label": "stripes of the file",
            "y_label": "files",
            "log": True,
            "legend": True,
            "series": [
                {"name": "all files", "values": numbers[0]},
                {"name": "not the default layout", "values": numbers[1]},
            ],
        },
    )
    table = pa.table(
        {
            "stripes": list(_COUNTS),
            "files": pa.array(numbers[0], pa.int64()),
            "customised": pa.array(numbers[1], pa.int64()),
        }
    )
    return Result(
        name="striping",
        title="Customised striping",
        unit="files",
        caption=caption,
        parameters={"origin": origin},
        table=table,
        charts=[chart] if every else [],
    )
