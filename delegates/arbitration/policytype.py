"""Names of policies on the command line."""

from __future__ import annotations

from typing import Any

import click

from mpiio_ext.common.options import ParamType
from mpiio_ext.delegates.arbitration.rules import policy_classes, settings_of
from mpiio_ext.errors import ArgumentError


class PolicyType(ParamType):
    """The name of an arbitration policy, in capitals or not."""

    name = "policy"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """Return all names."""
        return f"[{'|'.join(policy_classes())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name in small letters."""
        try:
            settings_of(str(value))
        except ArgumentError as error:
            self.fail(str(error), param, ctx)
        return str(value).lower()
