"""The file system of a path, and what follows from it for this library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpiio_ext.doctor.children import ask
from mpiio_ext.doctor.findings import Finding, bad, good, warn
from mpiio_ext.doctor.machine import size

__all__ = ["examine", "folder_of", "nearest"]

_LITTLE = 64 * 2**20
_LOCKS = {
    "local": "no locks between clients",
    "server": "extent locks of each server: group_cyclic or transpose",
    "token": "lock tokens: aligned domains",
    "none": "no locks",
}


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


def examine(path: Path, environment: Mapping[str, str], limit_s: float = 20.0) -> list[Finding]:
    """Return file system, layout, locks and coherence of a path, and whether files can be made there.

    Parameters
    ----------
    path : file or folder; of one that is not there yet the next folder above counts.
    environment : variables that count.
    limit_s : seconds that the file system may take.
    """
    key = "path.file_system"
    answer = ask("layout", str(path), environment=environment, limit_s=limit_s)  # even stat(2) may hang: not here
    place = Path(answer.values.get("place", path.absolute()))
    if "layout" not in answer.values:
        reason = answer.values.get("reason") or answer.reason()
        number = answer.values.get("errno")
        return [bad(key, f"{place}: {reason}", "name a path that can be read: --path", path=str(place), errno=number)]
    layout = answer.values["layout"]
    values = {name: item["value"] for name, item in layout["facts"].items()}
    kind = _kind(path, place, bool(answer.values.get("there", True)), values)
    return [kind, _coherence(values), _room(Path(answer.values.get("folder", place)), environment, limit_s)]


def _kind(path: Path, place: Path, there: bool, values: dict[str, Any]) -> Finding:
    name, protocol = values.get("file_system", "unknown"), str(values.get("lock_protocol", "none"))
    stripes = ""
    if values.get("stripe_size") and values.get("stripe_count"):
        stripes = f", stripes of {size(int(values['stripe_size']))} over {values['stripe_count']}"
    text = f"{place}: {name}{stripes}, {_LOCKS.get(protocol, protocol)}"
    if not there:
        advice = "of what is not there, the next folder above is asked"
        return warn("path.file_system", f"{path} is not there; {text}", advice, path=str(place), layout=values)
    return good(
        "path.file_system",
        text,
        f"mpiio-ext layout {place} shows all of it" if stripes else "",
        path=str(place),
        layout=values,
    )


def _coherence(values: dict[str, Any]) -> Finding:
    key, name = "path.coherence", values.get("file_system", "unknown")
    facts = {"coherent": values.get("coherent"), "file_system": name}
    if values.get("coherent"):
        return good(key, "one page cache for all that see the file: on one node and several", **facts)
    return warn(
        key,
        f"{name} does not keep the caches of several nodes coherent",
        "jobs of one node are carried out here; on several nodes files stay with the MPI library, unless "
        "mpiox_coherence=refresh is set: docs/clusters.md",
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
            key, f"{size(int(free))} free in {folder}", "a full file system ends writes with MPI_ERR_NO_SPACE", **facts
        )
    return good(key, f"files can be made in {folder}, {size(int(free))} free", **facts)
