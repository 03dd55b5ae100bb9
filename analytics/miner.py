"""IOMiner: the entry to the log analytics, as Algorithm 1 of the paper has it.

::

    miner = IOMiner("setup.json")
    miner.init_stores("2018-01-01", "2018-01-31")
    job_tuples = miner.load("darshan_job")

Source: IOMiner, Section II-A and II-B.
"""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.setup import Setup, load_setup
from mpiio_ext.errors import MpiioExtWarning

if TYPE_CHECKING:
    from mpiio_ext.analytics.query import Tuples
    from mpiio_ext.analytics.store.catalog import Catalog
    from mpiio_ext.analytics.store.fill import Report

Date = str | datetime.date | None


class IOMiner:
    """Logs as tuples: fills a store with them and loads its tables for queries.

    Parameters
    ----------
    setup : path, mapping or Setup
        setup.json (:mod:`mpiio_ext.analytics.setup`), or what it would contain.

    Attributes
    ----------
    setup : Setup
    """

    def __init__(self, setup: str | os.PathLike[str] | Mapping[str, Any] | Setup) -> None:
        self.setup = setup if isinstance(setup, Setup) else load_setup(setup)
        self._engine: Any = None

    def __repr__(self) -> str:
        return f"IOMiner of the store {self.setup.store}"

    def init_stores(self, start_date: Date = None, end_date: Date = None, *, quiet: bool | None = None) -> Report:
        """Convert the logs of the days from `start_date` to `end_date`, both included; None: no bound.

        Logs that the store has already, unchanged, are not converted again. Where the set-up has a placement, the
        tables are placed on its storage targets afterwards.

        Parameters
        ----------
        start_date, end_date : ISO date, date, datetime or None
        quiet : bool, optional
            Show no progress; default: where the standard error stream is no terminal.

        Returns
        -------
        Report
            How many logs were converted, skipped and why; ``print`` it. A store that has no rows then is warned of.

        Raises
        ------
        AnalyticsError
            The set-up names no logs; and see :func:`mpiio_ext.analytics.store.fill.fill`.
        """
        from mpiio_ext.analytics.store.fill import fill

        if not self.setup.inputs:  # enough for queries, and for nothing to fill the store with
            raise AnalyticsError('/inputs: the set-up names no logs; write for example {"darshan": ["/logs/darshan"]}')
        report = fill(self.setup, start_date, end_date, quiet=quiet)
        if not self.catalog.manifest.files:
            warnings.warn(f"the store has no rows:\n{report}", MpiioExtWarning, stacklevel=2)
        if self.setup.placement is not None:
            from mpiio_ext.analytics.store.placement import place

            place(self.setup.store, self.setup.placement)
        return report

    @property
    def catalog(self) -> Catalog:
        """The valid files of the store as they are now."""
        from mpiio_ext.analytics.store.catalog import Catalog

        return Catalog(self.setup.store)

    def load(self, name: str, jobs: tuple[int | None, int | None] | None = None) -> Tuples:
        """Return a table of the store as tuples to query, an instance of `mpiio_ext.analytics.query.tuples.Tuples`.

        Parameters
        ----------
        name : str
            ``darshan_job``, ``darshan_file``, ``slurm``, ``lmt`` or ``runs``.
        jobs : pair of int, optional
            Only jobs with IDs from the first to the second, both included; None: no bound. Files without any of these
            rows are not opened; in a placed store, storage targets without any are not accessed.

        Raises
        ------
        AnalyticsError
            There is no store or no such table, or `jobs` is no range.
        """
        catalog = self.catalog
        catalog.entries(name)
        from mpiio_ext.analytics import query

        if self._engine is None:
            self._engine = query.open_engine(self.setup.engine.name, **self.setup.engine.options)
        return query.load(self._engine, catalog, name, jobs)

    def close(self) -> None:
        """End the query engine."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def __enter__(self) -> IOMiner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
