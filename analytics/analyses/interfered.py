"""Which files met others on their OSTs: the interference join as an analysis, for the command line.

Problem. :func:`mpiio_ext.analytics.analyses.interference.interference` returns a row for each file and OST, millions of
rows. A reader wants to know how often a file had its OSTs to itself, and which files had the smallest share of their
OSTs' traffic.

Algorithm. The pairs are counted by the file's own share of its OST's traffic, in tenths, and those with the most
traffic of others are named. Both are computed by the engine.

Source: IOMiner, Section II-B (how I/O on one file is interfered with by other I/O on the same OSTs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mpiio_ext.analytics.analyses.counting import count_words, share, share_words
from mpiio_ext.analytics.analyses.interference import interference
from mpiio_ext.analytics.analyses.result import Chart, Result
from mpiio_ext.analytics.errors import AnalyticsError

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.miner import IOMiner

_TENTHS = [number / 10 for number in range(1, 10)]
_KEYS = ("job_id", "log_id", "file_id")
#: Columns and their units.
_UNITS = {"own": "B", "traffic": "B", "others": "B", "share": "1", "coverage": "1"}


def interfered(
    miner: IOMiner,
    *,
    direction: Literal["read", "write"] = "write",
    jobs: tuple[int | None, int | None] | None = None,
    file_system: str | None = None,
    top: int = 20,
    anonymous: bool = False,
) -> Result:
    """Return how much of the traffic of their OSTs files had for themselves, and those that met most of others.

    Parameters
    ----------
    miner : with ``darshan_file`` and ``lmt``.
    direction : {"read", "write"}
    jobs : pair of int, optional
        Smallest and largest job ID; None: no bound.
    file_system : LMT's name of the file system; needed where LMT has several. Where the set-up says which mount point
        it is (``lmt_mounts``), only files on that one are looked at.
    top : pairs of file and OST to name.
    anonymous : no IDs and no names.

    Returns
    -------
    Result
        Rows: ``job_id``, ``file``, ``ost``, ``own`` and ``traffic`` and ``others`` [B], ``share`` (own / traffic),
        ``coverage`` (fraction of the 5-s steps that LMT knows); most traffic of others first.

    Raises
    ------
    AnalyticsError
        There is no LMT, or several file systems and none is named.
    """
    files, lmt, chosen = _tables(miner, jobs, file_system)
    pairs = interference(files, lmt, direction)
    counts, unmoved = _counts(pairs)
    rows = _named(pairs, files, top)
    if anonymous:
        rows = rows.drop_columns(["job_id", "file"])
    parameters = {
        "direction": direction,
        "jobs": None if jobs is None else list(jobs),
        "file_system": chosen,
        "top": top,
    }
    return Result(
        name="interference",
        title=f"Others' traffic while files were {'written' if direction == 'write' else 'read'}",
        unit="B",
        caption=_caption(counts, unmoved),
        parameters=parameters,
        table=rows,
        charts=_chart(counts),
    )


def _tables(
    miner: IOMiner, jobs: tuple[int | None, int | None] | None, file_system: str | None
) -> tuple[pa.Table, pa.Table, str | None]:
    """Return the files, the steps of the file system that they are on, and its name."""
    lmt = miner.load("lmt")
    systems = sorted({row["file_system"] for row in lmt.project("file_system").distinct().rows()}, key=str)
    if not systems:
        raise AnalyticsError("the store has no LMT to compare with; name its logs under /inputs/lmt of the set-up")
    if file_system is not None and file_system not in systems:
        raise AnalyticsError(f"LMT has no file system '{file_system}'; it has {', '.join(map(str, systems))}")
    if file_system is None and len(systems) > 1:
        raise AnalyticsError(f"LMT has several file systems; name one of {', '.join(map(str, systems))}")
    chosen = file_system or systems[0]
    files = miner.load("darshan_file", jobs)
    if (mount := miner.setup.lmt_mounts.get(str(chosen))) is not None:
        files = files.filter(f"mount = {_quoted(mount)}")
    if chosen is not None:
        lmt = lmt.filter(f"file_system = {_quoted(chosen)}")
    return files, lmt, chosen


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _counts(pairs: pa.Table) -> tuple[dict[int | None, int], int]:
    """Return the pairs of each tenth of the share, None: those without one; and of these, those of OSTs at rest."""
    rows = pairs.bin("tenth", _TENTHS, "share").group("tenth", pairs="count()", moved="count(traffic)").rows()
    unmoved = sum(row["moved"] for row in rows if row["tenth"] is None)
    return {row["tenth"]: row["pairs"] for row in rows}, unmoved


def _named(pairs: pa.Table, files: pa.Table, top: int) -> pa.Table:
    """Return the pairs with the most traffic of others, with the names of the files."""
    import pyarrow as pa

    columns = (*_KEYS, "ost", "own", "traffic")
    known = pairs.filter("traffic is not null").project(*columns, "share", "coverage", others="traffic - own")
    order = ("-others", *_KEYS, "ost")
    first = known.sort(*order).limit(top)
    named = first.join(files.project(*_KEYS, "file"), list(_KEYS), "left").sort(*order)
    table = named.project("job_id", "file", "ost", "own", "traffic", "others", "share", "coverage").arrow()
    fields = [
        field.with_metadata({"unit": _UNITS[field.name]} if field.name in _UNITS else None) for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _caption(counts: dict[int | None, int], unmoved: int) -> str:
    known = sum(count for tenth, count in counts.items() if tenth is not None)
    words = []
    if known:
        alone = share(counts.get(9, 0), known)
        shared = share(sum(count for tenth, count in counts.items() if tenth is not None and tenth < 5), known)
        words.append(
            f"Of {count_words(known, 'pair')} of file and OST, {share_words(alone)} had at least 90 % of the "
            f"OST's traffic for themselves, and {share_words(shared)} less than half."
        )
    if missing := counts.get(None, 0) - unmoved:
        words.append(f"{count_words(missing, 'pair')} left out: LMT has no step of the time.")
    if unmoved:
        words.append(f"{count_words(unmoved, 'pair')} left out: by LMT the OST moved nothing meanwhile.")
    return " ".join(words) or "No file on OSTs was in use in this direction."


def _chart(counts: dict[int | None, int]) -> list[Chart]:
    values = [counts.get(tenth, 0) for tenth in range(10)]
    if not sum(values):
        return []
    alone = share_words(share(values[-1], sum(values)))
    title = f"{alone} of the pairs of file and OST had at least 90 % of the OST's traffic for themselves"
    return [
        Chart(
            kind="bars",
            name="interference",
            title=title,
            data={
                "labels": [f"{10 * tenth}–{10 * tenth + 10}" for tenth in range(9)] + ["≥ 90"],
                "series": [{"name": "pairs of file and OST", "values": values}],
                "x_label": "own share of the OST's traffic while the file was in use [%]",
                "y_label": "pairs of file and OST",
            },
        )
    ]
