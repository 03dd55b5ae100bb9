"""The structure of a workload as the part ``shapes`` of a profile: written, read and checked.

Content.   ``{"of": DIGEST, "representatives": [...], "members": [...], "ranks": ..., "operations": ..., "kinds": [...],
           "shapes": [...], "archetypes": [...], "times": [...]}``. Lists of numbers are runs [first, step, count];
           times are reduced to `MOST_TIMES` values each (`Distribution`), in slices in
           the order of the path.
Digest.    SHA-256 of the part ``classes`` of the profile: who edits that part means the characteristics (`fits`). Those
           of single characteristics, in the part ``characteristics``, tell which ones, and so whether the shapes that
           they were counted with still hold (`edited`).
Reading.   What comes from a file is checked before anything is made of it: `DocumentError` names the place, as a JSON
           pointer.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.common.documents import DocumentError, pointer
from mpiio_ext.pioneer.path import OWNERS
from mpiio_ext.pioneer.path.document import PathInfo, parse_info
from mpiio_ext.pioneer.profile import Distribution, Profile
from mpiio_ext.pioneer.profile.characterize import NO_FILE
from mpiio_ext.pioneer.profile.document import to_json
from mpiio_ext.pioneer.synthesis.model import Archetype, Kind, Linked, Model, Shape, Step, Times, time_slices

__all__ = ["MOST_TIMES", "digest_of", "digests_of", "fits", "model_from_json", "model_to_json"]

MOST_TIMES = 512
#: Operations that a file may ask for: what is read must not fill the memory.
_MOST = 1 << 28


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _runs(values: NDArray[np.int64]) -> list[list[int]]:
    """Return numbers as runs [first, step, count]."""
    if not values.size:
        return []
    steps = np.diff(values)
    found, at = [], 0
    # Where the step changes a run ends; the value there begins the next one.
    changes = np.append(np.flatnonzero(np.diff(steps)) + 1, values.size - 1)
    for change in changes.tolist():
        if change < at:
            continue
        count = change - at + 1
        found.append([int(values[at]), int(steps[at]) if count > 1 else 0, count])
        at = change + 1
    if at < values.size:
        found.append([int(values[at]), 0, 1])
    return found


class _Reader:
    """Takes values out of a document; the first one that is wrong ends it."""

    def fail(self, place: str, what: str) -> DocumentError:
        return DocumentError([(place, what)])

    def get(self, place: str, found: Any, name: str) -> Any:
        if not isinstance(found, dict) or name not in found:
            raise self.fail(place + pointer(name), "missing")
        return found[name]

    def items(self, place: str, found: Any, name: str) -> list[tuple[str, Any]]:
        several = self.get(place, found, name)
        if not isinstance(several, list):
            raise self.fail(place + pointer(name), "not a list")
        return [(place + pointer(name, at), item) for at, item in enumerate(several)]

    def number(self, place: str, found: Any, *, least: int = 0, below: int = 1 << 62) -> int:
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found < below:
            raise self.fail(place, f"not a whole number from {least} to {below - 1}")
        return found

    def array(self, place: str, found: Any, *, count: int | None = None, below: int = 1 << 62) -> NDArray[np.int64]:
        """Return the numbers of runs: each from -1 to `below` - 1, `count` of them."""
        if not isinstance(found, list):
            raise self.fail(place, "not a list of runs [first, step, count]")
        total, parts = 0, []
        for at, run in enumerate(found):
            if not isinstance(run, list) or len(run) != 3:
                raise self.fail(f"{place}/{at}", "not a run [first, step, count]")
            first = self.number(f"{place}/{at}/0", run[0], least=-1, below=below)
            step = self.number(f"{place}/{at}/1", run[1], least=-(1 << 62))
            length = self.number(f"{place}/{at}/2", run[2], least=1, below=_MOST)
            total += length
            if total > _MOST or not -1 <= first + step * (length - 1) < below:
                raise self.fail(f"{place}/{at}", "too long, or it leaves the numbers that are allowed")
            parts.append(first + step * np.arange(length, dtype=np.int64))
        if count is not None and total != count:
            raise self.fail(place, f"{total} numbers, not {count}")
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def distribution(self, place: str, found: Any) -> Distribution:
        try:
            return Distribution.from_json(found)
        except DocumentError as error:
            raise DocumentError([(f"{place}{within}", what) for within, what in error.mistakes]) from error


# ---- writing ---------------------------------------------------------------------------------------------------------


def _counted(found: Mapping[int, int]) -> dict[str, Any]:
    values = np.array(sorted(found), np.int64)
    return {"values": values.tolist(), "counts": [found[int(value)] for value in values]}


def _shape_to_json(shape: Shape) -> dict[str, Any]:
    return {
        "session": [shape.first, shape.last] if shape.session else None,
        "kinds": _runs(shape.kinds), "places": _runs(shape.places),
        "accesses": [{"count": int(count), "columns": [_runs(row) for row in access]}
                     for access, count in zip(shape.accesses, shape.counts, strict=True)],
    }  # fmt: skip


def _track_to_json(track: Sequence[Step]) -> dict[str, Any]:
    overlapping = [at for at, step in enumerate(track) if step.overlaps]
    members = np.array([step.member for step in track], np.int64)
    return {"shapes": _runs(np.array([step.shape for step in track], np.int64)),
            "overlapping": _runs(np.array(overlapping, np.int64)),
            **({"members": _runs(members)} if members.any() else {})}  # fmt: skip


def _step_to_json(step: Step) -> list[int | bool]:
    return [step.shape, step.overlaps, step.member] if step.member else [step.shape, step.overlaps]


def _archetype_to_json(found: Archetype) -> dict[str, Any]:
    gaps = [{"steps": [_step_to_json(step) for step in pair], **_counted(counted)}
            for pair, counted in found.gaps.items()]  # fmt: skip
    linked = [{"owner": owner, "names": list(names)} for owner, names in found.linked]
    return {"owner": found.owner, "names": list(found.names), **({"linked": linked} if linked else {}),
            "track": _track_to_json(found.track), "first": _counted(found.first), "gaps": gaps}  # fmt: skip


def _times_to_json(times: Times) -> list[dict[str, Any]]:
    found = []
    for key, samples in times.samples.items():
        parts = [samples[:, part] for part in time_slices(samples.shape[1])]
        slices = [[Distribution.of(row, MOST_TIMES // len(parts)).to_json() for row in part] for part in parts]
        found.append({"key": list(key), "slices": slices})
    return found


def digest_of(profile: Profile) -> str:
    """Return the digest of the characteristics of a profile, of which the fits are no part."""
    return hashlib.sha256(json.dumps(to_json(profile, fits=False)["classes"], sort_keys=True).encode()).hexdigest()


def fits(profile: Profile) -> bool:
    """Return whether a profile has shapes, and they were counted with its characteristics."""
    return isinstance(profile.shapes, Mapping) and profile.shapes.get("of") == digest_of(profile)


def digests_of(profile: Profile) -> dict[str, dict[str, str]]:
    """Return a digest of each characteristic of a profile, by class and name."""
    classes = to_json(profile, fits=False)["classes"]
    return {owner: {name: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
                    for name, value in item.items()} for owner, item in classes.items()}  # fmt: skip


def model_to_json(model: Model, digest: str, digests: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, Any]:
    """Return a structure as JSON.

    Parameters
    ----------
    model : what is written.
    digest, digests : of the profile whose characteristics it has (`digest_of`, `digests_of`).
    """
    rules = [rule.to_json() for rule in model.info.communicators]
    return {
        **({"communicators": rules} if rules else {}), **({"characteristics": digests} if digests else {}),
        "of": digest, "representatives": list(model.info.representatives),
        "members": [list(group) for group in model.info.members], "ranks": model.info.ranks,
        "starts": list(model.info.starts),
        "operations": model.operations,
        "kinds": [[kind.operation, kind.layer, kind.groups, kind.extra, kind.named] for kind in model.kinds],
        "shapes": [_shape_to_json(shape) for shape in model.shapes],
        "archetypes": [_archetype_to_json(item) for item in model.archetypes],
        "times": _times_to_json(model.times),
    }  # fmt: skip


# ---- reading ---------------------------------------------------------------------------------------------------------


def _kind(reader: _Reader, place: str, found: Any, groups: int) -> Kind:
    fitting = isinstance(found, list) and len(found) == 5 and isinstance(found[0], str) and isinstance(found[1], str)
    if not fitting or not (found[3] is None or isinstance(found[3], str)) or not isinstance(found[4], bool):
        raise reader.fail(place, "not [operation, layer, groups, extra or null, whether it names a file]")
    return Kind(found[0], found[1], reader.number(f"{place}/2", found[2], least=1, below=1 << groups), found[3],
                found[4])  # fmt: skip


def _shape(reader: _Reader, place: str, found: Any, kinds: int, groups: int) -> Shape:
    numbers = reader.array(f"{place}/kinds", reader.get(place, found, "kinds"), below=kinds)
    places = reader.array(f"{place}/places", reader.get(place, found, "places"), count=numbers.size)
    if not numbers.size or numbers.min() < 0 or places[0] != 0 or (np.diff(places) < 1).any():
        raise reader.fail(place, "kinds and places: none, or places do not ascend from 0")
    session = reader.get(place, found, "session")
    if session is not None and not (isinstance(session, list) and len(session) == 2):
        raise reader.fail(f"{place}/session", "not [first, last] or null")
    first, last = (0, numbers.size - 1) if session is None else (
        reader.number(f"{place}/session/{at}", session[at], below=numbers.size) for at in (0, 1))  # fmt: skip
    accesses, counts = [], []
    for where, item in reader.items(place, found, "accesses"):
        columns = reader.items(where, item, "columns")
        if len(columns) != 2 * groups:
            raise reader.fail(f"{where}/columns", f"{len(columns)} columns, not {2 * groups}")
        accesses.append(np.stack([reader.array(at, column, count=numbers.size) for at, column in columns]))
        counts.append(reader.number(f"{where}/count", reader.get(where, item, "count"), least=1))
    if not accesses:
        raise reader.fail(f"{place}/accesses", "there is none")
    return Shape(session is not None, numbers, places, first, last, accesses, np.array(counts, np.int64))


def _counter(reader: _Reader, place: str, found: Any) -> Counter[int]:
    if isinstance(found, dict):
        found = {name: found[name] for name in ("values", "counts") if name in found}
    read = reader.distribution(place, found)
    return Counter(dict(zip(read.values.tolist(), read.counts.tolist(), strict=True)))


def _track(reader: _Reader, place: str, found: Any, shapes: int, files: int) -> tuple[Step, ...]:
    numbers = reader.array(f"{place}/shapes", reader.get(place, found, "shapes"), below=shapes)
    if not numbers.size or numbers.min() < 0:
        raise reader.fail(f"{place}/shapes", "there is none, or a number is negative")
    over = reader.array(f"{place}/overlapping", reader.get(place, found, "overlapping"), below=numbers.size)
    if (over < 1).any():
        raise reader.fail(f"{place}/overlapping", "the first unit overlaps nothing, and there is none before it")
    overlaps = np.zeros(numbers.size, bool)
    overlaps[over] = True
    members = np.zeros(numbers.size, np.int64)
    if "members" in found:
        members = reader.array(f"{place}/members", found["members"], count=numbers.size, below=files)
        if members.min() < 0 or members[0] != 0:
            raise reader.fail(f"{place}/members", "the first one is not 0, or a number is negative")
    return tuple(Step(*about) for about in zip(numbers.tolist(), overlaps.tolist(), members.tolist(), strict=True))


def _step(reader: _Reader, place: str, found: Any, shapes: int, files: int) -> Step:
    if not isinstance(found, list) or len(found) not in (2, 3) or not isinstance(found[1], bool):
        raise reader.fail(place, "not [shape, whether it overlaps], and the number of the file where some are linked")
    member = reader.number(f"{place}/2", found[2], below=files) if len(found) == 3 else 0
    return Step(reader.number(f"{place}/0", found[0], below=shapes), found[1], member)


def _owner_and_names(reader: _Reader, place: str, found: Any) -> Linked:
    owner = reader.get(place, found, "owner")
    if owner not in (*OWNERS, NO_FILE):
        raise reader.fail(f"{place}/owner", f"not one of {', '.join((*OWNERS, NO_FILE))}")
    names = [name for _, name in reader.items(place, found, "names")]
    if not names or (names != [None] and not all(isinstance(name, str) for name in names)):
        raise reader.fail(f"{place}/names", "not a list of names, or [null]")
    return owner, tuple(names)


def _archetype(reader: _Reader, place: str, found: Any, shapes: int) -> Archetype:
    owner, names = _owner_and_names(reader, place, found)
    linked = [_owner_and_names(reader, where, item)
              for where, item in (reader.items(place, found, "linked") if "linked" in found else [])]  # fmt: skip
    if any(len(others) != len(names) for _, others in linked):
        raise reader.fail(f"{place}/linked", f"not {len(names)} names of each")
    files = 1 + len(linked)
    track = _track(reader, f"{place}/track", reader.get(place, found, "track"), shapes, files)
    gaps = {}
    for where, item in reader.items(place, found, "gaps"):
        steps = [_step(reader, at, step, shapes, files) for at, step in reader.items(where, item, "steps")]
        if len(steps) != 2:
            raise reader.fail(f"{where}/steps", "not two")
        gaps[steps[0], steps[1]] = _counter(reader, where, item)
    for pair in pairwise(track):
        if not gaps.get(pair):
            raise reader.fail(f"{place}/gaps", f"there is none for the shapes {[step.shape for step in pair]}")
    first = _counter(reader, f"{place}/first", reader.get(place, found, "first"))
    if not first or min(first) < 0:
        raise reader.fail(f"{place}/first", "there is no value, or one is negative")
    return Archetype(owner, names, track, first, gaps, tuple(linked))


def _slice(reader: _Reader, place: str, found: Any, groups: int) -> NDArray[np.int64]:
    if not isinstance(found, list) or len(found) != 2 * groups:
        raise reader.fail(place, f"not {2 * groups} distributions")
    rows = [reader.distribution(f"{place}/{at}", row) for at, row in enumerate(found)]
    if len({row.total for row in rows}) != 1 or not 0 < rows[0].total <= _MOST:
        raise reader.fail(place, "the distributions have no values, too many, or not equally many")
    return np.stack([row.multiset() for row in rows])


def _times(reader: _Reader, found: Any, groups: int) -> Times:
    samples = {}
    for where, item in reader.items("/shapes", found, "times"):
        key = [reader.number(at, number, least=-1) for at, number in reader.items(where, item, "key")]
        slices = [_slice(reader, at, part, groups) for at, part in reader.items(where, item, "slices")]
        if len(key) != 4 or not slices:
            raise reader.fail(where, "not a key of 4 numbers with slices")
        samples[key[0], key[1], key[2], key[3]] = np.concatenate(slices, axis=1)
    return Times(samples)


def _info(found: Any) -> PathInfo:
    names = ("representatives", "members", "ranks", "starts", "communicators")
    try:
        return parse_info({name: found[name] for name in names if name in found} if isinstance(found, dict) else found)
    except DocumentError as error:
        raise DocumentError([(f"/shapes{within}", what) for within, what in error.mistakes]) from error


def _several(reader: _Reader, found: Any, name: str, make: Any, *about: int) -> Sequence[Any]:
    return tuple(make(reader, where, item, *about) for where, item in reader.items("/shapes", found, name))


def model_from_json(found: Mapping[str, Any]) -> Model:
    """Return the structure that the part ``shapes`` of a profile is.

    Raises
    ------
    DocumentError
        It is none; the error names the place.
    """
    reader = _Reader()
    info = _info(found)
    groups = len(info.representatives)
    kinds = _several(reader, found, "kinds", _kind, groups)
    shapes = _several(reader, found, "shapes", _shape, len(kinds), groups)
    archetypes = _several(reader, found, "archetypes", _archetype, len(shapes))
    operations = reader.number("/shapes/operations", reader.get("/shapes", found, "operations"), below=_MOST)
    return Model(tuple(kinds), tuple(shapes), tuple(archetypes), _times(reader, found, groups), info, operations)
