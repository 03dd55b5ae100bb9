"""The structure of a workload as the part ``shapes`` of a profile: written, read and checked.

Content.   ``{"of": DIGEST, "representatives": [...], "members": [...], "ranks": ..., "operations": ..., "kinds": [...],
           "shapes": [...], "archetypes": [...], "times": [...]}``. Lists of numbers are runs [first, step, count];
           times are reduced to `MOST_TIMES` values each (`Distribution`), in slices in
           the order of the path.
Digest.    SHA-256 of the part ``classes`` of the profile: who edits that part means the characteristics (`fits`). Those
           of single characteristics, in the part ``characteristics``, show which ones, and so whether the shapes that
           they were counted with still hold (`edited`).
Reading.   What comes from a file is checked before anything is made of it: `DocumentError` names the place, as a JSON
           pointer.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain, pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, GetPydanticSchema, with_config
from typing_extensions import NotRequired, TypedDict

from mpiio_ext.common import documents
from mpiio_ext.common.documents import CLOSED, DocumentError, made_of, pointer
from mpiio_ext.pioneer.path.document import Count, PathInfo, Positive, Whole, parse_info
from mpiio_ext.pioneer.profile import Distribution, Profile
from mpiio_ext.pioneer.profile.document import to_json
from mpiio_ext.pioneer.profile.form import ListedDistribution
from mpiio_ext.pioneer.synthesis.model import Archetype, Kind, Model, Pair, Shape, Step, Times, time_slices

MOST_TIMES = 512
#: Most operations of a file: the input must not fill the memory.
_MOST = 1 << 28
#: Places, offsets and counts are below it.
_BELOW = 1 << 62


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


# ---- writing ---------------------------------------------------------------------------------------------------------


def _counted(found: Mapping[int, int]) -> dict[str, Any]:
    values = np.array(sorted(found), np.int64)
    return {"values": values.tolist(), "counts": [found[int(value)] for value in values]}


def _shape_to_json(shape: Shape) -> dict[str, Any]:
    return {
        "session": [shape.first, shape.last] if shape.session else None,
        "kinds": _runs(shape.kinds),
        "places": _runs(shape.places),
        "accesses": [
            {"count": int(count), "columns": [_runs(row) for row in access]}
            for access, count in zip(shape.accesses, shape.counts, strict=True)
        ],
    }


def _track_to_json(track: Sequence[Step]) -> dict[str, Any]:
    overlapping = [at for at, step in enumerate(track) if step.overlaps]
    members = np.array([step.member for step in track], np.int64)
    return {
        "shapes": _runs(np.array([step.shape for step in track], np.int64)),
        "overlapping": _runs(np.array(overlapping, np.int64)),
        **({"members": _runs(members)} if members.any() else {}),
    }


def _archetype_to_json(found: Archetype) -> dict[str, Any]:
    gaps = [
        {"steps": [list(step if step.member else step[:2]) for step in pair], **_counted(counted)}
        for pair, counted in found.gaps.items()
    ]
    linked = [{"owner": owner, "names": list(names)} for owner, names in found.linked]
    return {
        "owner": found.owner,
        "names": list(found.names),
        **({"linked": linked} if linked else {}),
        "track": _track_to_json(found.track),
        "first": _counted(found.first),
        "gaps": gaps,
    }


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
    return {
        owner: {
            name: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
            for name, value in item.items()
        }
        for owner, item in classes.items()
    }


def model_to_json(model: Model, digest: str, digests: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, Any]:
    """Return a structure as JSON.

    Parameters
    ----------
    model : what is written.
    digest, digests : of the profile whose characteristics it has (`digest_of`, `digests_of`).
    """
    rules = [rule.to_json() for rule in model.info.communicators]
    return {
        **({"communicators": rules} if rules else {}),
        **({"characteristics": digests} if digests else {}),
        "of": digest,
        "representatives": list(model.info.representatives),
        "members": [list(group) for group in model.info.members],
        "ranks": model.info.ranks,
        "starts": list(model.info.starts),
        "operations": model.operations,
        "kinds": [list(kind) for kind in model.kinds],
        "shapes": [_shape_to_json(shape) for shape in model.shapes],
        "archetypes": [_archetype_to_json(item) for item in model.archetypes],
        "times": _times_to_json(model.times),
    }


# ---- reading ---------------------------------------------------------------------------------------------------------


def _numbers(least: int) -> GetPydanticSchema:
    """Return the form of the numbers of runs, each from `least` to less than `_BELOW`."""

    def expanded(runs: Sequence[tuple[int, int, int]]) -> NDArray[np.int64]:
        total, parts = 0, [np.zeros(0, np.int64)]
        for at, (first, step, count) in enumerate(runs):
            total += count
            if total > _MOST or not all(least <= end < _BELOW for end in (first, first + step * (count - 1))):
                raise DocumentError([(pointer(at), "too long, or it leaves the numbers that are allowed")])
            parts.append(first + step * np.arange(count, dtype=np.int64))
        return np.concatenate(parts)

    return made_of(list[tuple[Whole, Whole, Annotated[int, Field(ge=1, lt=_MOST)]]], expanded)


_Numbers = Annotated[NDArray[np.int64], _numbers(-1)]
_Indices = Annotated[NDArray[np.int64], _numbers(0)]
_Sampled = Annotated[Distribution, made_of(ListedDistribution, Distribution.checked)]
_Operations = Annotated[int, Field(ge=0, lt=_MOST)]


@with_config(CLOSED)
class _Access(TypedDict):
    count: Annotated[int, Field(ge=1, lt=_BELOW)]
    columns: Annotated[list[_Numbers], Field(min_length=1)]


@with_config(CLOSED)
class _Shape(TypedDict):
    session: tuple[Count, Count] | None
    kinds: _Indices
    places: _Indices
    accesses: Annotated[list[_Access], Field(min_length=1)]


def _shape(found: _Shape) -> Shape:
    kinds, places = found["kinds"], found["places"]
    if not kinds.size or kinds.size != places.size or places[0] != 0 or (np.diff(places) < 1).any():
        raise ValueError("kinds and places: none, not equally many, or places do not ascend from 0")
    first, last = found["session"] or (0, kinds.size - 1)
    if max(first, last) >= kinds.size:
        raise DocumentError([("/session", f"there are {kinds.size} operations")])
    mistakes = [
        (pointer("accesses", at, "columns", number), f"{column.size} numbers, not {kinds.size}")
        for at, access in enumerate(found["accesses"])
        for number, column in enumerate(access["columns"])
        if column.size != kinds.size
    ]
    if mistakes:
        raise DocumentError(mistakes)
    return Shape(
        found["session"] is not None,
        kinds,
        places,
        first,
        last,
        [np.stack(access["columns"]) for access in found["accesses"]],
        np.array([access["count"] for access in found["accesses"]], np.int64),
    )


@with_config(CLOSED)
class _Track(TypedDict):
    shapes: _Indices
    overlapping: _Indices
    members: NotRequired[_Indices]


def _track(found: _Track) -> tuple[Step, ...]:
    shapes, over = found["shapes"], found["overlapping"]
    members = found.get("members", np.zeros_like(shapes))
    if not shapes.size:
        raise DocumentError([("/shapes", "there is none")])
    if (over < 1).any() or (over >= shapes.size).any():
        raise DocumentError([("/overlapping", f"not from 1 to {shapes.size - 1}: the first unit overlaps nothing")])
    if members.size != shapes.size or members[0]:
        raise DocumentError([("/members", f"not {shapes.size} numbers, or the first one is not 0")])
    overlaps = np.isin(np.arange(shapes.size), over)
    return tuple(map(Step, shapes.tolist(), overlaps.tolist(), members.tolist()))


@with_config(CLOSED)
class _Gap(TypedDict):
    steps: Pair
    values: list[Whole]
    counts: list[Positive]


def _gap(found: _Gap) -> tuple[Pair, Counter[int]]:
    return found["steps"], _counter(Distribution.checked({"values": found["values"], "counts": found["counts"]}))


def _counter(found: Distribution) -> Counter[int]:
    return Counter(dict(zip(found.values.tolist(), found.counts.tolist(), strict=True)))


_Owner = Literal["root", "shared", "private", "child", "none"]
_NoName = Annotated[tuple[None, ...], Field(min_length=1, max_length=1)]
_Names = _NoName | Annotated[tuple[str, ...], Field(min_length=1)]


@with_config(CLOSED)
class _Linked(TypedDict):
    owner: _Owner
    names: _Names


@with_config(CLOSED)
class _Archetype(_Linked):
    linked: NotRequired[list[_Linked]]
    track: Annotated[tuple[Step, ...], made_of(_Track, _track)]
    first: _Sampled
    gaps: list[Annotated[tuple[Pair, Counter[int]], made_of(_Gap, _gap)]]


def _archetype(found: _Archetype) -> Archetype:
    names, track, gaps, first = found["names"], found["track"], dict(found["gaps"]), _counter(found["first"])
    linked = tuple((other["owner"], other["names"]) for other in found.get("linked", ()))
    if any(len(others) != len(names) for _, others in linked):
        raise DocumentError([("/linked", f"not {len(names)} names of each")])
    if max(step.member for step in chain(track, *gaps)) > len(linked):
        raise DocumentError([("/track", f"there are {1 + len(linked)} files")])
    for pair in pairwise(track):
        if not gaps.get(pair):
            raise DocumentError([("/gaps", f"there is none for the shapes {[step.shape for step in pair]}")])
    if not first or min(first) < 0:
        raise DocumentError([("/first", "there is no value, or one is negative")])
    return Archetype(found["owner"], names, track, first, gaps, linked)


def _slice(found: Sequence[Distribution]) -> NDArray[np.int64]:
    if len({row.total for row in found}) != 1 or not 0 < found[0].total <= _MOST:
        raise ValueError("the distributions have no values, too many, or not equally many")
    return np.stack([row.multiset() for row in found])


_Slice = Annotated[NDArray[np.int64], made_of(list[_Sampled], _slice)]
_Role = Annotated[int, Field(ge=-1, lt=_BELOW)]


@with_config(CLOSED)
class _Times(TypedDict):
    key: tuple[_Role, _Role, _Role, _Role]
    slices: Annotated[list[_Slice], Field(min_length=1)]


class _Structure(TypedDict):
    """Facts that `PathInfo` lacks."""

    operations: _Operations
    kinds: list[Kind]
    shapes: list[Annotated[Shape, made_of(_Shape, _shape)]]
    archetypes: list[Annotated[Archetype, made_of(_Archetype, _archetype)]]
    times: list[_Times]


def _beyond(found: _Structure, groups: int) -> Iterator[tuple[str, str]]:
    """Yield references to a kind, a shape or a group that does not exist: the place, and the existing ones."""
    for at, kind in enumerate(found["kinds"]):
        if not 0 < kind.groups < 1 << groups:
            yield pointer("kinds", at, 2), f"not a whole number from 1 to {(1 << groups) - 1}"
    for at, shape in enumerate(found["shapes"]):
        if shape.kinds.max() >= len(found["kinds"]):
            yield pointer("shapes", at, "kinds"), f"there are {len(found['kinds'])} kinds"
        for number, access in enumerate(shape.accesses):
            if len(access) != 2 * groups:
                yield pointer("shapes", at, "accesses", number, "columns"), f"{len(access)} columns, not {2 * groups}"
    for at, archetype in enumerate(found["archetypes"]):
        if max(step.shape for step in chain(archetype.track, *archetype.gaps)) >= len(found["shapes"]):
            yield pointer("archetypes", at), f"there are {len(found['shapes'])} shapes"
    for at, times in enumerate(found["times"]):
        for number, rows in enumerate(times["slices"]):
            if len(rows) != 2 * groups:
                yield pointer("times", at, "slices", number), f"not {2 * groups} distributions"


def model_from_json(document: Mapping[str, object]) -> Model:
    """Return the structure that the part ``shapes`` of a profile is.

    Raises
    ------
    DocumentError
        The object is no structure; the error lists all mistakes and their places.
    """
    try:
        found = documents.parse(_Structure, document)
        about = {item.name for item in fields(PathInfo)}
        info = parse_info({name: value for name, value in document.items() if name in about})
        mistakes = tuple(_beyond(found, len(info.representatives)))
        if mistakes:
            raise DocumentError(mistakes)
    except DocumentError as error:
        raise error.under("/shapes") from error
    times = {item["key"]: np.concatenate(item["slices"], axis=1) for item in found["times"]}
    return Model(
        tuple(found["kinds"]),
        tuple(found["shapes"]),
        tuple(found["archetypes"]),
        Times(times),
        info,
        found["operations"],
    )
