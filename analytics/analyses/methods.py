"""Methods compared by their measurements: by the bench, or of any program by the library's own statistics.

Problem. Why was ``even`` slower than ``group_cyclic`` here? The bench, or the time of a program's accesses, shows that
a method was faster. The extension's statistics of both methods, side by side, show why.

Algorithm. Rows of the table ``runs`` (a measurement: bandwidth, time, statistics) are grouped by pattern, interface,
operation and phase of a kernel. Every statistic of two methods is compared. A time of planning, exchange, storage or
waiting (of a kernel also of opening and closing) is the time of the slowest rank. So these times overlap among ranks
and do not add up. Counts are rounds, requests and their size, and messages. The evidence is the phases whose times
differ most in the direction of the total. Imbalance costs the time in which ranks wait for others. A statistic that one
method lacks leads to no conclusion. Nothing is concluded if the repetitions of the two methods overlap: then there is
no difference to explain, by the rule of ``mpiio-ext bench report --baseline``.

Source: IOMiner, Section III-F, for our own runs.
"""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.analyses.counting import count_words
from mpiio_ext.analytics.analyses.result import Chart, Result
from mpiio_ext.analytics.analyses.source import Source, Tables, expression, fetch
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.common.results import ENOUGH
from mpiio_ext.common.units import size_text

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.common.results import Spread

#: Name in the statistics -> (name here, words, whether it is a time).
_MEASURED = {
    "plan_s": ("plan_time", "planning", True),
    "exchange_s": ("exchange_time", "exchange", True),
    "io_s": ("storage_time", "storage", True),
    "wait_s": ("wait_time", "waiting for other ranks", True),
    "open_s": ("open_time", "opening", True),
    "close_s": ("close_time", "closing", True),
    "independent_s": ("independent_time", "independent accesses", True),
    "rounds": ("rounds", "rounds", False),
    "requests": ("requests", "requests to the file system", False),
    "request_mean_bytes": ("request_mean_bytes", "mean request [B]", False),
    "messages": ("messages", "messages", False),
    "message_bytes": ("message_bytes", "in messages [B]", False),
}
#: Share of the difference in time from which on a phase is evidence.
_EVIDENCE = 0.1
_CASE = ("pattern", "interface", "operation", "phase")
#: Ratio of the times of two methods from which on the reasons are searched.
WORTH_ASKING = 1.1
_NATIVE, _DEFAULT = "native", "auto"
#: Kind of a run that the bench has not made.
_PROGRAM = "program"


def tables_of_results(results: Sequence[Path]) -> Tables:
    """Return results of the bench as tables of the unified schema, without a store.

    Raises
    ------
    AnalyticsError
        A file of results cannot be read; the message has the reason of the first such file.
    """
    import pyarrow as pa

    from mpiio_ext.analytics.sources.results import convert

    found: dict[str, list[pa.Table]] = {}
    for path in results:
        file = path / "results.json" if path.is_dir() else path
        converted = convert([file.name], str(file.absolute().parent))
        for outcome in converted.outcomes:
            if outcome.status == "skipped":
                raise AnalyticsError(f"{file}: {outcome.reason}")
        for name, table in converted.tables.items():
            found.setdefault(name, []).append(table)
    return Tables({name: pa.concat_tables(tables) for name, tables in found.items()})


def _statistics(row: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the measurements of a run, by the names of `_MEASURED`."""
    given = json.loads(row["statistics"]) if row["statistics"] else {}
    if row["kind"] != "kernel":  # the time of a pattern is without them
        given.pop("open_s", None), given.pop("close_s", None)
    if given.get("requests") and given.get("request_bytes") is not None:
        given["request_mean_bytes"] = given["request_bytes"] / given["requests"]
    return {name: given.get(key) for key, (name, _, _) in _MEASURED.items()}


def _rows(source: Source, pattern: str | None) -> list[dict[str, Any]]:
    runs = expression(source, "runs")
    if pattern is not None:
        runs = runs.filter(runs["pattern"] == pattern)
    rows = []
    for row in fetch(runs).to_pylist():
        kept = {
            name: row[name]
            for name in (*_CASE, "kind", "method", "run_id", "ranks", "bytes", "seconds", "bandwidth", "verified")
        }
        rows.append(kept | _statistics(row) | {"spread": _spread(row)})
    rows.sort(key=lambda row: (*(row[name] or "" for name in _CASE), -(row["bandwidth"] or 0)))
    return rows


def _cases(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, dict[str, Any]]]:
    """Return the fastest row of each method, by case."""
    cases: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for row in rows:
        cases.setdefault(tuple(row[name] for name in _CASE), {}).setdefault(row["method"], row)
    return cases


# ---- two methods -----------------------------------------------------------------------------------------------------


def _spread(row: Mapping[str, Any]) -> Spread | None:
    """Return the bandwidths of a run's repetitions [B/s]; None if they were not stored."""
    from mpiio_ext.common.results import Spread

    given = json.loads(row["statistics"]) if row["statistics"] else {}
    low, high = given.get("bandwidth_low"), given.get("bandwidth_high")
    if low is None or high is None or row["bandwidth"] is None:
        return None
    return Spread(row["bandwidth"], low, high, int(given.get("repetitions") or 0))


def _noise(slow: Mapping[str, Any], fast: Mapping[str, Any]) -> str:
    """Return why two runs do not differ, in words; empty if they do, or where their spread is not known."""
    from mpiio_ext.report.baseline import judge_change

    one, other = slow["spread"], fast["spread"]
    if one is None or other is None or judge_change(one, other) != "within noise":
        return ""
    ranges = [f"{size_text(each.low)}/s to {size_text(each.high)}/s" for each in (one, other)]
    return f"no difference beyond the spread of the repetitions ({ranges[0]} against {ranges[1]})"


def _compared(slow: Mapping[str, Any], fast: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every quantity of two runs, and which share of the difference in time it accounts for.

    Runs that moved different amounts (the bench gives a slow library a smaller file) are not compared.
    """
    out = []
    alike = slow["bytes"] == fast["bytes"]
    whole = slow["seconds"] - fast["seconds"] if alike and None not in (slow["seconds"], fast["seconds"]) else None
    if _noise(slow, fast) or (whole or 0) <= 0:
        whole = None  # shares of no difference, or of one in the other direction, mean nothing
    for name, words, is_time in [("seconds", "the whole", True), *_MEASURED.values()]:
        one, other = slow[name], fast[name]
        known = alike and one is not None and other is not None
        out.append(
            {
                **{key: slow[key] for key in _CASE},
                "quantity": words,
                "slower": one,
                "faster": other,
                "difference": one - other if known else None,
                "ratio": one / other if known and other else None,
                "share": (one - other) / whole if known and is_time and whole else None,
            }
        )
    return out


def _number(value: float, words: str) -> str:
    return size_text(round(value)) if words.endswith("[B]") else f"{value:,.0f}"


def _phases(parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the times that account for a part of the difference, the largest part first."""
    times = [row for row in parts if row["share"] is not None and row["share"] >= _EVIDENCE]
    return sorted(times, key=lambda row: -row["share"])


def _evidence(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the differences that go with the time, in words; empty if no statistic of both differs."""
    from mpiio_ext.common.units import seconds_text

    times = _phases(parts)
    evidence = [
        f"{row['quantity']} {seconds_text(row['slower'])} against {seconds_text(row['faster'])}" for row in times
    ]
    timed = {words for _, words, is_time in _MEASURED.values() if is_time}
    counts = [
        row
        for row in parts
        if row["ratio"] is not None and row["quantity"] not in timed and not 0.8 < row["ratio"] < 1.25
    ]
    evidence += [
        f"{row['quantity'].removesuffix(' [B]')} {_number(row['slower'], row['quantity'])} against "
        f"{_number(row['faster'], row['quantity'])}"
        for row in counts
    ]
    return "; ".join(evidence)


def _where(case: tuple[str, ...]) -> str:
    return f"{case[0]}, {f'{case[3]}, ' if case[3] else ''}{case[2]}"


def _sentence(case: tuple[str, ...], names: tuple[str, str], compared: Sequence[Mapping[str, Any]], noise: str) -> str:
    """Return the difference and its evidence in words."""
    from mpiio_ext.common.units import seconds_text

    whole, where = compared[0], _where(case)
    if whole["ratio"] is None:
        return f"{where}: no times to compare."
    if noise:
        return f"{where}: {names[0]} and {names[1]}: {noise}."
    if whole["difference"] <= 0:
        return (
            f"{where}: {names[0]} was not slower than {names[1]} ({seconds_text(whole['slower'])} against "
            f"{seconds_text(whole['faster'])})."
        )
    evidence = _evidence(compared[1:]) or "no statistic that was kept of both differs with it"
    return (
        f"{where}: {names[0]} took {whole['ratio']:.2f}× as long as {names[1]} ({seconds_text(whole['slower'])} "
        f"against {seconds_text(whole['faster'])}): {evidence}."
    )


def _pair(rows: Sequence[dict[str, Any]], slower: str, faster: str) -> tuple[list[dict[str, Any]], list[str]]:
    out, sentences = [], []
    for case, by_method in _cases(rows).items():
        if slower in by_method and faster in by_method:
            runs = by_method[slower], by_method[faster]
            compared = _compared(*runs)
            out += compared
            sentences.append(_sentence(case, (slower, faster), compared, _noise(*runs)))
    if not out:
        known = sorted({row["method"] for row in rows if row["method"]})
        raise AnalyticsError(
            f"no pattern was run with both {slower} and {faster}; methods: {', '.join(known) or 'none'}"
        )
    return out, sentences


# ---- every pair with a clear difference ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Why one method was slower than another in one case.

    Attributes
    ----------
    pattern, interface, operation, phase : what was run; `phase` is empty where it has none.
    slower, faster : the two methods.
    ratio : time of the slower one over that of the faster one.
    main : the phase that accounts for most of the difference; empty if no time that both have does.
    evidence : what differs, in words; empty if nothing that was counted of both does.
    """

    pattern: str
    interface: str
    operation: str
    phase: str
    slower: str
    faster: str
    ratio: float
    main: str
    evidence: str


def _asked(by_method: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the pairs (slower, faster) of a case: our slowest and our default against our fastest and the library."""
    timed = {name: row["seconds"] for name, row in by_method.items() if row["seconds"]}
    ours = [name for name in timed if not name.startswith(_NATIVE)]
    if not ours:
        return []
    fastest, slowest = min(ours, key=timed.__getitem__), max(ours, key=timed.__getitem__)
    shown = _DEFAULT if _DEFAULT in ours else fastest
    pairs = [(slowest, fastest), (shown, fastest), (shown, _NATIVE)]
    return [
        (slow, fast)
        for slow, fast in dict.fromkeys(pairs)
        if slow != fast
        and fast in timed
        and by_method[slow]["bytes"] == by_method[fast]["bytes"]
        and not _noise(by_method[slow], by_method[fast])
        and timed[slow] >= WORTH_ASKING * timed[fast]
    ]


def explained(source: Source) -> list[Explained]:
    """Return why methods were slower, in every case of the results: the largest differences first.

    Compared are, of each case, the slowest of our methods and ``auto`` with the fastest of ours, and ``auto`` with the
    MPI library alone. One must have taken `WORTH_ASKING` times as long as the other, beyond the spread of repetitions.
    """
    found = []
    for case, by_method in _cases(_rows(source, None)).items():
        for slower, faster in _asked(by_method):
            whole, *parts = _compared(by_method[slower], by_method[faster])
            phases = _phases(parts)
            found.append(
                Explained(
                    pattern=case[0],
                    interface=case[1],
                    operation=case[2],
                    phase=case[3] or "",
                    slower=slower,
                    faster=faster,
                    ratio=whole["ratio"],
                    main=phases[0]["quantity"] if phases else "",
                    evidence=_evidence(parts),
                )
            )
    return sorted(found, key=lambda one: -one.ratio)


# ---- what is shown ---------------------------------------------------------------------------------------------------


def _meanings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the meaning of the times, in words."""
    kinds = {row["kind"] == _PROGRAM for row in rows}
    words = {
        False: "Times are medians; of the extension's phases, those of the rank that spent longest in each.",
        True: "Of programs, the whole is the time in which files are accessed, and phases are those of the mean rank.",
    }
    return [words[kind] for kind in sorted(kinds)]


def _shown(rows: Sequence[Mapping[str, Any]], slower: str, faster: str) -> pa.Table:
    """Return the quantities that one of two methods has and that are not 0 in both, in words with their units."""
    import pyarrow as pa

    timed = {"the whole", *(words for _, words, is_time in _MEASURED.values() if is_time)}
    found = []
    for row in rows:
        if not (row["slower"] or row["faster"]):
            continue
        unit = "s" if row["quantity"] in timed else "B" if row["quantity"].endswith(" [B]") else ""
        found.append(
            {
                **{name: row[name] for name in _CASE if row[name] is not None},
                "quantity": row["quantity"].removesuffix(" [B]"),
                **{
                    name: "–" if row[key] is None else worded(row[key], unit)
                    for name, key in ((slower, "slower"), (faster, "faster"))
                },
                "ratio": None if row["ratio"] is None else worded(row["ratio"], "ratio"),
                "of the difference": None if row["share"] is None else f"{100 * row['share']:.0f} %",
            }
        )
    names = [*_CASE, "quantity", slower, faster, "ratio", "of the difference"]
    fields = [pa.field(name, pa.string(), metadata={"heading": name}) for name in names]
    return pa.Table.from_pylist(found, schema=pa.schema(fields))


def _with_best(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    best = {case: max(row["bandwidth"] or 0 for row in found.values()) for case, found in _cases(rows).items()}
    tops = [best[tuple(row[name] for name in _CASE)] for row in rows]
    return [
        {**row, "of_best": (row["bandwidth"] or 0) / top if top else None} for row, top in zip(rows, tops, strict=True)
    ]


def _ahead(case: Mapping[str, dict[str, Any]]) -> str:
    """Return the method whose slowest repetition is faster than the fastest of all others; "" if none is judged."""
    spreads = {name: row["spread"] for name, row in case.items()}
    if len(spreads) < 2 or any(one is None or one.count < ENOUGH for one in spreads.values()):
        return ""
    best = max(spreads, key=lambda name: spreads[name].median)
    return best if all(spreads[best].low > one.high for name, one in spreads.items() if name != best) else ""


def _finding(cases: Sequence[Mapping[str, dict[str, Any]]]) -> str:
    """Return the message of the figure: the method that is ahead beyond the spread of repetitions, and how often."""
    found = collections.Counter(name for case in cases if (name := _ahead(case)))
    number = count_words(len(cases), "case")
    if not found:
        return f"In none of {number} is a method ahead beyond the spread of its repetitions"
    ((name, most),) = found.most_common(1)
    return f"{name} is ahead of all others, beyond the spread of the repetitions, in {most} of {number}"


def _chart(rows: Sequence[dict[str, Any]]) -> list[Chart]:
    cases = _cases(rows)
    names = list(dict.fromkeys(row["method"] for row in rows))[:7]
    labels = [f"{case[0]}\n{' '.join(filter(None, (case[3], case[2])))}" for case in cases][:8]
    values = [
        [(found.get(name, {}).get("bandwidth") or 0) / 1e6 for found in list(cases.values())[:8]] for name in names
    ]
    return (
        [
            Chart(
                kind="bars",
                name="methods",
                title=_finding(list(cases.values())[:8]),
                data={
                    "labels": labels,
                    "series": [{"name": name, "values": one} for name, one in zip(names, values, strict=True)],
                    "x_label": "pattern and operation",
                    "y_label": "bandwidth [MB/s]",
                    "legend": True,
                },
            )
        ]
        if cases
        else []
    )


def methods(
    source: Source, *, slower: str | None = None, faster: str | None = None, pattern: str | None = None
) -> Result:
    """Compare methods of the bench, all of them or two.

    Parameters
    ----------
    source : with the table ``runs``.
    slower, faster : two methods: why was `slower` slower than `faster`? Both or neither.
    pattern : only this pattern or kernel.

    Returns
    -------
    Result
        Of all: a row a measurement with bandwidth [B/s], ``of_best`` (bandwidth over the best of the same pattern and
        operation) and statistics. Of two: a row a quantity, with both values, their difference and ratio, and for times
        the ``share`` of the whole difference. NULL where a method has no such statistic, and shares where the two do
        not differ by more than their repetitions.

    Raises
    ------
    AnalyticsError
        There are no runs, or no pattern was run with both methods.
    """
    import pyarrow as pa

    if (slower is None) != (faster is None):
        raise AnalyticsError("name both methods, the slower and the faster one, or neither")
    rows = _rows(source, pattern)
    if not rows:
        raise AnalyticsError(
            f"no runs of {pattern}" if pattern else "no runs: no results of the bench, and no statistics of the library"
        )
    texts = [(name, pa.string()) for name in _CASE]
    if slower is not None and faster is not None:
        found, sentences = _pair(rows, slower, faster)
        numbers = [(name, pa.float64()) for name in ("slower", "faster", "difference", "ratio", "share")]
        schema = pa.schema([*texts, ("quantity", pa.string()), *numbers])
        caption, chart = "\n".join([*sentences, *_meanings(rows)]), []
        shown = _shown(found, slower, faster)
    else:
        found, shown = _with_best(rows), None
        numbers = [(name, pa.float64()) for name, _, _ in _MEASURED.values()]
        schema = pa.schema(
            [
                *texts,
                ("method", pa.string()),
                ("ranks", pa.int64()),
                ("seconds", pa.float64()),
                ("bandwidth", pa.float64()),
                ("of_best", pa.float64()),
                *numbers,
            ]
        )
        caption = " ".join(_meanings(rows))
        chart = _chart(rows)
    return Result(
        name="methods",
        title=f"{slower} against {faster}" if slower else "Methods beside each other",
        unit="s",
        caption=caption,
        parameters={"slower": slower, "faster": faster, "pattern": pattern},
        table=pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in found], schema=schema),
        charts=chart,
        shown=shown,
        caption_first=shown is not None,
    )
