"""Which calls of a case are made in their large-count form (MPI_..._c). Pure Python, no MPI.

In a type tree, ``hindexed_c`` is MPI_Type_create_hindexed_c; in a data-access call, ``large`` says it for each rank.
Where the MPI library has no large-count functions, both are the classic form. The forms are drawn last and apart from
the rest: what the program does is the same in every form.
"""

from __future__ import annotations

import random

from differential.state import Case
from differential.typetree import ATOMS, Tree, plain


def formed(rng: random.Random, tree: Tree) -> Tree:
    """Return a tree with a form of its own for every constructor; MPI_Type_dup has only one."""
    if tree[0] in ATOMS:
        return tree
    name = plain(tree)
    kind = f"{name}_c" if name != "dup" and rng.random() < 0.5 else name
    if name == "struct":
        return [kind, tree[1], tree[2], [formed(rng, child) for child in tree[3]]]
    return [kind, *tree[1:-1], formed(rng, tree[-1])]


def draw_forms(rng: random.Random, case: Case) -> None:
    """Draw the form of every constructor and of every rank's data-access calls, in place."""
    for op in case["ops"]:
        if op["op"] == "view":
            op["etype"] = formed(rng, op["etype"])
            op["ftype"] = [formed(rng, tree) for tree in op["ftype"]]
        elif "mem" in op:
            op["mem"] = [formed(rng, tree) for tree in op["mem"]]
            op["large"] = [rng.random() < 0.5 for _ in op["mem"]]
