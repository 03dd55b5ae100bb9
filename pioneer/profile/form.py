"""The form of profiles as JSON, stated as types: what is checked first of one that was edited by hand.

What types cannot say is checked behind it (`profile.document`): there are as many counts as values, each value is there
once, a fit has the parameters of its family. Version 2 has fits, version 1 has none; both are read. What a class leaves
out has a default (`profile.defaults`).

Source: He, Du, Narasimhamurthy, "PIONEER", Table III.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, with_config
from typing_extensions import Required, TypedDict

from mpiio_ext.common.documents import CLOSED, form_schema
from mpiio_ext.pioneer.path.document import Count, Positive, Whole
from mpiio_ext.pioneer.profile.fits import Fit

_Table = dict[str, Count]


@with_config(CLOSED)
class ListedDistribution(TypedDict, total=False):
    """A distribution; `exact`: no value stands for its neighbours; `fits`: the closest first."""

    values: Required[list[Whole]]
    counts: Required[list[Positive]]
    exact: bool
    fits: list[Fit]


@with_config(CLOSED)
class _Modes(TypedDict, total=False):
    none: Count
    read: Count
    read_write: Count
    write: Count


@with_config(CLOSED)
class _Class(TypedDict, total=False):
    """The characteristics of a class; `ClassProfile` says what each is."""

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
    """A profile; `units` is for people, `shapes` is checked by the synthesis."""

    pioneer_profile: Required[Annotated[int, Field(ge=1, le=2)]]
    units: dict[str, Any]
    operations: Count
    span: Count
    ranks: Count
    classes: Required[_Classes]
    shapes: dict[str, Any] | list[Any]


@with_config(CLOSED)
class _Classes(TypedDict, total=False):
    root: _Class
    shared: _Class
    private: _Class
    child: _Class
    none: _Class


def profile_schema() -> dict[str, Any]:
    """Return the JSON Schema of profiles."""
    return {"$id": "urn:mpiio_ext:pioneer_profile:2", "title": "PIONEER profile", **form_schema(ProfileForm)}
