"""Policies by name, for the command line and the simulations."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mpiio_ext.delegates.arbitration.mckp import Mckp
from mpiio_ext.delegates.arbitration.policies import One, Oracle, Policy, Process, Size, Static, Zero
from mpiio_ext.errors import ArgumentError

__all__ = ["POLICIES", "policy"]

#: Name in small letters -> policy, in the order of the paper.
POLICIES: Mapping[str, Policy] = MappingProxyType({
    "zero": Zero(), "one": One(), "static": Static(), "size": Size(), "process": Process(), "oracle": Oracle(),
    "mckp": Mckp(),
})


def policy(name: str) -> Policy:
    """Return the policy of a name, in capitals or not, without further settings.

    Raises
    ------
    ArgumentError
        There is none.
    """
    found = POLICIES.get(name.lower())
    if found is None:
        raise ArgumentError(f"there is no policy {name!r}: choose from {', '.join(POLICIES)}")
    return found
