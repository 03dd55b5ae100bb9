"""Closeness of synthetic paths to their sources: each mode, many seeds, and controls that must fail.

Method.    For each path and mode as many paths are synthesized as there are seeds, and compared (`compare.metrics`); of
           each metric the worst value counts. A metric that a spoilt path passes as well shows nothing. So four spoilt
           paths are compared besides: the operations in random order; slack times of a Poisson process with the same
           mean; offsets spread uniformly over the file; children that access other places while the root does not.
Limits.    Those of `compare.metrics.LIMITS` for the modes that draw; `QUOTA_LIMITS` for the modes "faithful" and
           "quota", whose multisets are those of the path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.pioneer.compare import LIMITS, compare_paths
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.profile import Profile, characterize
from mpiio_ext.pioneer.synthesis import find_violations, synthesize, with_shapes

_MULTISETS = ("duration", "opened", "size", "request_gap", "session_gap", "offset", "touched")
#: Limits of the modes that draw nothing anew.
QUOTA_LIMITS: Mapping[str, float] = {**LIMITS, "counts": 0.0, **dict.fromkeys(_MULTISETS, 0.005)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The worst of all seeds, for one path and mode.

    Attributes
    ----------
    name : of the path.
    mode : of the synthesis, "profile" (sampled from the JSON profile alone), or a name in `CONTROLS`.
    seeds : paths that were synthesized.
    operations : of the path.
    worst : of each metric, the classes taken together.
    violations : hard dependencies that do not hold, beyond those of the original.
    limits : largest values that count as close.
    """

    name: str
    mode: str
    seeds: int
    operations: int
    worst: Mapping[str, float]
    violations: int
    limits: Mapping[str, float]

    @property
    def failed(self) -> list[str]:
        """Metrics beyond their limits; "violations" if there are any."""
        beyond = [name for name, value in self.worst.items() if value > self.limits[name]]
        return beyond + ["violations"] * (self.violations > 0)

    @property
    def is_control(self) -> bool:
        """Whether it has been spoilt, and must fail."""
        return self.mode in CONTROLS


# ---- negative controls -----------------------------------------------------------------------------------------------


def _with(path: WorkloadPath, columns: Mapping[str, pa.Array]) -> WorkloadPath:
    table = path.table
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), values)
    return WorkloadPath(table, path.info)


def shuffled_order(path: WorkloadPath, random: np.random.Generator) -> WorkloadPath:
    """Return a path with its operations in random order."""
    taken = WorkloadPath(path.table.take(random.permutation(path.table.num_rows)), path.info)
    return _with(taken, {"id": path.table["id"]})


def poisson_slack(path: WorkloadPath, random: np.random.Generator) -> WorkloadPath:
    """Return a path with slack times of a Poisson process of the same mean."""
    columns = {}
    for group in range(path.group_count):
        slack = path.table[f"slack_{group}"]
        mean = pc.mean(slack).as_py() or 0
        drawn = np.rint(random.exponential(mean, len(slack))).astype(np.int64)
        columns[f"slack_{group}"] = pa.array(drawn, mask=pc.is_null(slack).to_numpy())
    return _with(path, columns)


def uniform_offsets(path: WorkloadPath, random: np.random.Generator) -> WorkloadPath:
    """Return a path with offsets spread over the range that the program has used."""
    columns = {}
    for group in range(path.group_count):
        offset = path.table[f"offset_{group}"]
        largest = pc.max(offset).as_py() or 0
        drawn = random.integers(0, largest + 1, len(offset))
        columns[f"offset_{group}"] = pa.array(drawn, mask=pc.is_null(offset).to_numpy())
    return _with(path, columns)


def children_elsewhere(path: WorkloadPath, random: np.random.Generator) -> WorkloadPath:
    """Return a path whose root is unchanged, and whose children access other places, in other sizes."""
    columns = {}
    for group in range(1, path.group_count):
        for name in ("offset", "size"):
            values = path.table[f"{name}_{group}"]
            largest = pc.max(values).as_py() or 0
            drawn = random.integers(0, largest + 1, len(values))
            columns[f"{name}_{group}"] = pa.array(drawn, mask=pc.is_null(values).to_numpy())
    return _with(path, columns)


#: Ways to spoil a path.
CONTROLS: Mapping[str, Callable[[WorkloadPath, np.random.Generator], WorkloadPath]] = {
    "shuffled order": shuffled_order,
    "Poisson slack": poisson_slack,
    "uniform offsets": uniform_offsets,
    "children elsewhere": children_elsewhere,
}


# ---- the table -------------------------------------------------------------------------------------------------------


def _worst(original: WorkloadPath, several: Iterable[WorkloadPath]) -> tuple[dict[str, float], int]:
    """Return the worst value of each metric, and the most violations beyond those of the original."""
    worst = dict.fromkeys(LIMITS, 0.0)
    own, most = len(find_violations(original)), 0
    for path in several:
        for name, value in compare_paths(original, path).values.items():
            metric = name.rpartition(".")[2]
            worst[metric] = max(worst[metric], value)
        most = max(most, len(find_violations(path)) - own)
    return worst, most


def _paths(path: WorkloadPath, profile: Profile, mode: str, seeds: int) -> Iterable[WorkloadPath]:
    for seed in range(1 if mode == "faithful" else seeds):
        if mode in CONTROLS:
            yield CONTROLS[mode](path, np.random.default_rng(seed))
        elif mode == "profile":
            yield synthesize(profile, mode="sampled", seed=seed)
        else:
            yield synthesize(path, mode=mode, seed=seed)


def _modes(profile: Profile, path: WorkloadPath) -> list[str]:
    """Return the controls; without offsets, slack times or children there are none to be spoilt."""
    children = [path.table[f"offset_{group}"] for group in range(1, path.group_count)]
    far = any((pc.max(column).as_py() or 0) > 0 for column in children)
    offsets = any(item.offset.values.size and item.offset.values[-1] > 0 for item in profile.classes.values())
    slack = any(item.slack.values.size and item.slack.values[-1] > 0 for item in profile.classes.values())
    left_out = {"uniform offsets": not offsets, "Poisson slack": not slack, "children elsewhere": not far}
    return [name for name in ("faithful", "quota", "sampled", "profile", *CONTROLS) if not left_out.get(name)]


def fidelity(
    paths: Mapping[str, WorkloadPath], seeds: int = 20, progress: Callable[[str], None] = lambda _: None
) -> list[Row]:
    """Return how close synthetic paths come to the paths that are given.

    Parameters
    ----------
    paths : by name.
    seeds : paths that are synthesized in each mode.
    progress : receives what is done next.
    """
    rows = []
    for name, path in paths.items():
        profile = with_shapes(characterize(path), path)
        for mode in _modes(profile, path):
            progress(f"{name}: {mode}")
            worst, violations = _worst(path, _paths(path, profile, mode, seeds))
            limits = QUOTA_LIMITS if mode in ("faithful", "quota") else LIMITS
            rows.append(
                Row(
                    name=name,
                    mode=mode,
                    seeds=1 if mode == "faithful" else seeds,
                    operations=path.table.num_rows,
                    worst=worst,
                    violations=violations,
                    limits=limits,
                )
            )
    return rows


# ---- output ----------------------------------------------------------------------------------------------------------


def to_json(rows: Sequence[Row]) -> str:
    """Return the table as JSON; all values are shares or distances from 0 to 1."""
    document: list[dict[str, Any]] = [
        {
            "path": row.name,
            "mode": row.mode,
            "control": row.is_control,
            "seeds": row.seeds,
            "operations": row.operations,
            "worst": dict(row.worst),
            "limits": dict(row.limits),
            "violations": row.violations,
            "failed": row.failed,
        }
        for row in rows
    ]
    return json.dumps({"pioneer_fidelity": 1, "rows": document}, indent=1)


def _cell(row: Row, metric: str) -> str:
    value = row.worst[metric]
    text = "0" if value == 0 else f"{value:.3f}"
    return f"**{text}**" if value > row.limits[metric] else text


def to_markdown(rows: Sequence[Row]) -> str:
    """Return the table as Markdown; values beyond their limits are bold."""
    metrics = list(LIMITS)
    head = ["path", "operations", "mode", *metrics, "violations"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    limits = ["", "", "limit (quota)"] + [
        f"{LIMITS[item]:g}" + (f" ({QUOTA_LIMITS[item]:g})" if QUOTA_LIMITS[item] != LIMITS[item] else "")
        for item in metrics
    ]
    lines.append("| " + " | ".join([*limits, "0"]) + " |")
    for row in rows:
        cells = [
            row.name,
            f"{row.operations:,}",
            row.mode,
            *(_cell(row, item) for item in metrics),
            str(row.violations),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
