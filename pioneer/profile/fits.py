"""Known distributions that samples may come from: fitted by maximum likelihood, dropped if a test rejects them.

Problem.   Some characteristics follow a known distribution (slack times a Pareto distribution for one, says the paper's
           section V-C); two parameters then show more than a thousand values. Whether they do has to be tested, and the
           usual table of the Kolmogorov-Smirnov test does not hold for parameters that come from the same samples: it
           accepts nearly everything.
Algorithm. `FAMILIES` are fitted by maximum likelihood: in closed form, but for the gamma and Weibull distributions'
           shapes, whose equations are solved by Newton's method. The p-value of the Kolmogorov-Smirnov distance comes
           from a parametric bootstrap (Stute, Gonzalez Manteiga and Presedo Quindimil, "Bootstrap based goodness-of-fit
           tests", Metrika 40, 1993): samples are drawn from the fitted distribution, fitted again, and their distances
           compared. The bootstrap is sequential (Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78,
           1991): it ends when `MOST_BEYOND` of the distances are larger, at `MOST_DRAWS` at the latest. A fit with a
           p-value of at least `LEVEL` is kept. No samples are drawn for a distribution that the test with known
           parameters rejects: estimation makes distances smaller, so that the bootstrap rejects it as well.
Choices.   Values of 0 are counted apart (``zero_share``) and the others are fitted: slack times that are hidden by
           overlap are 0, not small. Fewer than `LEAST` other values, or fewer than `LEAST_DIFFERENT` different ones,
           are not fitted. Of more than `MOST_SAMPLES` so many are drawn, without replacement and with a fixed seed: a
           test of a million samples rejects every model for differences of no interest. The same samples give the same
           fits.
Guarantee. Every p-value is the share of at most `MOST_DRAWS` draws: at `LEVEL` a true family is rejected in one case of
           twenty (tests see that).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpiio_ext.common.documents import CLOSED

LEVEL = 0.05
LEAST, LEAST_DIFFERENT = 30, 20
MOST_SAMPLES = 10_000
MOST_DRAWS, MOST_BEYOND = 399, 20

_SEED = 20_131
_STEPS = 60

_Reals = NDArray[np.float64]
_Name = Literal["exponential", "uniform", "pareto", "lognormal", "gamma", "weibull"]
_Share = Annotated[float, Field(ge=0, le=1)]


def _special() -> Any:
    """Return SciPy's special functions; ranks that carry a path out do not need them, and start without."""
    from scipy import special

    return special


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A known distribution that the samples greater than 0 do not contradict.

    Attributes
    ----------
    family : name in `FAMILIES`.
    parameters : by name; scales and ends have the unit of the samples.
    distance : Kolmogorov-Smirnov distance of the samples that were tested.
    p_value : of the parametric bootstrap.
    samples : number of values that were tested.
    zero_share : share of values that are 0, which the distribution does not stand for.
    """

    __pydantic_config__ = CLOSED

    family: _Name
    parameters: Mapping[str, Annotated[float, Field(gt=0)]]
    distance: _Share
    p_value: _Share
    samples: Annotated[int, Field(ge=0, le=2**63 - 1)]
    zero_share: _Share

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "family": self.family,
            "parameters": dict(self.parameters),
            "distance": self.distance,
            "p_value": self.p_value,
            "samples": self.samples,
            "zero_share": self.zero_share,
        }

    def draw(self, count: int, random: np.random.Generator) -> _Reals:
        """Return values drawn independently, zeros among them."""
        family = FAMILIES[self.family]
        drawn = family.draw(tuple(self.parameters[name] for name in family.names), count, random)
        drawn[random.random(count) < self.zero_share] = 0
        return drawn


# ---- families --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Family:
    """A family of distributions of numbers greater than 0.

    Attributes
    ----------
    names : of the parameters.
    fit : maximum-likelihood parameters of samples; None: they have none.
    cdf : cumulative distribution at values.
    draw : values drawn with the parameters.
    """

    names: tuple[str, ...]
    fit: Callable[[_Reals], tuple[float, ...] | None]
    cdf: Callable[[tuple[float, ...], _Reals], _Reals]
    draw: Callable[[tuple[float, ...], int, np.random.Generator], _Reals]


def _newton(value: float, step: Callable[[float], float]) -> float | None:
    """Return where a positive value settles that is changed by `step` again and again."""
    for _ in range(_STEPS):
        change = step(value)
        after = value - change if change < value else value / 2
        if not np.isfinite(after):
            return None
        if abs(after - value) <= 1e-10 * value:
            return after
        value = after
    return value


def _fit_pareto(values: _Reals) -> tuple[float, ...] | None:
    least = float(values.min())
    logs = float(np.log(values / least).mean())
    return (1 / logs, least) if logs > 0 else None


def _fit_gamma(values: _Reals) -> tuple[float, ...] | None:
    mean = float(values.mean())
    apart = float(np.log(mean) - np.log(values).mean())
    if not apart > 0:
        return None
    begin = (3 - apart + np.sqrt((apart - 3) ** 2 + 24 * apart)) / (12 * apart)

    def step(shape: float) -> float:
        return float((np.log(shape) - _special().digamma(shape) - apart) / (1 / shape - _special().polygamma(1, shape)))

    shape = _newton(float(begin), step)
    return None if shape is None else (shape, mean / shape)


def _fit_weibull(values: _Reals) -> tuple[float, ...] | None:
    scaled = values / values.max()
    logs = np.log(scaled)
    spread = float(logs.std())
    if not spread > 0:
        return None

    def step(shape: float) -> float:
        powers = scaled**shape
        total, first, second = float(powers.sum()), float((powers * logs).sum()), float((powers * logs**2).sum())
        value = first / total - 1 / shape - float(logs.mean())
        return value / (second / total - (first / total) ** 2 + 1 / shape**2)

    shape = _newton(1.2 / spread, step)
    if shape is None:
        return None
    return shape, float(values.max() * np.mean(scaled**shape) ** (1 / shape))


def _fit_lognormal(values: _Reals) -> tuple[float, ...] | None:
    logs = np.log(values)
    return (float(logs.std()), float(np.exp(logs.mean()))) if logs.std() > 0 else None


def _fit_uniform(values: _Reals) -> tuple[float, ...] | None:
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else None


def _between(ends: tuple[float, ...], values: _Reals) -> _Reals:
    return np.clip((values - ends[0]) / (ends[1] - ends[0]), 0, 1)


FAMILIES: Mapping[_Name, Family] = {
    "exponential": Family(
        ("scale",),
        lambda x: (float(x.mean()),),
        lambda p, x: -np.expm1(-x / p[0]),
        lambda p, n, r: r.exponential(p[0], n),
    ),
    "uniform": Family(("low", "high"), _fit_uniform, _between, lambda p, n, r: r.uniform(p[0], p[1], n)),
    "pareto": Family(
        ("shape", "scale"),
        _fit_pareto,
        lambda p, x: -np.expm1(-p[0] * np.log(np.maximum(x, p[1]) / p[1])),
        lambda p, n, r: p[1] * (1 + r.pareto(p[0], n)),
    ),
    "lognormal": Family(
        ("shape", "scale"),
        _fit_lognormal,
        lambda p, x: _special().ndtr(np.log(x / p[1]) / p[0]),
        lambda p, n, r: p[1] * np.exp(r.normal(0, p[0], n)),
    ),
    "gamma": Family(
        ("shape", "scale"),
        _fit_gamma,
        lambda p, x: _special().gammainc(p[0], x / p[1]),
        lambda p, n, r: r.gamma(p[0], p[1], n),
    ),
    "weibull": Family(
        ("shape", "scale"),
        _fit_weibull,
        lambda p, x: -np.expm1(-((x / p[1]) ** p[0])),
        lambda p, n, r: p[1] * r.weibull(p[0], n),
    ),
}


# ---- the test --------------------------------------------------------------------------------------------------------


def _distance(family: Family, parameters: tuple[float, ...], ordered: _Reals) -> float:
    """Return the Kolmogorov-Smirnov distance of ascending samples from a distribution."""
    shares = family.cdf(parameters, ordered)
    steps = np.arange(ordered.size + 1) / ordered.size
    return float(max((steps[1:] - shares).max(), (shares - steps[:-1]).max()))


def _known_parameters_p(distance: float, count: int) -> float:
    """Return the p-value of the test with known parameters (M. A. Stephens, "EDF Statistics", JASA 69, 1974)."""
    root = np.sqrt(count)
    return float(_special().kolmogorov(distance * (root + 0.12 + 0.11 / root)))


def _p_value(
    family: Family, parameters: tuple[float, ...], distance: float, count: int, random: np.random.Generator
) -> float:
    """Return the share of samples of a distribution that are as far from their own fits as the real ones.

    They are whole numbers greater than 0, as the real ones.
    """
    beyond = 0
    for drawn in range(1, MOST_DRAWS + 1):
        values = np.maximum(1, np.rint(np.sort(family.draw(parameters, count, random))))
        fitted = family.fit(values)
        beyond += fitted is None or _distance(family, fitted, values) >= distance
        if beyond == MOST_BEYOND:
            return beyond / drawn
    return (beyond + 1) / (MOST_DRAWS + 1)


def find_fits(samples: NDArray[np.int64]) -> tuple[Fit, ...]:
    """Return the known distributions that samples do not contradict, the closest first.

    Parameters
    ----------
    samples : of one characteristic; where one is negative nothing is fitted.
    """
    positive = samples[samples > 0]
    if positive.size < LEAST or (samples.size and int(samples.min()) < 0):
        return ()
    random = np.random.default_rng(_SEED)
    chosen = positive if positive.size <= MOST_SAMPLES else random.choice(positive, MOST_SAMPLES, replace=False)
    ordered = np.sort(chosen).astype(np.float64)
    if np.count_nonzero(np.diff(ordered)) + 1 < LEAST_DIFFERENT:
        return ()
    found = []
    for name, family in FAMILIES.items():
        parameters = family.fit(ordered)
        if parameters is None or not all(np.isfinite(value) and value > 0 for value in parameters):
            continue
        distance = _distance(family, parameters, ordered)
        if not np.isfinite(distance) or _known_parameters_p(distance, ordered.size) < LEVEL:
            continue
        p_value = _p_value(family, parameters, distance, ordered.size, random)
        if p_value >= LEVEL:
            found.append(
                Fit(
                    family=name,
                    parameters=dict(zip(family.names, parameters, strict=True)),
                    distance=distance,
                    p_value=p_value,
                    samples=int(ordered.size),
                    zero_share=1 - positive.size / samples.size,
                )
            )
    return tuple(sorted(found, key=lambda fit: fit.distance))
