"""Completion in bash, which cuts words at "=" and ":", so that click would not see a hint as one word.

The function that bash calls hands over the line up to the cursor and the piece that bash is going to replace.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string


class _Bash(BashComplete):
    """Reads the line up to the cursor, and prints the text that replaces bash's last piece of it."""

    name: ClassVar[str] = "bash"
    source_template: ClassVar[str] = BashComplete.source_template.replace(
        "response=$(env ",
        'response=$(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_PIECE="${COMP_WORDS[COMP_CWORD]}" ',
    ).replace("    return 0\n", "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n    return 0\n")

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one at the cursor, and that one as far as it is typed."""
        line = os.environ.get("COMP_LINE")
        if line is None:
            return super().get_completion_args()
        words = split_arg_string(line)[1:]
        last = words.pop() if words and not line[-1].isspace() else ""
        return words, last

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return one answer, without the text before bash's piece."""
        last = self.get_completion_args()[1]
        piece = os.environ.get("COMP_PIECE", last)
        kept = len(last) - (0 if piece in ("=", ":") else len(piece))
        begins = kept > 0 and last.endswith(piece) and item.value.startswith(last[:kept])
        return f"{item.type},{item.value[kept:] if begins else item.value}"


def register() -> None:
    """Let click answer bash by it."""
    add_completion_class(_Bash)
