"""The hints to search: a small tree, made from the registry of hints and from the first run.

The first choice is the way of the data: the extension's own choice (`auto`), no exchange (`direct`), one of the
file-domain methods with the exchange forced, I/O delegates (`delegates`), or the MPI library (`native`). Only hints
that mean something on that way are chosen below it. For a program without collective accesses there are no aggregators
to choose, for one without independent accesses neither data sieving nor delegates. A hint that changes more than speed
needs permission: striping stays with the file, direct I/O bypasses the page cache, and subfiles are no plain file.

Values are ordered lists, so that the optimiser knows near from far: sizes are powers of two, aggregators 1 to the
number of ranks (powers of two where there are many). A hint that is set has its value as one of the choices, and its
default is another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mpiio_ext.hints import choices, registry
from mpiio_ext.tune.setting import LEFT_AWAY, Setting

_KIB = 1024
_MANY_DELEGATES = 8
_NO_DELEGATES = ("0", "0%", "per_node=0")
_SHORT = {"read": "rd", "write": "wr"}
_MANY_RANKS = 16
#: 0 lets the extension choose; an MPI library may take it literally.
_ZERO_CHOOSES = ("cb_nodes", "cb_buffer_size")


#: ROMIO's default of cb_buffer_size.
_ROMIO_BUFFER = str(16 * _KIB * _KIB)


def _methods() -> tuple[str, ...]:
    """Return the file-domain methods that the library has."""
    return tuple(name for name in choices("mpiox_partition") if name != "auto")


class Draw(Protocol):
    """The used part of an Optuna trial."""

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        """Return one of `choices`."""

    def suggest_int(self, name: str, low: int, high: int) -> int:
        """Return an integer of [low, high]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The accesses of the baseline, as far as the space depends on them.

    Attributes
    ----------
    ranks : of the largest communicator that opened a file.
    collective, independent : whether such accesses were made; both where it is unknown.
    written : whether files were written.
    """

    ranks: int
    collective: bool = True
    independent: bool = True
    written: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The limits that the user sets.

    Attributes
    ----------
    native : settings under which the MPI library does the work (the metric can judge them).
    striping : `striping_unit` and `striping_factor`, which the file keeps.
    direct_io : `direct_read` and `direct_write`.
    """

    native: bool = True
    striping: bool = False
    direct_io: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A hint, its ordered values, and the ways on which it is chosen (empty: all)."""

    hint: str
    values: tuple[str, ...]
    ways: frozenset[str]

    @property
    def key(self) -> str:
        """Name of the parameter for the optimiser: one hint may have other values on another way."""
        return f"{self.hint}@{'+'.join(sorted(self.ways))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The search space.

    Attributes
    ----------
    ways : "auto", "direct", methods, "delegates", "native".
    parameters : hints below them.
    in_force : {hint: value} of every hint of the registry in the baseline.
    ranks : of the program.
    """

    ways: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    in_force: Mapping[str, str]
    ranks: int
    _defaults: Mapping[str, str] = field(default_factory=dict)

    def below(self, way: str) -> tuple[Parameter, ...]:
        """Return the parameters that are chosen on a way."""
        return tuple(item for item in self.parameters if way in item.ways)

    def setting(self, way: str, chosen: Mapping[str, str]) -> Setting:
        """Return the setting of a way with {hint: value}; hints without effect on that way are unchanged."""
        hints = dict(chosen)
        if way == "native":
            hints["mpiox_enable"] = "false"
        else:
            named = way in _methods()
            hints["mpiox_enable"] = "true"
            hints["mpiox_exchange"] = "direct" if way == "direct" else "two_phase" if named else "auto"
            if way != "direct":
                hints["mpiox_partition"] = way if named else "auto"
        if way != "delegates":
            hints["mpiox_delegates"] = "0"
        return Setting.of(hints, self.in_force)

    def draw(self, trial: Draw) -> Setting:
        """Let the optimiser choose a setting."""
        way = trial.suggest_categorical("way", self.ways)
        chosen = {}
        for item in self.below(way):
            chosen[item.hint] = item.values[trial.suggest_int(item.key, 0, len(item.values) - 1)]
        return self.setting(way, chosen)

    def point(self, way: str, wanted: Mapping[str, str]) -> dict[str, str | int]:
        """Return the optimiser's parameters of a known setting: `wanted`, and the defaults of all other hints."""
        values: dict[str, str | int] = {"way": way}
        for item in self.below(way):
            value = wanted.get(item.hint, self._defaults.get(item.hint, ""))
            if value not in item.values:
                value = {"cb_nodes": str(self.ranks), "cb_buffer_size": _ROMIO_BUFFER}.get(item.hint, "")
            if value not in item.values:
                value = item.values[0]
            values[item.key] = item.values.index(value)
        return values

    def setting_of(self, point: Mapping[str, str | int]) -> Setting:
        """Return the setting of the optimiser's parameters."""
        way = str(point["way"])
        return self.setting(way, {item.hint: item.values[int(point[item.key])] for item in self.below(way)})

    def starting_points(self) -> list[dict[str, str | int]]:
        """Return the settings to try first: the library's choice, native and native tuned, then every way."""
        every = {"cb_nodes": str(self.ranks)}
        tuned = {**every, "cb_config_list": "*:*", "romio_cb_write": "enable", "romio_cb_read": "enable"}
        points: list[tuple[str, Mapping[str, str]]] = [("auto", {})]
        points += [("native", {}), ("native", tuned), ("auto", every)]
        points += [(way, {}) for way in self.ways if way not in ("auto", "native")]
        points += [("auto", {"cb_buffer_size": str(4096 * _KIB)}), ("delegates", {"mpiox_delegates": "2"})]
        found: list[dict[str, str | int]] = []
        for way, wanted in points:
            point = self.point(way, wanted) if way in self.ways else None
            if point is not None and point not in found:
                found.append(point)
        return found


def _sizes(lowest: int, highest: int) -> tuple[str, ...]:
    values = []
    while lowest <= highest:
        values.append(str(lowest))
        lowest *= 2
    return tuple(values)


def _nodes(ranks: int) -> tuple[str, ...]:
    if ranks <= _MANY_RANKS:
        return tuple(str(number) for number in range(1, ranks + 1))
    powers = [1 << power for power in range(ranks.bit_length()) if 1 << power < ranks]
    return tuple(str(number) for number in [*powers, ranks])


def _delegates(ranks: int) -> tuple[str, ...]:
    """Return numbers of delegates: each takes processor time and memory from the ranks."""
    most = max(1, min(_MANY_DELEGATES, ranks))
    return tuple(str(1 << power) for power in range(most.bit_length()))


def _ways(usage: Usage, options: Options) -> tuple[str, ...]:
    own = ("auto", "direct", *_methods()) if usage.collective else ("auto",)
    own = (*own, "delegates") if usage.independent else own
    return (*own, "native") if options.native else own


def _parameters(usage: Usage, options: Options, ways: tuple[str, ...]) -> list[tuple[str, tuple[str, ...], set[str]]]:
    """Return (hint, values without those in force, ways)."""
    own = {way for way in ways if way != "native"}
    exchanged = own - {"direct"} if usage.collective else set()
    alone = own - {"delegates"} if usage.independent else own & {"direct"}
    native, delegates = {"native"} & set(ways), {"delegates"} & set(ways)
    sizes, nodes = _sizes(64 * _KIB, 64 * _KIB * _KIB), _nodes(usage.ranks)
    both = [("read", alone), *([("write", alone)] if usage.written else [])]
    rows = [
        ("cb_nodes", ("0", *nodes), exchanged),
        ("cb_buffer_size", ("0", *sizes), exchanged),
        ("mpiox_buffers", ("2", "4", "8"), exchanged),
        ("mpiox_io_rank", ("any", "owner"), exchanged),
        ("mpiox_stripe_size_io", ("automatic", "enable"), exchanged),
        ("mpiox_storage", ("auto", "posix", "io_uring"), own),
        ("mpiox_delegates", _delegates(usage.ranks), delegates),
        ("mpiox_delegate_mode", ("spawn", "process"), delegates),
        ("mpiox_delegate_cache", _sizes(16 * _KIB * _KIB, 256 * _KIB * _KIB), delegates),
        ("mpiox_delegate_page", ("0", *_sizes(64 * _KIB, 4096 * _KIB)), delegates),
        ("mpiox_delegate_bypass", ("0", *_sizes(256 * _KIB, 4096 * _KIB)), delegates),
        *[(f"romio_ds_{what}", ("automatic", "enable", "disable"), where) for what, where in both],
        *[(f"ind_{_SHORT[what]}_buffer_size", ("0", *sizes), where) for what, where in both],
        ("cb_nodes", nodes, native if usage.collective else set()),
        ("cb_buffer_size", sizes, native if usage.collective else set()),
        ("cb_config_list", ("*:*",), native if usage.collective else set()),
        ("romio_cb_write", ("automatic", "enable"), native if usage.collective and usage.written else set()),
        ("romio_cb_read", ("automatic", "enable"), native if usage.collective else set()),
    ]
    if options.striping and usage.written:
        rows.append(("striping_unit", ("0", *sizes), set(ways)))
        rows.append(("striping_factor", ("0", "1", "2", "4", "8", "16"), set(ways)))
    if options.direct_io:
        rows += [(name, ("false", "true"), set(ways)) for name in ("direct_read", "direct_write")]
    return rows


def _put_back(
    rows: Sequence[tuple[str, tuple[str, ...], set[str]]],
    ways: tuple[str, ...],
    user: frozenset[str],
    defaults: Mapping[str, str],
) -> list[tuple[str, tuple[str, ...], set[str]]]:
    """Return, for hints that somebody has set, the default as a choice on ways where they are not searched anyway."""
    more: list[tuple[str, tuple[str, ...], set[str]]] = []
    for name in sorted(user & {spec.name for spec in registry() if spec.for_speed}):
        searched = set[str]().union(*(where for hint, _, where in rows if hint == name))
        meant = {"delegates"} & set(ways) if name.startswith("mpiox_delegate_") else set(ways) - {"native"}
        own = meant - searched
        if own and defaults.get(name):
            more.append((name, (defaults[name],), own))
    return more


def build(
    usage: Usage,
    options: Options,
    *,
    defaults: Mapping[str, str],
    in_force: Mapping[str, str],
    user: frozenset[str] = frozenset(),
    removable: frozenset[str] = frozenset(),
) -> Space:
    """Return the space of a program.

    Parameters
    ----------
    usage : what the baseline did.
    options : what is allowed.
    defaults : {hint: value} of the registry.
    in_force : the same in the baseline.
    user : names of hints that are set.
    removable : those of them that a hints file can leave away.
    """
    ways = _ways(usage, options)
    parameters = []
    rows = _parameters(usage, options, ways)
    for hint, values, where in [*rows, *_put_back(rows, ways, user, defaults)]:
        if not where or hint not in defaults:
            continue
        present = in_force.get(hint, defaults[hint])
        if where == {"native"} and hint in _ZERO_CHOOSES and present == "0":
            values = (present, *values)  # nothing is set, so nothing is handed on
        elif present not in values:
            values = (*values, present) if present else ("", *values)
        if hint == "mpiox_delegates":
            values = tuple(value for value in values if value not in _NO_DELEGATES)
        if hint in LEFT_AWAY and present != "0" and hint not in removable:
            values = tuple(value for value in values if value != "0")
        if len(values) < 2 and values == (present,):
            continue
        parameters.append(Parameter(hint=hint, values=values, ways=frozenset(where)))
    return Space(
        ways=ways,
        parameters=tuple(parameters),
        in_force={**defaults, **in_force},
        ranks=usage.ranks,
        _defaults=defaults,
    )
