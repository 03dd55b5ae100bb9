"""Names of what a case exercises."""

from __future__ import annotations

from differential import typetree
from differential.simulate import Simulation
from differential.state import ACCESS, HOWS, Case, Op


def features(case: Case) -> set[str]:
    """Return the names of what a case exercises."""
    found = {f"ranks {case['ranks']}", f"comm {case['comm']}", f"fill {case['fill']}"}
    found |= {f"strategy {name}" for name in case["strategies"]}
    found |= {f"{name}={value}" if name.startswith("mpiox") else name for name, value in case["hints"].items()}
    per_node = int(case["hints"].get("mpiox_ranks_per_node", 0))
    found.add(f"nodes {-(-case['ranks'] // per_node) if per_node else 1}")
    found |= {name for name in ("lax", "big", "readonly") if case[name]}
    if case["initial"] > 0:
        found.add("file existed")
    simulation = Simulation(case)
    for index, op in enumerate(case["ops"]):
        found.add(f"call {op['op']} {op.get('how', '')}".strip())
        found |= op_features(op, simulation)
        orders = simulation.orders(op)
        if len(orders) > 1:
            found.add(f"race {HOWS[op['how']].pointer} {op['op']}")
        expected = simulation.step(index, op)
        if op["op"] == "open":
            found.add(f"open {expected or 'works'}")
        if op["op"] in ACCESS:
            if any(e and e.nbytes < e.requested for e in expected):
                found.add("read past end")
            if any(e and e.requested == 0 for e in expected):
                found.add("zero-length ranks")
            if len(simulation.pending) > 1:
                found.add("several under way")
    return found


def op_features(op: Op, simulation: Simulation) -> set[str]:
    """Return what one call shows by itself."""
    found: set[str] = set()
    handle = simulation.handles.get(op.get("h", 0))
    if op["op"] == "view":
        found |= {f"file {name}" for tree in op["ftype"] for name in typetree.constructors(tree)}
        found.add(f"rep {op.get('rep', 'native')}")
        if op["etype"][0] != "named":
            found.add("etype derived")
    elif op["op"] in ACCESS:
        found |= {f"memory {name}" for tree in op["mem"] for name in typetree.constructors(tree)}
        forms = ["large" if large else "classic" for large in op.get("large", [False])]
        found |= {f"{form} {op['op']} {op['how']}" for form in forms}
        if any(op["bottom"]):
            found.add("memory MPI_BOTTOM")
        if handle and handle.atomic:
            found.add(f"atomic {HOWS[op['how']].family}")
        if handle and handle.op["comm"] != "world":
            found.add(f"on {handle.op['comm']} {HOWS[op['how']].family}")
        if not all(op.get("who", [True])):
            found.add("idle ranks")
    elif op["op"] == "wait":
        found.add(f"wait {op['style']}")
    elif op["op"] == "open":
        found |= {f"mode {name}" for name in op["mode"]} | {f"open on {op['comm']}"}
    elif op["op"] in ("seek", "seek_shared"):
        found.add(f"{op['op']} {op['whence']}")
    return found
