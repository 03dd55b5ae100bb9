"""Check a commit's message: ``python scripts/commit_message.py FILE``, as the hook commit-msg of pre-commit does.

The subject says the one change in at most 72 characters, the body gives the reason, nothing is merged: CONTRIBUTING.md.
What does not hold is printed, a line each; the exit status is 1 when anything is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_SUBJECT = 72
#: Subjects of commits that are to be squashed into the one that they belong to, or rebased.
UNFINISHED = re.compile(
    r"wip\b|(fixup|squash|amend)!|merge (branch|pull|remote|commit|tag)\b|(widths? of (a )?lines?|words)\W*$",
    re.IGNORECASE,
)


def problems(message: str) -> Iterator[str]:
    """Yield the mistakes in a message; git's comments do not count."""
    text = re.sub(r"(?m)^#.*\n?", "", message.partition("\n# ------------------------ >8 ---")[0]).strip()
    subject, _, rest = text.partition("\n")
    if len(subject) > MAX_SUBJECT:
        yield f"the subject has {len(subject)} characters: write at most {MAX_SUBJECT}, and the reason into the body"
    if UNFINISHED.match(subject):
        yield f"'{subject}' names no change: squash it into the commit that it belongs to; rebase what would be merged"
    if rest and not rest.startswith("\n"):
        yield "the line after the subject is not empty: put an empty one between subject and body"
    body = re.sub(r"(?m)^[A-Z][a-z]+(-[a-z]+)+: .*$", "", rest).strip()  # without Signed-off-by and its like
    if not body:
        yield "there is no body: give the reason, after an empty line"


def main(words: list[str]) -> int:
    """Print the problems of the message in a file; return 1 when there is any."""
    found = list(problems(Path(words[0]).read_text(encoding="utf-8")))
    for problem in found:
        print(f"commit message: {problem}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
