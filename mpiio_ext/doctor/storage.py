"""The file system of a path, and its consequences for this library; the room in /dev/shm."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpiio_ext.common.units import size_text
from mpiio_ext.doctor.children import Answer, ask
from mpiio_ext.doctor.findings import Finding, bad, good, warn

_LITTLE = 64 * 2**20
_LOCKS = {
    "local": "locked by one kernel",
    "server": "extent locks of each server",
    "token": "lock tokens",
    "none": "no locks between clients",
}
#: Who keeps the caches of several nodes coherent, unless they are one cache.
_KEPT = {"server": "by the servers' locks", "token": "by lock tokens"}
_SMALL_SHM = 64 * 2**20


def refusal(folder: Path) -> str:
    """Return why no file can be made in a folder, "" if one can. For child processes, as `nearest`."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


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
    sources = {name: item.get("source") for name, item in layout["facts"].items()}
    kind = _kind(path, place, bool(answer.values.get("there", True)), values, sources)
    return [kind, _coherence(values), _room(answer, place)]


def _striping(values: dict[str, Any], sources: dict[str, Any]) -> str:
    """Return size and number of stripes, and the servers, with their sources; without a source they are unknown."""
    length, source = values.get("stripe_size"), sources.get("stripe_size")
    if not length or source == "default":
        stripes = f"stripe size unknown{f', {size_text(int(length), exact=True)} assumed' if length else ''}"
    else:
        over = f" over {values['stripe_count']}" if values.get("stripe_count") else ""
        stripes = f"stripes of {size_text(int(length), exact=True)}{over}{f' ({source})' if source else ''}"
    count = values.get("servers")
    return stripes + (f", {count} server{'s' if int(count) > 1 else ''}" if count else "")


def _kind(path: Path, place: Path, there: bool, values: dict[str, Any], sources: dict[str, Any]) -> Finding:
    key, name = "path.file_system", values.get("file_system", "unknown")
    protocol = str(values.get("lock_protocol", "none"))
    kept = "one page cache" if values.get("coherent") else "caches of several nodes not coherent"
    if protocol in _KEPT and not values.get("coherent"):
        kept = f"caches of several nodes coherent {_KEPT[protocol]}"
    text = f"{place}: {name}, {_striping(values, sources)}, {_LOCKS.get(protocol, protocol)}, {kept}"
    facts = {"path": str(place), "layout": values, "sources": sources}
    if not there:
        above = "for a missing path, the next folder above is examined"
        return warn(key, f"{path} is not there; {text}", above, **facts)
    return good(key, text, **facts)


def _coherence(values: dict[str, Any]) -> Finding:
    key, name = "path.coherence", values.get("file_system", "unknown")
    facts = {"coherent": values.get("coherent"), "file_system": name}
    if values.get("coherent"):
        return good(key, "one page cache for all that see the file: on one node and several", **facts)
    kept = _KEPT.get(str(values.get("lock_protocol")))
    if kept:
        return good(key, f"{name} keeps the caches of several nodes coherent {kept}", **facts)
    several = "on several nodes files stay with the MPI library, unless mpiox_coherence=refresh is set"
    advice = f"jobs of one node are carried out here; {several}: `mpiio-ext help explanation/coherence`"
    return warn(key, f"{name} does not keep the caches of several nodes coherent", advice, **facts)


def _room(answer: Answer, place: Path) -> Finding:
    key, folder = "path.room", answer.values.get("folder", str(place))
    free, refused = answer.values.get("free_bytes"), answer.values.get("refused")
    facts = {"folder": folder, "free_bytes": free, "writable": refused == ""}
    if refused is None or free is None:
        return bad(key, f"{folder}: {answer.reason()}", "does the file system answer?", **facts)
    if refused:
        return bad(key, f"no file can be made in {folder}: {refused}", "choose another folder: --path", **facts)
    if int(free) < _LITTLE:
        text = f"{size_text(int(free))} free in {folder}"
        return warn(key, text, "a full file system ends writes with MPI_ERR_NO_SPACE", **facts)
    return good(key, f"files can be made in {folder}, {size_text(int(free))} free", **facts)


def shm(environment: Mapping[str, str], root: Path = Path("/")) -> Finding:
    """Return whether there is room in /dev/shm, which MPI libraries use between the ranks of a node.

    This library uses it, or TMPDIR, where ranks cannot open each other's memfd. A test gives another folder for "/".
    """
    key, folder = "memory.shm", root / "dev/shm"
    other = environment.get("TMPDIR") or "/tmp"
    if reason := refusal(folder):
        spare = "" if refusal(Path(other)) else f"; this library uses {other} in its place"
        advice = f"mount a tmpfs there (MPI libraries need it){spare}"
        facts = {"writable": False, "total_bytes": None, "free_bytes": None}
        return warn(key, f"/dev/shm cannot be used: {reason}", advice, **facts)
    room = os.statvfs(folder)
    total, free = room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize
    known = {"writable": True, "total_bytes": total, "free_bytes": free}
    text = f"/dev/shm: {size_text(free)} of {size_text(total)} free"
    if min(total, free) < _SMALL_SHM:
        full = total >= _SMALL_SHM
        advice = "remove what ended jobs have left there" if full else "make it larger: docker run --shm-size=1g"
        return warn(key, text, f"{advice}; MPI libraries die of SIGBUS where it is full", **known)
    return good(key, text, **known)
