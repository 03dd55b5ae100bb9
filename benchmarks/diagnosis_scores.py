"""Judge what the diagnosis says of logs whose truth is known: first sentences, precision and recall, confusion.

Guarantees. What is said is what has high confidence: a first sentence that says "no cause stands out" says nothing. A
first sentence is right where it names the largest cause. Another cause of high confidence is wrong unless the program
was told to do that as well.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import pathlib
from typing import Any

from diagnosis_truth import KINDS, Kind

from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.sources.darshan import convert


def truth(row: dict[str, Any]) -> Kind:
    """Return what the program of a log does with so many ranks; of a mixture, in the order of its own clock."""
    kind, took = KINDS[row["kind"]], row.get("seconds", {})
    parts = [part.partition(":")[0] for part in row["kind"].split("+")]
    if len(parts) > 1 and set(parts) == set(took):
        causes = {cause: took[part] / sum(took.values()) for part, cause in zip(parts, kind.causes, strict=True)}
        kind = dataclasses.replace(kind, causes=dict(sorted(causes.items(), key=lambda each: -each[1])))
    return kind if row["ranks"] > kind.most else dataclasses.replace(kind, causes={}, instead=(), possible=False)


def judged(row: dict[str, Any], folder: pathlib.Path) -> dict[str, Any]:
    """Return what is said of one log, and whether that is right."""
    kind, tables = truth(row), convert([row["log"]], str(folder)).tables
    told = [one["document"] for one in diagnoses(tables, Known(activity=activity_of(folder / row["log"], tables)))]
    findings = [each for one in told for each in one["findings"]]
    high = [each["cause"] for each in findings if each["confidence"] == "high"]
    first, right = (high[0] if high else ""), {kind.first, *kind.instead}
    if kind.possible and not high:
        right = {""} if findings and findings[0]["cause"] == kind.first else {"?"}
    wrong = sorted(set(high) - set(kind.causes) - set(kind.instead))
    return {**row, "first": first, "high": high, "right": first in right, "wrong": wrong,
            "sentences": [one["conclusion"] for one in told]}  # fmt: skip


def by_cause(rows: list[dict[str, Any]]) -> dict[str, tuple[int, int, int]]:
    """Return for each cause: logs whose largest one it is; logs of which it is said, rightly said, said as that."""
    tally: collections.Counter[tuple[str, str]] = collections.Counter()
    for row in rows:
        kind = truth(row)
        names = dict.fromkeys(kind.instead if kind.first else (), kind.first)  # another name of the same
        said = {names.get(cause, cause) for cause in row["high"]}
        must = set() if "" in kind.instead or kind.possible or not kind.causes else {kind.first}
        tally.update([("true", cause) for cause in must] + [("said", cause) for cause in said])
        tally.update(("right", cause) for cause in said & {*kind.causes, *kind.instead})
        tally.update(("found", cause) for cause in said & must)
    causes = sorted({cause for _, cause in tally})
    return {cause: (tally["true", cause], tally["said", cause], tally["right", cause], tally["found", cause])
            for cause in causes}  # fmt: skip


def share(part: int, whole: int) -> str:
    """Return a share of two digits; a dash of nothing."""
    return f"{part / whole:.2f}" if whole else "–"


def tables(rows: list[dict[str, Any]]) -> list[str]:
    """Return first sentences by group and by variant, precision and recall, and confusion, as tables."""
    out = []
    for column in ("group", "variant", "ranks"):
        out += ["", f"| {column} | logs | first sentence right | a wrong cause with high confidence |",
                "|---|---|---|---|"]  # fmt: skip
        for name in sorted({row[column] for row in rows}, key=str):
            here = [row for row in rows if row[column] == name]
            right, wrong = sum(row["right"] for row in here), sum(bool(row["wrong"]) for row in here)
            out.append(f"| {name} | {len(here)} | {right} ({100 * right / len(here):.0f} %) | {wrong} |")
    out += ["", "| cause | logs | precision | recall |", "|---|---|---|---|"]
    out += [f"| `{cause}` | {true} | {share(right, said)} | {share(found, true)} |"
            for cause, (true, said, right, found) in by_cause(rows).items()]  # fmt: skip
    confused = collections.Counter((truth(row).first, row["first"]) for row in rows)
    out += ["", "| truth | first sentence: logs |", "|---|---|"]
    for cause in sorted({true for true, _ in confused}):
        said = ", ".join(f"{f'`{first}`' if first else 'no cause'}: {count}"
                         for (true, first), count in sorted(confused.items()) if true == cause)  # fmt: skip
        out.append(f"| {f'`{cause}`' if cause else 'no cause'} | {said} |")
    return out


def seen(row: dict[str, Any], folder: pathlib.Path) -> tuple[int, int]:
    """Return the requests of POSIX and the calls of MPI-IO that Darshan has counted in a log."""
    files = convert([row["log"]], str(folder)).tables["darshan_file"].to_pylist()
    found = collections.Counter(
        {name: sum(file[name] or 0 for file in files) for name in files[0] if "_size_" in name or "mpiio_" in name}
    )
    calls = {name for name in found if name.startswith("mpiio_")}
    return sum(found[name] for name in found.keys() - calls), sum(found[name] for name in calls if "bytes" not in name)


def beside_the_library(rows: list[dict[str, Any]], folder: pathlib.Path) -> list[str]:
    """Return a table of what Darshan counts of each program as it is, with the library in front and behind it."""
    order = ("plain", "front", "behind")
    out = ["", "| program | POSIX requests: as it is, front, behind | MPI-IO calls | said |", "|---|---|---|---|"]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        here = {row["variant"]: row for row in rows if row["kind"] == kind}
        counted = [seen(here[variant], folder) for variant in order]
        said = ", ".join(f"`{here[variant]['first']}`" if here[variant]["first"] else "no cause" for variant in order)
        requests, calls = (", ".join(f"{number:,}" for number in column) for column in zip(*counted, strict=True))
        out.append(f"| `{kind}` | {requests} | {calls} | {said} |")
    return out


def report(folder: pathlib.Path, results: pathlib.Path | None = None, drishti: str | None = None) -> None:
    """Print the logs whose first sentence is wrong, and the tables; write both to `results`."""
    rows = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
    rows = [judged(row, folder) for row in rows]
    for row in rows:
        if not row["right"] or row["wrong"]:
            print(f"{row['log']}: said {row['high'] or 'nothing'}: {' | '.join(row['sentences'])}")
    print("\n".join(tables([row for row in rows if row["variant"] not in ("front", "behind")])))
    if any(row["variant"] == "front" for row in rows):
        print("\n".join(beside_the_library(rows, folder)))
    if drishti:
        import diagnosis_drishti

        plain = [row for row in rows if row["variant"] == "plain"]
        print("\n".join(diagnosis_drishti.compared(plain, folder, drishti)))
    if results:
        kept = [{key: row[key] for key in ("log", "kind", "first", "high", "right", "wrong")} for row in rows]
        results.write_text("".join(json.dumps(row) + "\n" for row in kept))
