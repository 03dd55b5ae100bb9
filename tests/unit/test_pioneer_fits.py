"""Known distributions in profiles: what is fitted, what is rejected; the schema, and documents that are changed."""

from __future__ import annotations

import copy
import functools
import json
import math
import pathlib
import random
from collections.abc import Callable
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.common import documents
from mpiio_ext.common.documents import DocumentError, pointer
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from mpiio_ext.pioneer.profile import Distribution, characterize
from mpiio_ext.pioneer.profile.document import UNITS, load, parse, profile_schema, to_json
from mpiio_ext.pioneer.profile.fits import FAMILIES, LEAST, LEVEL, MOST_SAMPLES, Fit, find_fits
from mpiio_ext.pioneer.profile.form import ProfileForm
from mpiio_ext.pioneer.synthesis import synthesize, with_shapes
from mpiio_ext.pioneer.synthesis.document import fits as have_shapes
from support.marks import slow
from support.small_paths import KERNEL, path_of, row

Draw = Callable[[np.random.Generator, int], np.ndarray[Any, Any]]

PARAMETERS = {
    "exponential": (40_000.0,),
    "uniform": (5_000.0, 90_000.0),
    "pareto": (1.8, 3_000.0),
    "lognormal": (1.2, 9_000.0),
    "gamma": (2.5, 12_000.0),
    "weibull": (0.7, 20_000.0),
}


def drawn(name: str, count: int, seed: int) -> np.ndarray[Any, Any]:
    values = FAMILIES[name].draw(PARAMETERS[name], count, np.random.default_rng(seed))
    return np.maximum(1, np.rint(values)).astype(np.int64)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_was_drawn_from_is_found(name: str) -> None:
    """With its parameters, unless it is one of the few that the test rejects: this seed is none."""
    found = {fit.family: fit for fit in find_fits(drawn(name, 4000, seed=7))}
    assert name in found
    fit = found[name]
    for wanted, value in zip(PARAMETERS[name], (fit.parameters[key] for key in FAMILIES[name].names), strict=True):
        assert value == pytest.approx(wanted, rel=0.1)
    assert LEVEL <= fit.p_value <= 1
    assert (fit.samples, fit.zero_share) == (4000, 0)
    again = fit.draw(20_000, np.random.default_rng(1))
    assert np.median(again) == pytest.approx(np.median(drawn(name, 20_000, seed=2)), rel=0.1)


@pytest.mark.parametrize("name", FAMILIES)
def test_maximum_likelihood(name: str) -> None:
    """No parameters near those of the fit make the samples likelier; of the uniform distribution its ends are exact."""
    values = drawn(name, 300, seed=3).astype(float)
    family = FAMILIES[name]
    best = family.fit(values)
    assert best is not None
    if name == "uniform":
        assert best == (values.min(), values.max())
        return

    def likelihood(parameters: tuple[float, ...]) -> float:
        width = 1e-4 * values
        rise = family.cdf(parameters, values + width) - family.cdf(parameters, values)
        return float(np.log(np.maximum(rise / width, 1e-300)).sum())

    free = [at for at, key in enumerate(family.names) if (name, key) != ("pareto", "scale")]
    for at in free:
        for factor in (0.97, 1.03):
            other = tuple(value * (factor if at == k else 1) for k, value in enumerate(best))
            assert likelihood(other) < likelihood(best)


@pytest.mark.parametrize("name", [*slow("exponential"), "lognormal"])
def test_the_test_rejects_as_often_as_it_says(name: str) -> None:
    """A true family in about one case of twenty: of 100, at most 12 (more in 1 of 700 cases)."""
    rejected = sum(name not in {fit.family for fit in find_fits(drawn(name, 60, seed))} for seed in range(100))
    assert 0 < rejected <= 12


@pytest.mark.parametrize(
    "draw",
    [
        lambda r, n: np.where(r.random(n) < 0.5, r.exponential(1e3, n), 1e6 + r.exponential(1e5, n)),
        lambda r, n: r.choice([1, 2, 3, 1000], n),
        lambda r, n: r.normal(50_000, 500, n) * r.choice([1, 3], n),
        lambda r, n: np.full(n, 7),
        lambda r, n: -r.exponential(1e5, n),
    ],
)
def test_what_no_family_fits(draw: Draw) -> None:
    assert find_fits(draw(np.random.default_rng(4), 2000).astype(np.int64)) == ()


def test_few_and_many_samples_and_zeros() -> None:
    assert find_fits(drawn("gamma", LEAST - 1, 1)) == ()
    assert find_fits(np.zeros(0, np.int64)) == ()
    many = drawn("pareto", 5 * MOST_SAMPLES, 5)
    found = find_fits(np.concatenate([many, np.zeros(many.size // 4, np.int64)]))
    assert [(fit.family, fit.samples) for fit in found] == [("pareto", MOST_SAMPLES)]
    assert found[0].zero_share == pytest.approx(0.2)
    assert found == find_fits(np.concatenate([many, np.zeros(many.size // 4, np.int64)]))
    share = (found[0].draw(10_000, np.random.default_rng(1)) == 0).mean()
    assert share == pytest.approx(0.2, abs=0.02)


@given(st.lists(st.integers(0, 2**62), min_size=LEAST, max_size=80))
@settings(deadline=None, max_examples=40)
def test_any_samples(samples: list[int]) -> None:
    """Whatever is kept has parameters and a p-value that stand in a profile."""
    found = Distribution.fitted(samples)
    again = Distribution.from_json(json.loads(json.dumps(found.to_json())))
    assert again.fits == found.fits
    for fit in found.fits:
        assert all(math.isfinite(value) and value > 0 for value in fit.parameters.values())
        assert LEVEL <= fit.p_value <= 1 and 0 <= fit.distance <= 1


# ---- profiles --------------------------------------------------------------------------------------------------------


def slow_path() -> WorkloadPath:
    """Return a path whose slack times follow a Pareto distribution."""
    slack = drawn("pareto", 200, 3).tolist()
    return path_of([row("stat", "/d/all", "shared", slack=value) for value in slack])


@functools.cache
def examples() -> tuple[dict[str, Any], ...]:
    """Return four profiles: of a small kernel, with fits, with shapes, of nothing."""
    kernel = path_of(KERNEL)
    plain = to_json(characterize(kernel))
    return (
        plain,
        to_json(characterize(slow_path(), fits=True)),
        to_json(with_shapes(characterize(kernel), kernel)),
        to_json(characterize(path_of([]))),
    )


def test_fits_are_in_the_profile(tmp_path: pathlib.Path) -> None:
    slow_path().save(tmp_path / "path.parquet")
    for more in ([], ["--plain"]):
        words = ["pioneer", "profile", str(tmp_path / "path.parquet"), "-o", str(tmp_path / "profile.json"), *more]
        assert CliRunner().invoke(main, words).exit_code == 0
        document = json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))
        assert [fit["family"] for fit in document["classes"]["shared"]["slack"]["fits"]] == ["pareto"]
        assert "fits" not in document["classes"]["shared"]["opened"]
        assert CliRunner().invoke(main, ["pioneer", "check", str(tmp_path / "profile.json")]).exit_code == 0
    known = load(tmp_path / "profile.json").classes["shared"].slack.fits[0]
    assert isinstance(known, Fit) and set(known.parameters) == {"shape", "scale"}


def test_fits_do_not_part_shapes_from_their_profile() -> None:
    """They are beside the values: a profile that loses them still gives what its path would give."""
    path = slow_path()
    profile = with_shapes(characterize(path, fits=True), path)
    document = to_json(profile)
    del document["classes"]["shared"]["slack"]["fits"]
    assert have_shapes(parse(document))
    assert synthesize(parse(document), seed=3).table.equals(synthesize(profile, seed=3).table)


def refused(document: Any) -> bool:
    """Return whether a document has not the form of a profile."""
    try:
        documents.parse(ProfileForm, document)
    except DocumentError:
        return True
    return False


def test_every_example_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(profile_schema())
    assert len(examples()) == 4
    for document in examples():
        assert not refused(document)
        jsonschema.validate(document, profile_schema())
        assert to_json(parse(document)) == document
    assert set(UNITS) < set(profile_schema()["$defs"]["_Class"]["properties"])
    assert profile_schema()["$defs"]["Fit"]["properties"]["family"]["enum"] == list(FAMILIES)
    assert any(item.fits for item in (parse(examples()[1]).classes["shared"].slack,))


@pytest.mark.parametrize("shapes", [[], {}, [1, {"a": None}], {"of": 3}])
def test_shapes_of_any_form(shapes: Any) -> None:
    """The form of the structure is the synthesis's own matter."""
    document = examples()[0] | {"shapes": shapes}
    assert parse(document).shapes == shapes
    assert not have_shapes(parse(document))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.pop("classes"), '/: "classes" is missing'),
        (lambda d: d["classes"]["shared"].pop("inside"), '/classes/shared: "inside" is missing'),
        (
            lambda d: (d["classes"]["shared"].update(inside={"pwrite": 1}), d["classes"]["shared"].pop("size")),
            '/classes/shared: "size" is missing, and there are data operations',
        ),
        (lambda d: d.update(extra=1), "/extra: there is no such name; there are pioneer_profile, units, operations, "),
        (lambda d: d.update(pioneer_profile=3), "/pioneer_profile: 3 is greater than 2"),
        (lambda d: d.update(shapes=3), "/shapes: 3 is not an object or a list"),
        (lambda d: d["classes"]["shared"].update(files=1.0), "/classes/shared/files: 1.0 is not a whole number"),
        (
            lambda d: d["classes"]["shared"]["outside"].update({"a/b~c": True}),
            "/classes/shared/outside/a~1b~0c: true is not a whole number",
        ),
        (lambda d: d["classes"]["shared"]["slack"]["values"].append(2**63), "/classes/shared/slack/values/"),
        (
            lambda d: d["classes"]["shared"]["slack"]["fits"][0].update(family="normal"),
            '/classes/shared/slack/fits/0/family: "normal" is not one of "exponential", ',
        ),
        (
            lambda d: d["classes"]["shared"]["slack"]["fits"][0]["parameters"].update(shape=0),
            "/classes/shared/slack/fits/0/parameters/shape: 0 is not greater than 0",
        ),
        (
            lambda d: d["classes"]["shared"]["slack"]["fits"][0]["parameters"].pop("shape"),
            "/classes/shared/slack/fits/0/parameters: the family pareto has the parameters shape and scale",
        ),
        (
            lambda d: d["classes"]["shared"].update(size={"values": [-5, 8], "counts": [1, 1]}),
            "/classes/shared/size/values/0: -5 is less than 0",
        ),
        (
            lambda d: d["classes"]["shared"].update(sequentiality={"values": [0, 5000], "counts": [1, 1]}),
            "/classes/shared/sequentiality/values/1: 5000 is more than 1000",
        ),
        (
            lambda d: d["classes"]["shared"].update(opened={"values": [0], "counts": [7]}),
            "/classes/shared/opened/values/0: 0 is less than 1",
        ),
        (
            lambda d: d["classes"]["shared"]["slack"]["fits"][0].update(p_value=math.nan),
            "/classes/shared/slack/fits/0/p_value: NaN is not a number",
        ),
    ],
)
def test_messages_name_the_place(change: Callable[[Any], Any], said: str) -> None:
    document = copy.deepcopy(examples()[1])
    change(document)
    with pytest.raises(DocumentError) as caught:
        parse(document)
    assert len(caught.value.problems) == 1 and caught.value.problems[0].startswith(said)


def places(document: Any, parts: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places in a document, but for those inside of shapes."""
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    found = [parts]
    for name, value in inner:
        if (*parts, name) != ("shapes",):
            found += places(value, (*parts, name))
    return found


def at(document: Any, parts: tuple[Any, ...]) -> Any:
    for part in parts:
        document = document[part]
    return document


STRICT = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(list(FAMILIES)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.integers(0, 3),
    st.integers(0, 2**32),
    st.sampled_from(["replace", "remove", "add"]),
    ANYTHING,
    st.text(max_size=4),
)
@settings(deadline=None, max_examples=250)
def test_changed_documents_are_reported(number: int, seed: int, kind: str, value: Any, name: str) -> None:
    """A profile, or problems with places; never another error. What the reference refuses is refused."""
    document = copy.deepcopy(examples()[number])
    place = random.Random(seed).choice(places(document))
    found = at(document, place)
    if kind == "add" and isinstance(found, dict):
        found[name] = value
    elif kind == "add" and isinstance(found, list):
        found.append(value)
    elif not place:
        document = value
    elif kind == "remove":
        del at(document, place[:-1])[place[-1]]
    else:
        at(document, place[:-1])[place[-1]] = value
    problems = refused(document)
    assert problems == (not STRICT(profile_schema()).is_valid(document))
    try:
        again = to_json(parse(document))
    except DocumentError as error:
        known = {pointer(*parts) for parts in places(document)}
        assert {where for where, _ in error.mistakes} <= known
        assert all(len(problem.splitlines()) == 1 for problem in error.problems)
    else:
        assert not problems
        jsonschema.validate(again, profile_schema())
