"""Methods: named sets of hints under which a pattern or kernel runs.

``native``          the MPI library alone (``mpiox_enable=false``)
``native_tuned``    the MPI library alone with the ROMIO hints that people tune by hand: every rank an aggregator,
                    two-phase always on. Only the better of the two is a fair opponent.
``auto``            the extension with its defaults
``direct``          the extension without exchange: every rank moves its own pieces
``delegates``       the extension with I/O delegates, as many as ``--delegates`` says
a partition's name  the extension with that file-domain method and two-phase exchange forced, so that the method is what
                    is measured

A method may carry modifiers: ``aligned+stripe_size_io`` carries out the I/O phase one stripe at a time,
``native+independent`` and ``auto+independent`` make every access of the program an independent one, and any hint can be
added as in ``auto+cb_nodes=2+cb_buffer_size=1048576``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mpiio_ext.common.near import near_names
from mpiio_ext.errors import ArgumentError
from mpiio_ext.hints import choices

METHODS = tuple(name for name in choices("mpiox_partition") if name != "auto")
NAMES = ("native", "native_tuned", "auto", "direct", "delegates", *METHODS)
DEFAULT = ("native", "native_tuned", "auto", *METHODS, "aligned+stripe_size_io")

#: Stand for the command line's values for delegates.
_COUNT, _MODE = "{delegates}", "{delegate_mode}"
#: Hints that are in force for all delegates of a job, so that they are the same for all methods.
OF_THE_JOB = (
    "mpiox_delegates",
    "mpiox_delegate_mode",
    "mpiox_delegate_cache",
    "mpiox_delegate_cache_dir",
    "mpiox_delegate_page",
    "mpiox_delegate_threads",
    "mpiox_delegate_prefetch",
    "mpiox_delegate_hosts",
    "mpiox_delegate_interface",
    "mpiox_delegate_scheduler",
    "mpiox_delegate_quantum",
    "mpiox_delegate_time_slice",
    "mpiox_delegate_patience",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A name and its hints.

    Attributes
    ----------
    name : as given, modifiers included
    hints : (name, value) pairs, in the order in which they are set
    native : whether the extension leaves the file alone
    independent : collective accesses of the program are made independently, each rank by itself
    """

    name: str
    hints: tuple[tuple[str, str], ...]
    native: bool
    independent: bool = False

    @property
    def delegated(self) -> bool:
        """Whether accesses go through I/O delegates."""
        return dict(self.hints).get("mpiox_delegates", "0") not in ("0", "0%", "per_node=0")

    @property
    def job_hints(self) -> dict[str, str]:
        """The hints of `OF_THE_JOB` that it sets."""
        return {name: value for name, value in self.hints if name in OF_THE_JOB}

    def hints_for(self, ranks: int) -> dict[str, str]:
        """Return the hints for `ranks` ranks."""
        return {name: value.replace("{ranks}", str(ranks)) for name, value in self.hints}


def _base_hints(name: str) -> dict[str, str]:
    if name == "native":
        return {"mpiox_enable": "false"}
    if name == "native_tuned":
        return {
            "mpiox_enable": "false",
            "cb_nodes": "{ranks}",
            "cb_config_list": "*:*",
            "romio_cb_write": "enable",
            "romio_cb_read": "enable",
        }
    if name == "auto":
        return {"mpiox_enable": "true", "mpiox_partition": "auto"}
    if name == "direct":
        return {"mpiox_enable": "true", "mpiox_exchange": "direct"}
    if name == "delegates":
        return {"mpiox_enable": "true", "mpiox_delegates": _COUNT, "mpiox_delegate_mode": _MODE}
    if name in METHODS:
        return {"mpiox_enable": "true", "mpiox_partition": name, "mpiox_exchange": "two_phase"}
    nearest = near_names(name, NAMES)
    raise ArgumentError(
        f"unknown method '{name}'" + (f", did you mean '{nearest[0]}'?" if nearest else f" (one of {', '.join(NAMES)})")
    )


def parse_method(text: str) -> Method:
    """Return the method written as ``NAME[+stripe_size_io][+independent][+hint=value]...``.

    Raises
    ------
    ArgumentError
        The name or a modifier is unknown.
    """
    name, *modifiers = text.split("+")
    hints = _base_hints(name)
    native, independent = name.startswith("native"), False
    for modifier in modifiers:
        key, equals, value = modifier.partition("=")
        if modifier == "stripe_size_io" and not native:
            hints["mpiox_stripe_size_io"] = "true"
        elif modifier == "independent":
            independent = True
        elif equals and key and value:
            hints[key] = value
        else:
            raise ArgumentError(
                f"bad modifier '+{modifier}' of method '{text}': use +stripe_size_io (with a method of "
                "the extension), +independent or +hint=value"
            )
    return Method(name=text, hints=tuple(hints.items()), native=native, independent=independent)


def with_delegates(method: Method, delegates: str, mode: str) -> Method:
    """Return the method with the number of delegates and the way to start them, if its hints leave them open."""
    asked = {_COUNT: delegates, _MODE: mode}
    return replace(method, hints=tuple((name, asked.get(value, value)) for name, value in method.hints))


def without_delegates(method: Method) -> Method:
    """Return the method with the hint that its files have no delegates, whether the job has or not."""
    return replace(
        method, hints=(*(pair for pair in method.hints if pair[0] != "mpiox_delegates"), ("mpiox_delegates", "0"))
    )
