"""What the launches of the model-based test are given: the library as it is, and through delegates of every kind."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

SMALL = "mpiox_delegate_page=4k:mpiox_delegate_cache=400k"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One kind of launch.

    Attributes
    ----------
    hints : MPIOX_HINTS; they hold for every open.
    site : lines of a site file: hints that the program may replace.
    environment : other variables.
    opens : what the program passes to MPI_File_open, one of these each time.
    delegates : accesses must have gone through delegates.
    """

    hints: str = ""
    site: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    opens: tuple[Mapping[str, str], ...] = ({},)
    delegates: bool = False


def delegated(*more: str, mode: str = "thread", count: str = "2", **environment: str) -> Setting:
    """Return a setting with delegates."""
    hints = ":".join([f"mpiox_delegates={count}", f"mpiox_delegate_mode={mode}", "mpiox_delegate_timeout=120", *more])
    return Setting(hints=f"*:{hints}", environment=environment, delegates=True)


#: Opens of one file that use the same delegates in different ways, or none.
MIXED = (
    {},
    {"mpiox_delegates": "0"},
    {"mpiox_delegate_bypass": "4k"},
    {"mpiox_exchange": "two_phase", "cb_nodes": "2"},
    {"mpiox_exchange": "direct", "mpiox_delegate_ack": "disk"},
)
SETTINGS = {
    "plain": Setting(),
    "two nodes": Setting(environment={"MPIOX_RANKS_PER_NODE": "3"}),
    "short transfers": Setting(environment={"MPIOX_FAULT": "op=write,short=700;op=read,short=900"}),
    "delegates, as they come": delegated(mode="spawn"),
    "delegates, little memory": delegated("mpiox_delegate_page=4k", "mpiox_delegate_cache=330k", mode="spawn"),
    "delegates, threads, bypass": delegated(SMALL, "mpiox_delegate_bypass=8k", "mpiox_delegate_prefetch=8"),
    "delegates, two nodes": delegated(SMALL, "mpiox_delegate_write_behind=16k", MPIOX_RANKS_PER_NODE="3"),
    "delegates, some opens": Setting(
        site="[*]\nmpiox_delegates = 2\nmpiox_delegate_mode = thread\n" + SMALL.replace("=", " = ").replace(":", "\n"),
        opens=MIXED,
        delegates=True,
    ),
}
SCHEDULERS = ("fifo", "sjf", "to_agg", "aioli", "mlf", "hbrr", "twins", "wfq")
#: The same paths with other numbers.
MORE = {
    "delegates, replica": delegated(SMALL, "mpiox_delegate_ack=replica", mode="spawn"),
    "delegates, disk": delegated(SMALL, "mpiox_delegate_ack=disk", mode="spawn"),
    "delegates, one per node": delegated(SMALL, mode="spawn", count="per_node=1", MPIOX_RANKS_PER_NODE="2"),
    "delegates, every rank": delegated(SMALL, "mpiox_delegate_threads=2", count="100%"),
    "delegates, short transfers": delegated(SMALL, MPIOX_FAULT="op=write,short=700;op=read,short=900"),
    "delegates, scheduler": delegated(SMALL, "mpiox_delegate_scheduler=wfq", "mpiox_delegate_quantum=8k"),
    "delegates, time windows": delegated(
        SMALL,
        "mpiox_delegate_scheduler=twins",
        "mpiox_delegate_time_slice=500",
        "mpiox_delegate_patience=20",
        "striping_factor=3",
        "striping_unit=4k",
    ),
}


def random_setting(number: int) -> Setting:
    """Return delegates with hints drawn from everything that they understand."""
    rng = random.Random(f"setting {number}")
    page = rng.choice(["4k", "4k", "8k", "16k", "64k"])
    least = {"4k": 300, "8k": 360, "16k": 480, "64k": 1200}[page]
    hints = [
        f"mpiox_delegate_page={page}",
        f"mpiox_delegate_cache={rng.choice([least, least, least * 2, least * 8])}k",
        f"mpiox_delegate_threads={rng.choice([1, 1, 2, 4])}",
        f"mpiox_delegate_prefetch={rng.choice([0, 1, 4, 8])}",
        f"mpiox_delegate_bypass={rng.choice(['0', '4k', '8k', '64k', '1m'])}",
        f"mpiox_delegate_write_behind={rng.choice(['0', '100', '4k', '1m'])}",
        f"mpiox_delegate_ack={rng.choice(['memory', 'memory', 'replica', 'disk'])}",
    ]
    if rng.random() < 0.5:
        hints.append(f"striping_unit={rng.choice(['4k', '8k', '12k', '64k'])}")
        hints.append(f"striping_factor={rng.choice([1, 2, 3, 5])}")
    if rng.random() < 0.4:
        hints.append(f"mpiox_exchange={rng.choice(['direct', 'two_phase'])}")
    if rng.random() < 0.2:
        hints.append("mpiox_storage=io_uring")
    environment = {}
    if rng.random() < 0.5:
        environment["MPIOX_RANKS_PER_NODE"] = rng.choice(["1", "2", "3", "4"])
    if rng.random() < 0.2:
        environment["MPIOX_FAULT"] = rng.choice(["op=write,short=700;op=read,short=900", "op=any,delay_ms=2,times=30"])
    count = rng.choice(["1", "2", "2", "3", "5", "per_node=1", "100%"])
    if rng.random() < 0.5:
        hints.append(f"mpiox_delegate_scheduler={rng.choice(SCHEDULERS)}")
        hints.append(f"mpiox_delegate_quantum={rng.choice(['1k', '8k', '64k', '4m'])}")
        hints.append(f"mpiox_delegate_time_slice={rng.choice([0, 100, 1000])}")
        hints.append(f"mpiox_delegate_patience={rng.choice([0, 1, 1000])}")
    return delegated(*hints, mode=rng.choice(["thread", "thread", "spawn"]), count=count, **environment)
