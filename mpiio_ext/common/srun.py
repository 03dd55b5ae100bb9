"""The environment that Slurm's srun gives its tasks: the option ``--export``, with more variables in it.

Problem. The last ``--export`` of a command line is in force, and SLURM_EXPORT_ENV where there is none. A second option
for the library's variables is lost in front of the user's, and behind it takes the user's variables away.

Algorithm. The user's value is removed from wherever it is, and one new option has the user's value and the variables.
ALL passes on the whole environment. NONE and NIL stand for an empty list, beside which srun takes no variable: the list
of ours alone gives the tasks the same environment, and ours. Options end at the first word that is neither an option
nor the value of one: an option of the program is left to the program.

Source: srun(1) of Slurm 22.05 to 25.05, and srun 22.05.8 and 24.11.5, which take the last option, a value in quotes
and abbreviations of the option (``--exp``), and stop at an item NONE.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence

#: Short options with a value, which may be the next word.
_VALUED = frozenset("AabBcCdDeGiJLMmnNopqrStTwWx")
#: Long options without a value, or with one by `=` alone; all others take the next word.
_FLAGS = frozenset(
    f"--{name}"
    for name in (
        "bcast compress contiguous debugger-test disable-status exact exclusive external external-launcher get-"
        " user-env help hold immediate interactive kill-on-bad-exit label multi-prog nice no-allocate no-kill oom-"
        " kill-step overcommit overlap oversubscribe preserve-env propagate pty quiet quit-on-interrupt reboot"
        " resv-ports send-libs share spread-job spread-segments stepmgr test-only unbuffered usage use-min-nodes"
        " verbose version wait-for-children whole x11"
    ).split()
)
#: The option and its abbreviations that are no other option's.
_EXPORT = frozenset({"--exp", "--expo", "--expor", "--export"})
_NOTHING = ("none", "nil")
#: An item of a list: its commas may be in quotes.
_ITEM = re.compile(r"""(?:[^,'"]|'[^']*'|"[^"]*")+""")


def _after(words: Sequence[str], at: int) -> int:
    """Return where the word after an option and its value is."""
    word = words[at]
    name, by, _ = word.partition("=")
    if word.startswith("--"):
        return at + (1 if by or name in _FLAGS else 2)
    valued = next((place for place, letter in enumerate(word[1:], 1) if letter in _VALUED), 0)
    return at + (2 if valued == len(word) - 1 and valued else 1)  # else the value is the rest of the word


def _exports(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the values of ``--export`` among srun's options, and the words without these options."""
    values, left, at = list[str](), list[str](), 0
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        name, by, value = words[at].partition("=")
        end = _after(words, at)
        if name in _EXPORT:
            values.append(value if by else " ".join(words[at + 1 : end]))
        else:
            left += words[at:end]
        at = end
    return values, [*left, *words[at:]]


def taken_out(words: Sequence[str], default: str) -> tuple[list[str], list[str]]:
    """Take the variables for the tasks out of srun's words.

    Parameters
    ----------
    words : of one program: options, program, arguments.
    default : the value that holds without an option: SLURM_EXPORT_ENV, or "ALL".

    Returns
    -------
    list of str
        The items of the value that is in force: ``NAME``, ``NAME=VALUE``, ``ALL``.
    list of str
        The words without the option.
    """
    values, left = _exports(words)
    value = values[-1] if values else default
    items = [] if value.lower() in _NOTHING else _ITEM.findall(value)
    return list(itertools.takewhile(lambda item: item.lower() != "none", items)), left  # srun stops at NONE


def has_all(items: Collection[str]) -> bool:
    """Return whether items of a value pass on the whole environment."""
    return any(item.lower() == "all" for item in items)
