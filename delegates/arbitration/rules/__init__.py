"""The policies, a module each: a new one is a new file here, and every command, figure and table has it.

Guarantees. A class is found by being defined in a module of this folder; its name in small letters is what commands and
            settings call it. Two of one name are refused.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from mpiio_ext.delegates.arbitration.rules.base import Policy
from mpiio_ext.errors import ArgumentError


def policy_classes() -> Mapping[str, type[Policy]]:
    """Return the class of every policy by its name in small letters, in the order of tables.

    Raises
    ------
    ArgumentError
        Two policies have one name.
    """
    found: dict[str, type[Policy]] = {}
    for each in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{each.name}")
        for kind in vars(module).values():
            if not (isinstance(kind, type) and issubclass(kind, Policy)) or kind.__module__ != module.__name__:
                continue
            if not inspect.isabstract(kind) and found.setdefault(kind.name.lower(), kind) is not kind:
                raise ArgumentError(f"{module.__file__}: another policy is called {kind.name}")
    return MappingProxyType(dict(sorted(found.items(), key=lambda item: (item[1].order, item[0]))))


def _class(name: str) -> type[Policy]:
    known = policy_classes()
    kind = known.get(name.lower())
    if kind is None:
        raise ArgumentError(f"there is no policy {name!r}: choose from {', '.join(known)}")
    return kind


def settings_of(name: str) -> tuple[str, ...]:
    """Return the names of a policy's settings.

    Raises
    ------
    ArgumentError
        No policy has this name.
    """
    kind = _class(name)
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


def policy(name: str, **settings: object) -> Policy:
    """Return the policy of a name, in capitals or not.

    Parameters
    ----------
    settings : of `settings_of`

    Raises
    ------
    ArgumentError
        No policy has this name, the policy has no such setting, or a value is out of range.
    """
    kind = _class(name)
    wrong = sorted(set(settings) - set(settings_of(name)))
    if wrong:
        raise ArgumentError(f"the policy {name} has no setting {wrong[0]}")
    return kind(**settings)


def table() -> str:
    """Return the table of docs/explanation/arbitration.md."""
    lines = ["| policy | I/O nodes of a job | may exceed the pool |", "|---|---|---|"]
    return "\n".join(lines + [f"| {kind.name} | {kind.rule} | {kind.exceeds} |" for kind in policy_classes().values()])
