"""The file system of a path, and what follows from it for this library."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.common.units import size_text
from mpiio_ext.doctor.children import ask
from mpiio_ext.doctor.findings import Finding, bad, good, warn
from mpiio_ext.doctor.mpi import job_of

if TYPE_CHECKING:
    from mpiio_ext.layout import Layout

#: In which launchers tell how many ranks a node has.
_HERE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE")
_LITTLE = 64 * 2**20
_LOCKS = {
    "local": "locked by one kernel",
    "server": "extent locks of each server",
    "token": "lock tokens",
    "none": "no locks between clients",
}
#: Who keeps the caches of several nodes in line where they are not one cache.
_KEPT = {"server": "by the servers' locks", "token": "by lock tokens"}
_MIB = 2**20
_ROUNDS = 4  # whole stripes of every aggregator: of a file with fewer there is more to say than fits here


def _there(path: Path) -> bool:
    """Return whether a path can be found; one below a folder that may not be searched cannot."""
    try:
        return path.exists()
    except OSError:
        return False


def nearest(path: Path) -> Path:
    """Return a path, or the next folder above that can be found. For child processes: a file server may not answer."""
    place = path.absolute()
    while not _there(place) and place != place.parent:
        place = place.parent
    return place


def folder_of(path: Path) -> Path:
    """Return the folder that stands for a path: itself, or the next one above. For child processes, too."""
    place = nearest(path)
    return place if place.is_dir() else place.parent


def decide(layout: Layout, ranks: int, nodes: int) -> dict[str, Any]:
    """Return what the library's rules take for a large collective write there, as facts.

    Parameters
    ----------
    layout : of the file or folder.
    ranks, nodes : of the job.
    """
    from mpiio_ext.partitioning import Geometry, choose

    stripe_bytes = int(layout.value("stripe_size") or _MIB)
    known = layout.source("stripe_size") not in (None, "default")
    servers = max(1, int(layout.value("servers") or layout.value("stripe_count") or 1))
    stripes = _ROUNDS * servers * ranks
    geometry = Geometry(
        start_bytes=0,
        end_bytes=stripes * stripe_bytes,
        stripe_size_bytes=stripe_bytes,
        servers=servers,
        aggregators=ranks,
    )
    taken = choose(
        geometry,
        lock=str(layout.value("lock_protocol") or "none"),
        coherent=bool(layout.value("coherent")),
        nodes=nodes,
        stripe_known=known,
    )
    return {
        "method": taken.method,
        "aggregators": taken.aggregators,
        "window_bytes": taken.window_bytes,
        "stripe_bytes": stripe_bytes,
        "stripe_known": known,
        "servers": servers,
        "ranks": ranks,
        "nodes": nodes,
        "reason": taken.reason,
    }


def _job(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return ranks and nodes of the job; without one, of a job that fills this machine."""
    job = job_of(environment)
    if not job.launched:
        return os.cpu_count() or 1, 1
    here = [int(environment[name]) for name in _HERE if environment.get(name, "").isdecimal()]
    return job.size, max(1, -(-job.size // max(1, here[0]))) if here else 1


def examine(path: Path, environment: Mapping[str, str], limit_s: float = 20.0) -> list[Finding]:
    """Return file system, layout, locks and coherence of a path, and whether files can be made there.

    Parameters
    ----------
    path : file or folder; of one that is not there yet the next folder above counts.
    environment : variables that count.
    limit_s : seconds that the file system may take.
    """
    key = "path.file_system"
    ranks, nodes = _job(environment)
    # even stat(2) may hang: not here
    answer = ask("layout", str(path), str(ranks), str(nodes), environment=environment, limit_s=limit_s)
    place = Path(answer.values.get("place", path.absolute()))
    if "layout" not in answer.values:
        reason = answer.values.get("reason") or answer.reason()
        number = answer.values.get("errno")
        return [bad(key, f"{place}: {reason}", "name a path that can be read: --path", path=str(place), errno=number)]
    layout = answer.values["layout"]
    values = {name: item["value"] for name, item in layout["facts"].items()}
    sources = {name: item.get("source") for name, item in layout["facts"].items()}
    kind = _kind(path, place, bool(answer.values.get("there", True)), values, sources, answer.values.get("auto"))
    return [kind, _coherence(values), _room(Path(answer.values.get("folder", place)), environment, limit_s)]


def _striping(values: dict[str, Any], sources: dict[str, Any]) -> str:
    """Return size and number of stripes, and the servers, with who told; what nobody told is said to be so."""
    length, source = values.get("stripe_size"), sources.get("stripe_size")
    if not length or source == "default":
        stripes = f"stripe size not told{f', {size_text(int(length), exact=True)} assumed' if length else ''}"
    else:
        over = f" over {values['stripe_count']}" if values.get("stripe_count") else ""
        stripes = f"stripes of {size_text(int(length), exact=True)}{over}{f' ({source})' if source else ''}"
    count = values.get("servers")
    return stripes + (f", {count} server{'s' if int(count) > 1 else ''}" if count else "")


def _taken(auto: dict[str, Any]) -> str:
    """Return what auto takes and why, for whom."""
    ranks, nodes, many = int(auto["ranks"]), int(auto["nodes"]), int(auto["aggregators"])
    job = f"{ranks} rank{'s' if ranks > 1 else ''} on {nodes} node{'s' if nodes > 1 else ''}"
    why = [*str(auto["reason"]).split("; "), ""][1]  # before: the numbers; behind: estimated times
    return (
        f"auto takes {auto['method']} for {job}: {many} aggregator{'s' if many > 1 else ''}, "
        f"windows of {size_text(int(auto['window_bytes']), exact=True)}{f' ({why})' if why else ''}"
    )


def _kind(
    path: Path,
    place: Path,
    there: bool,
    values: dict[str, Any],
    sources: dict[str, Any],
    auto: dict[str, Any] | None,
) -> Finding:
    key, name = "path.file_system", values.get("file_system", "unknown")
    protocol = str(values.get("lock_protocol", "none"))
    kept = "one page cache" if values.get("coherent") else "caches of several nodes not coherent"
    if protocol in _KEPT and not values.get("coherent"):
        kept = f"caches of several nodes coherent {_KEPT[protocol]}"
    text = f"{place}: {name}, {_striping(values, sources)}, {_LOCKS.get(protocol, protocol)}, {kept}"
    advice = _taken(auto) if auto else ""
    if advice and kept.endswith("not coherent") and int((auto or {}).get("nodes", 1)) > 1:
        advice = f"where path.coherence leaves files to this library, {advice}"
    facts = {"path": str(place), "layout": values, "sources": sources, "auto": auto}
    if not there:
        above = "of what is not there, the next folder above is asked"
        return warn(key, f"{path} is not there; {text}", f"{above}; {advice}" if advice else above, **facts)
    return good(key, text, advice, **facts)


def _coherence(values: dict[str, Any]) -> Finding:
    key, name = "path.coherence", values.get("file_system", "unknown")
    facts = {"coherent": values.get("coherent"), "file_system": name}
    if values.get("coherent"):
        return good(key, "one page cache for all that see the file: on one node and several", **facts)
    kept = _KEPT.get(str(values.get("lock_protocol")))
    if kept:
        return good(key, f"{name} keeps the caches of several nodes coherent {kept}", **facts)
    return warn(
        key,
        f"{name} does not keep the caches of several nodes coherent",
        "jobs of one node are carried out here; on several nodes files stay with the MPI library, unless "
        "mpiox_coherence=refresh is set: docs/explanation/coherence.md",
        **facts,
    )


def _room(folder: Path, environment: Mapping[str, str], limit_s: float) -> Finding:
    key = "path.room"
    answer = ask("folder", str(folder), environment=environment, limit_s=limit_s)
    free, refused = answer.values.get("free_bytes"), answer.values.get("writable")
    facts = {"folder": str(folder), "free_bytes": free, "writable": refused == ""}
    if refused is None or free is None:
        return bad(key, f"{folder}: {answer.reason()}", "does the file system answer?", **facts)
    if refused:
        return bad(key, f"no file can be made in {folder}: {refused}", "choose another folder: --path", **facts)
    if int(free) < _LITTLE:
        return warn(
            key, f"{size_text(int(free))} free in {folder}",
            "a full file system ends writes with MPI_ERR_NO_SPACE", **facts
        )
    return good(key, f"files can be made in {folder}, {size_text(int(free))} free", **facts)
