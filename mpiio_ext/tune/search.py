"""The optimiser: `ask` proposes a setting, `tell` reports its cost.

Optuna's tree-structured Parzen estimator (J. Bergstra et al., "Algorithms for hyper-parameter optimization", NIPS
2011), grouped and multivariate: it takes ordered, categorical and conditional parameters, does not mind noise, can
start from known points, and needs no compiled part and no service. A run costs seconds, its thinking milliseconds.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from mpiio_ext.tune.errors import need
from mpiio_ext.tune.setting import Setting
from mpiio_ext.tune.space import Space

#: Cost of a run that failed or was stopped: so many times that of the worst that ended.
_LOST = 2.0


class Search:
    """Proposes settings and learns from their costs.

    Parameters
    ----------
    space : what may be proposed.
    reference : cost of the baseline; what is learnt is the logarithm of the ratio to it.
    seed : of the random choices.
    """

    def __init__(self, space: Space, reference: float, seed: int) -> None:
        optuna = need("optuna")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)
            self._study = optuna.create_study(sampler=sampler)
            for point in space.starting_points():
                self._study.enqueue_trial(point)
        self._space = space
        self._reference = reference
        self._worst = 0.0

    def ask(self) -> tuple[Setting, Any]:
        """Return a setting to run and a token for `tell`."""
        trial = self._study.ask()
        return self._space.draw(trial), trial

    def tell(self, token: Any, cost: float | None) -> None:
        """Report a cost; None for a run that failed or was stopped."""
        if cost is None:
            value = self._worst + math.log(_LOST)
        else:
            value = math.log(cost / self._reference)
            self._worst = max(self._worst, value)
        self._study.tell(token, value)
