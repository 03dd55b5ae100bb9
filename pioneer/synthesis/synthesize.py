"""Synthesizing workload paths, in the modes that are offered.

Modes.     faithful   the path itself: every operation in its place
           quota      the structure of the path; what can stand in another's place is shuffled: files that are used
                      alike, offsets and sizes of sessions of one shape, times of operations of one kind. All multisets
                      of the characteristics are those of the path.
           sampled    drawn by Algorithm 1 from what was counted, the distances allocated so that nothing collides
           tuned      the same with numbers of files and openings, sizes and times multiplied; or from a profile alone,
                      which may be written by hand
Guarantee. Hard dependencies that hold in the sources of a path hold in the path (`find_violations`). The same seed
           gives the same path.

Source: He, Du, Narasimhamurthy, "PIONEER", section V-D.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.profile import Profile, characterize
from mpiio_ext.pioneer.synthesis.algorithm1 import from_profile
from mpiio_ext.pioneer.synthesis.allocate import Work, allocate
from mpiio_ext.pioneer.synthesis.document import digest_of, digests_of, fits, model_from_json, model_to_json
from mpiio_ext.pioneer.synthesis.edited import ClassScale, class_scales, edited, keeps_shapes, with_values
from mpiio_ext.pioneer.synthesis.fill import File, fill
from mpiio_ext.pioneer.synthesis.lives import Lives
from mpiio_ext.pioneer.synthesis.model import Archetype, Model, model_of
from mpiio_ext.pioneer.synthesis.scale import Scale
from mpiio_ext.pioneer.synthesis.stratified import stratified

MODES = ("faithful", "quota", "sampled", "tuned")


# ---- files and openings ----------------------------------------------------------------------------------------------


def _files(archetype: Archetype, count: int, random: np.random.Generator) -> list[list[File]]:
    """Return so many files, with their linked ones: of its names in random order, then of others made from them."""
    order = random.permutation(len(archetype.names)).tolist()
    several = [(archetype.owner, archetype.names), *archetype.linked]
    if archetype.names[0] is None:
        return [[File(None, archetype.owner)]]
    copies = range(1 + (count - 1) // len(order))
    return [
        [File(f"{names[at]}.{copy}" if copy else names[at], owner, copy) for owner, names in several]
        for copy in copies
        for at in order
    ][:count]


def _more_often(found: Archetype, factor: float, lives: Lives) -> Archetype:
    """Return an archetype with so many times as many units: the first one, then the others again and again.

    Where its files are removed, or get another name, what happens until then is repeated as a whole.
    """
    if factor == 1:
        return found
    parts = lives.of(found)
    again = parts[1:] or parts
    again = [(again[0][0]._replace(overlaps=False), *again[0][1:]), *again[1:]]
    count = max(1, round(len(parts) * factor))
    lived = [parts[0], *(again[at % len(again)] for at in range(count - 1))]
    lives.check(found, lived)
    track = tuple(step for part in lived for step in part)
    gaps = {
        pair: Counter({gap: max(1, round(number * factor)) for gap, number in counted.items()})
        for pair, counted in found.gaps.items()
    }
    for pair in itertools.pairwise(track):
        if pair not in gaps:  # where the track begins again
            apart = [counted for (_, after), counted in found.gaps.items() if not after.overlaps]
            gaps[pair] = sum(apart, Counter()) or Counter({1: 1})
    return replace(found, track=track, gaps=gaps)


def _stretched(found: Archetype, count: int, factor: float, random: np.random.Generator) -> Archetype:
    """Return an archetype of `count` files, in a path that is `factor` times as long."""
    begins = np.array(sorted(found.first), np.int64)
    drawn = begins[stratified(np.array([found.first[int(at)] for at in begins]), count, random)]
    if factor != 1:
        drawn = np.rint(drawn * factor).astype(np.int64)
    share = count / max(1, found.first.total())
    gaps = (
        found.gaps
        if share == 1
        else {
            pair: Counter({gap: max(1, round(number * share)) for gap, number in counted.items()})
            for pair, counted in found.gaps.items()
        }
    )
    return replace(found, first=Counter(drawn.tolist()), gaps=gaps)


def _counts(archetypes: Sequence[Archetype], factors: Sequence[float]) -> list[int]:
    """Return the number of files of each archetype, 1 at least; rounded so that those of a class add up."""
    found, wanted, given = [], defaultdict(float), defaultdict(int)  # type: ignore[var-annotated]
    for item, factor in zip(archetypes, factors, strict=True):
        wanted[item.owner] += len(item.names) * factor
        count = max(1, round(wanted[item.owner]) - given[item.owner])
        given[item.owner] += count
        found.append(1 if item.names[0] is None else count)
    return found


def _works(
    model: Model, scale: Scale, classes: Mapping[str, ClassScale], random: np.random.Generator
) -> tuple[list[File], list[Work]]:
    """Return the files of a path, those of each archetype that are linked together, and how they are to be placed."""
    lives = Lives(model)
    factors = [classes.get(item.owner, (1.0, 1.0)) for item in model.archetypes]
    counts = _counts(model.archetypes, [scale.files * files for files, _ in factors])
    longer = [
        _more_often(item, scale.opens * opens, lives)
        for item, (_, opens) in zip(model.archetypes, factors, strict=True)
    ]
    total = sum(
        count * sum(model.shapes[step.shape].kinds.size for step in item.track)
        for count, item in zip(counts, longer, strict=True)
    )
    factor = 1.0 if scale.files == scale.opens == 1 and not classes else total / max(1, model.operations)
    files: list[File] = []
    works: list[Work] = []
    for number, (count, item) in enumerate(zip(counts, longer, strict=True)):
        stretched = _stretched(item, count, factor, random)
        for several in _files(item, count, random):
            works.append(Work(number, stretched))
            files += several
    return files, works


# ---- sizes and times -------------------------------------------------------------------------------------------------


def _scaled(model: Model, scale: Scale) -> Model:
    """Return a model with other sizes, offsets and slack times."""
    shapes = model.shapes
    if scale.sizes != 1:
        shapes = tuple(
            replace(
                shape,
                accesses=[
                    np.where(access > 0, np.rint(access * scale.sizes).astype(np.int64), access)
                    for access in shape.accesses
                ],
            )
            for shape in shapes
        )
    times, info = model.times, model.info
    if scale.slack != 1:
        info = replace(info, starts=tuple(round(start * scale.slack) for start in info.starts))
        factors = np.repeat([scale.slack, 1.0], model.groups)[:, None]
        times = replace(
            times,
            samples={
                key: np.where(found > 0, np.rint(found * factors).astype(np.int64), found)
                for key, found in times.samples.items()
            },
        )
    return replace(model, shapes=shapes, times=times, info=info)


def _follows(model: Model) -> dict[tuple[int, ...], int]:
    """Return how often the first operation of a unit follows another operation, as `allocate` wants it."""
    found: dict[tuple[int, ...], int] = {}
    for (role, kind, role_before, kind_before), samples in model.times.samples.items():
        archetype, shape = divmod(role, 1 << 32)
        before = divmod(role_before, 1 << 32) if role_before >= 0 else (-1, -1)
        if kind == model.shapes[shape].kinds[0]:
            step = (*before, kind_before, archetype, shape, kind)
            found[step] = samples.shape[1]
    return found


def from_model(
    model: Model, *, seed: int, joint: bool, scale: Scale | None = None, classes: Mapping[str, ClassScale] | None = None
) -> WorkloadPath:
    """Return a path with the structure of a model.

    Parameters
    ----------
    model : what is drawn from.
    seed : the same gives the same path.
    joint : the times of all groups are drawn as one (mode "quota").
    scale : what is multiplied.
    classes : what is multiplied besides of classes of files, by their names.
    """
    scale = scale or Scale()
    random = np.random.default_rng(seed)
    scaled = _scaled(model, scale)
    files, works = _works(scaled, scale, classes or {}, random)
    placed = allocate(works, scaled.shapes, _follows(scaled), random)
    return fill(scaled, files, works, placed, random, joint=joint, info=scaled.info)


# ---- modes -----------------------------------------------------------------------------------------------------------


def with_shapes(profile: Profile, path: WorkloadPath) -> Profile:
    """Return a profile with the structure of the path that it is of, so that it can be sampled without the path."""
    return replace(profile, shapes=model_to_json(model_of(path), digest_of(profile), digests_of(profile)))


def _of_path(path: WorkloadPath, mode: str, seed: int, scale: Scale) -> WorkloadPath:
    if mode == "faithful":
        return path
    return from_model(model_of(path), seed=seed, joint=mode == "quota", scale=scale)


def _from_edited(profile: Profile, seed: int, scale: Scale) -> WorkloadPath:
    """Return a path of the shapes of a profile, with the characteristics that were edited."""
    assert profile.shapes is not None
    model, names = model_from_json(profile.shapes), edited(profile) or set()
    classes = {}
    if any(name in ("files", "opened") for _, name in names):
        classes = class_scales(characterize(from_model(model, seed=seed, joint=False)), profile, names)
    found = from_model(model, seed=seed, joint=False, scale=replace(scale, sizes=1.0, slack=1.0), classes=classes)
    found = with_values(found, profile, names, np.random.default_rng(seed))
    if scale.sizes == scale.slack == 1:
        return found
    again = Scale(sizes=scale.sizes, slack=scale.slack)
    return from_model(model_of(found), seed=seed, joint=False, scale=again)


def synthesize(
    source: WorkloadPath | Profile, *, mode: str = "sampled", seed: int = 0, scale: Scale | None = None
) -> WorkloadPath:
    """Return a synthetic generic workload path.

    Parameters
    ----------
    source : a path; or a profile, for the modes "sampled" and "tuned". A profile that has shapes, and whose
        characteristics have not been edited since (`document.fits`), gives what its path would give, but for times that
        are reduced to few values. So does one of which ST, SIZE, OFF, OS or OT were edited, with these (`edited`). Of
        any other all characteristics are drawn independently (`algorithm1`).
    mode : one of `MODES`.
    seed : the same gives the same path.
    scale : what is multiplied, in mode "tuned".

    Raises
    ------
    ValueError
        No mode has this name; the mode needs a path; a scale is given for another mode than "tuned".
    DocumentError
        The shapes of the profile are no valid structure.
    """
    if mode not in MODES:
        raise ValueError(f"mode {mode!r}: there are {', '.join(MODES)}")
    if scale not in (None, Scale()) and mode != "tuned":
        raise ValueError(f"mode {mode} multiplies nothing; mode tuned does")
    if isinstance(source, WorkloadPath):
        return _of_path(source, mode, seed, scale or Scale())
    if mode in ("faithful", "quota"):
        raise ValueError(f"mode {mode} needs the workload path; a profile has no order of its own")
    if source.shapes is not None and fits(source):
        return from_model(model_from_json(source.shapes), seed=seed, joint=False, scale=scale or Scale())
    if source.shapes is not None and keeps_shapes(source):
        return _from_edited(source, seed, scale or Scale())
    return from_profile(source, seed=seed, scale=scale)
