"""The form of profiles as JSON, stated as types: the first check of one that was edited by hand.

What types cannot say is checked behind it (`profile.document`): there are as many counts as values, each value is there
once, a fit has the parameters of its family. What a class leaves out has a default
(`profile.defaults`).

Source: He, Du, Narasimhamurthy, "PIONEER", Table III.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, with_config
from typing_extensions import Required, TypedDict

from mpiio_ext.common.documents import CLOSED
from mpiio_ext.pioneer.path.document import Count, Positive, Whole
from mpiio_ext.pioneer.profile.fits import Fit

_Table = dict[str, Count]


@with_config(CLOSED)
class ListedDistribution(TypedDict, total=False):
    """Values and how often they occur; `Distribution` says what each name is."""

    values: Required[list[Whole]]
    counts: Required[list[Positive]]
    exact: bool
    fits: list[Fit]


@with_config(CLOSED)
class _Modes(TypedDict, total=False):
    """Sessions by their operations.

    Attributes
    ----------
    none, read, read_write, write : how many sessions do this
    """

    none: Count
    read: Count
    read_write: Count
    write: Count


@with_config(CLOSED)
class _Class(TypedDict, total=False):
    files: Count
    opened: ListedDistribution
    first: ListedDistribution
    session_gap: ListedDistribution
    request_gap: ListedDistribution
    duration: ListedDistribution
    file_size: ListedDistribution
    inside: Required[_Table]
    outside: _Table
    offset: ListedDistribution
    size: ListedDistribution
    sequentiality: ListedDistribution
    access_mode: _Modes
    slack: ListedDistribution
    rank_step: Whole | None


@with_config(CLOSED)
class ProfileForm(TypedDict, total=False):
    """The characteristics of a workload path; `Profile` says what each name is."""

    pioneer_profile: Required[Annotated[int, Field(ge=2, le=2, description="version of this document")]]
    units: Annotated[dict[str, Any], Field(description="unit of each characteristic that has one, for people")]
    operations: Count
    span: Count
    ranks: Count
    classes: Required[_Classes]
    shapes: dict[str, Any] | list[Any]


@with_config(CLOSED)
class _Classes(TypedDict, total=False):
    """The classes.

    Attributes
    ----------
    root : of files that the root process alone uses
    shared : of files that several processes use
    private : of files that each process has for itself
    child : of files that children alone use
    none : of operations that name no file
    """

    root: _Class
    shared: _Class
    private: _Class
    child: _Class
    none: _Class
