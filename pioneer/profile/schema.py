"""The schema of profiles, `schema.json`, and what is wrong by it with one that was edited by hand."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from mpiio_ext.pioneer import schema_check

__all__ = ["check", "profile_schema"]


@functools.cache
def profile_schema() -> dict[str, Any]:
    """Return the schema of profiles."""
    return schema_check.read_schema(Path(__file__).with_name("schema.json"))


def check(document: Any) -> list[str]:
    """Return what is wrong with a profile as a JSON value: a line each, which begins with its place."""
    return schema_check.check(document, profile_schema())
