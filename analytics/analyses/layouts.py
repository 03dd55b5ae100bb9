"""How many jobs use a layout of their own on Lustre, and which.

Problem. A shared file with the default layout of one stripe is limited by one OST. Who asks for more?

Algorithm. :func:`mpiio_ext.analytics.analyses.striping.custom_stripes` tells which files differ from the default of
their mount point: in stripe size or count, or by a layout of several components. The default is that of the set-up,
else Lustre's own (1 MiB, 1 stripe). A job counts as customised when one of its files is.

Source: IOMiner, Sections III-B and III-C.
"""

from __future__ import annotations

from typing import Any

from mpiio_ext.analytics.analyses.counting import count_words, share, share_words
from mpiio_ext.analytics.analyses.result import Chart, Result
from mpiio_ext.analytics.analyses.source import Source, fetch

__all__ = ["striping"]

#: Stripe counts from which files are counted together: name -> (from, to).
_COUNTS = {"1": (1, 1), "2–4": (2, 4), "5–8": (5, 8), "9–32": (9, 32), "33–128": (33, 128), "> 128": (129, None)}


def _custom(source: Source, files: Any) -> list[Any]:
    """Return the customised files, as an expression for each default that there is."""
    from mpiio_ext.analytics.analyses.striping import custom_stripes

    mounts = getattr(getattr(source, "setup", None), "mounts", {})
    found = []
    for mount, given in mounts.items():
        found.append(custom_stripes(files.filter(lambda table, mount=mount: table["mount"] == mount), given))
    rest = files.filter(lambda table: ~table["mount"].fill_null("").isin(list(mounts))) if mounts else files
    found.append(custom_stripes(rest))
    return [one.expression for one in found]


def _in_class(stripes: int | None, low: int, high: int | None) -> bool:
    return stripes is not None and stripes >= low and (high is None or stripes <= high)


def striping(source: Source, *, origin: str | None = "darshan") -> Result:
    """Return how many jobs and files have a layout that is not the default.

    Parameters
    ----------
    source : Source
        With the table ``darshan_file``; defaults of mount points are those of its set-up, where it has one.
    origin : str or None
        Logs to count: ``darshan``, ``bench``, ``library``, or all (None).

    Returns
    -------
    Result
        Rows: ``stripes``, ``files`` and ``customised`` files with so many stripes.
    """
    import ibis
    import pyarrow as pa

    files = source.load("darshan_file")
    if origin is not None:
        files = files.filter(lambda table: table["source"] == origin)
    striped = files.expression
    striped = striped.filter(striped["stripe_count"].notnull())
    by_count = fetch(striped.group_by("stripe_count").agg(files=striped.count())).to_pylist()
    jobs = fetch(striped.agg(jobs=striped["log_id"].nunique()))["jobs"][0].as_py()
    parts = _custom(source, files)
    custom = ibis.union(*parts, distinct=False) if len(parts) > 1 else parts[0]
    own = fetch(custom.group_by("stripe_count").agg(files=custom.count())).to_pylist()
    customised = fetch(custom.agg(jobs=custom["log_id"].nunique()))["jobs"][0].as_py()
    numbers = [[sum(row["files"] for row in rows if _in_class(row["stripe_count"], *ends)) for ends in _COUNTS.values()]
               for rows in (by_count, own)]  # fmt: skip
    every, changed = (sum(row["files"] for row in rows) for rows in (by_count, own))
    caption = (f"Of {count_words(jobs, 'job')} with files on Lustre, {customised:,} "
               f"({share_words(share(customised, jobs))}) have a file whose layout is not the default; of "
               f"{count_words(every, 'file')}, {changed:,} ({share_words(share(changed, every))}).")  # fmt: skip
    chart = Chart(kind="bars", name="striping", title="Stripes of files", data={
        "labels": list(_COUNTS), "x_label": "stripes of the file", "y_label": "files", "log": True, "legend": True,
        "series": [{"name": "all files", "values": numbers[0]},
                   {"name": "not the default layout", "values": numbers[1]}],
    })  # fmt: skip
    table = pa.table({"stripes": list(_COUNTS), "files": pa.array(numbers[0], pa.int64()),
                      "customised": pa.array(numbers[1], pa.int64())})  # fmt: skip
    return Result(name="striping", title="Customised striping", unit="files", caption=caption,
                  parameters={"origin": origin}, table=table, charts=[chart] if every else [])  # fmt: skip
