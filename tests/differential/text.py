"""The text form of a case: from text to the dictionary that run.py runs, and back.

Problem.    A public report should become a test in five lines that a reader understands without running them.
Format.     ``NAME: ranks N WORD... | CALL | CALL ...``. A line that begins with a space continues the entry; comment
            lines (``#``) directly above an entry are its source. NAME is optional for text of a command line.
            After ``ranks``: ``comm C``, ``fill offset|random``, ``file BYTES`` (the file exists), ``lax``, ``strict``,
            ``free`` (datatypes are freed as soon as MPI allows it), ``views`` (views are taken for legal whose tiles
            overlap or go back), ``readonly``, or ``mode A,B``, ``seed N``, ``disk BYTES`` (a file system of this size),
            ``fault RULES`` (csrc/core/storage/mpiox_fault.h), and hints as NAME=VALUE.
            Calls, of which ``on H`` names the handle (default 0):
              read|write|mixed HOW COUNT [TYPE] [@OFFSET] [by RANKS] [bottom RANKS] [large RANKS] [as REQUEST] [snap]
                  [fill offset|random] [verb read,write,...] [threads N]
                                            HOW: as MPI's functions end, or individual; TYPE: of memory, else BYTE
              view [@BYTES] ETYPE [FILETYPE] [rep NAME]             without FILETYPE: the etype
              view turns BYTES                                      blocks of so many bytes, of one rank after another
              seek OFFSET [cur|end]   seek_shared OFFSET [cur|end]   wait REQUEST... [STYLE]
              size BYTES   preallocate BYTES   atomicity on|off   sync   fence   query [shared]   close H
              open H [file F] [comm C] [mode A,B] [each] [HINT=VALUE...]   delete F
              posix stat|read|remove|named|hidden F   posix rename F G   posix write F BYTES @OFFSET   (outside.py)
              kill [RANKS]|launcher|delegates   job   limit BYTES|-1
            F is a number or a name; a name that begins with ./ is another name of the file behind that, null is none.
            ``CALL fails CLASS [or CLASS...] [by RANKS|some]``: on each rank, on these alone, or on one at least, the
            call must give an error of a class (``or none``: or no error), and it changes nothing there, unless storage
            fails (outside.py). Only such a call may be wrong: on a handle that is closed, with the type NULL, with a
            count of -1.
            ``CALL but RANKS CALL``: some ranks make another call. ``CALL lost FUNCTION N``: within this call, the N-th
            call of an MPI function by the library, from 0, fails as if another process had died, and what it returns
            is undefined (tests/programs/undefine.c); it must do so on a rank at least.
            A line ``with NAME: WORDS`` is a row: the entry is one for each of its rows, with these words in place of
            ROW, and the name ``ENTRY, NAME``.
            ``except VARIANT[(FAMILY)]...: REASON`` declares a deviation, ``skip`` in its place that the case does not
            run, ``only VARIANT...`` the variants to run (variants.py); each may have ``*``. ``shows COUNTER...``:
            rank 0 counts more than none, so that the hints of the case are in force.
            One value stands for all ranks, a list with commas has one for each. A value is an integer expression of
            ``rank`` and ``ranks`` without spaces: ``rank*8``, ``8*(rank<2)``, ``1<<31``. RANKS is a number, a list
            ``[0 2]``, or a condition: ``rank%2==0``; without it: all. A type is a constructor of typetree.py, its
            numbers and lists, then its child: ``vector 3 2 5 INT``, ``indexed [1 2] [0 4] INT``, ``struct [1 2] [0 8]
            {INT BYTE}``. In a list, ``12x1`` repeats a value, which may count by ``i``: ``12x(i*i)``.
Guarantees. A mistake is a CaseError with file, line, column, the word there, and what was expected. A case that the
            simulation refuses is a CaseError at the call, with the reason. ``read(tell(case))`` is the case without
            what tells only how it was drawn (`plain`); a case that the text cannot express is told as JSON.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from differential.expressions import evaluate
from differential.outside import LOSABLE, POSIX
from differential.program import STYLES
from differential.simulate import Simulation
from differential.state import ACCESS, BYTE, ERRORS, HOWS, Case, Illegal, Op
from differential.typetree import DEFAULT, NAMED, Tree
from differential.typetree import plain as constructor

T = TypeVar("T")
FOLDER = pathlib.Path(__file__).resolve().parent / "cases"
LAST = pathlib.Path(__file__).resolve().parents[2] / "build" / "last_case.json"
COMMS = ("world", "reversed", "rotated")
OPEN_COMMS = ("world", "dup", "back", "self", "halves", "parity", "some", "inter")
MODES = ("rdonly", "wronly", "rdwr", "create", "excl", "append", "unique", "delete", "sequential", "none")
FLAGS = ("lax", "big", "strict", "readonly", "free", "views")
REPS = ("native", "external32", "internal", "unknown")
#: What comes between a constructor's name and its child: n a number, l a list, w distributions, a their arguments,
#: o the order, c children in braces in place of a child.
SHAPES = {
    "contiguous": "n",
    "vector": "nnn",
    "hvector": "nnn",
    "indexed": "ll",
    "hindexed": "ll",
    "indexed_block": "nl",
    "hindexed_block": "nl",
    "struct": "llc",
    "subarray": "lllo",
    "darray": "nnlwalo",
    "resized": "nn",
    "dup": "",
    "raw": "",
}
ATOMS = {"f90_real": 2, "f90_integer": 1}
#: Elements, or repetitions, at most: the model has 8 MiB.
MOST = 1 << 20
#: Of a case, what tells how it was drawn or is added before each run.
DRAWN = ("strategies", "families", "id", "hazards", "owned")
#: Words behind a call.
BEHIND = ("but", "lost", "fails")
WITHOUT_HANDLE = ("sync", "fence", "wait", "open", "close", "delete", "posix", "kill", "job", "limit")
HINT = re.compile(r"[A-Za-z_]\w*=(?!=)\S+")
_TOKEN = re.compile(r"[\[\]{},|@]|[A-Za-z_]\w*=(?!=)[^\s|]+|[^\s\[\]{},|@]+")
_ROW = re.compile(r"^ +with (?P<name>[^:|]+):(?P<words>.*)$", re.MULTILINE)
_NAME = re.compile(r"\s*(?P<name>[^|]*?):\s+(?=ranks\b)")
_DECLARED = re.compile(r"\s*(except|skip|only|shows)\b([^:]*)(?::\s*(.*))?", re.DOTALL)
_VARIANT = re.compile(r"([\w*-]+)(?:\((openmpi|mpich)\))?")


class CaseError(ValueError):
    """The text is no case; the message begins with ``FILE:LINE:COLUMN``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A deviation that is expected in variants of a name, with one family of MPI libraries or (empty) with all."""

    variant: str
    family: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A case with its name, its source, and what is declared beside it."""

    name: str
    case: Case
    text: str
    where: str = ""
    source: str = ""
    excepted: tuple[Declared, ...] = ()
    skipped: tuple[Declared, ...] = ()
    only: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()


class Reader:
    """Words of one entry, read from the left; each method takes what it names and fails where it finds another."""

    def __init__(self, text: str, where: str = "text", line: int = 1) -> None:
        self.text, self.where, self.line = text, where, line
        self.words = [(found.group(), found.start()) for found in _TOKEN.finditer(text)]
        self.at, self.ranks = 0, 1

    def fail(self, expected: str, place: int | None = None) -> NoReturn:
        """Raise the error at the next word, or at a place of the text."""
        end = len(self.text.rstrip())
        word, begin = self.words[self.at] if self.at < len(self.words) else ("the end", end)
        before = self.text[: begin if place is None else place]
        line, column = self.line + before.count("\n"), len(before) - before.rfind("\n")
        found = f"expected {expected}, found {word!r}" if place is None else expected
        raise CaseError(f"{self.where}:{line}:{column}: {found}")

    @property
    def next(self) -> str:
        """The next word; empty at the end of a call."""
        word = self.words[self.at][0] if self.at < len(self.words) else ""
        return "" if word == "|" else word

    def skip(self, *words: str) -> bool:
        """Take the next word if it is one of these."""
        found = self.next in words and self.next != ""
        self.at += found
        return found

    def need(self, word: str) -> None:
        """Take this word."""
        if not self.skip(word):
            self.fail(repr(word))

    def one_of(self, words: tuple[str, ...], what: str) -> str:
        """Take one of these words."""
        word = self.next
        if not self.skip(*words):
            self.fail(f"{what}: {', '.join(words)}")
        return word

    def maybe(self, words: tuple[str, ...]) -> str:
        """Take one of these words if it is there; the first is the default."""
        word = self.next
        return word if self.skip(*words) else words[0]

    def number(self, rank: int | None = None) -> int:
        """Take a number; without a rank it may not depend on one."""
        try:
            value = evaluate(self.next, rank, self.ranks)
        except ValueError:
            self.fail("a number" if rank is None else "a number or an expression of rank")
        self.at += 1
        return value

    def times(self, rank: int) -> int:
        """Take a number of elements."""
        value = self.number(rank)
        if value > MOST:
            self.at -= 1
            self.fail(f"a number up to {MOST}")
        return value

    def several(self, words: tuple[str, ...], what: str) -> list[str]:
        """Take words with commas between them."""
        found = [self.one_of(words, what)]
        while self.skip(","):
            found.append(self.one_of(words, what))
        return found

    def each(self, take: Callable[[int], T]) -> list[T]:
        """Take a value for all ranks, or one for each with commas between them."""
        begin = self.at
        found = [take(0)]
        if self.next != ",":
            end = self.at
            for rank in range(1, self.ranks):
                self.at = begin
                found.append(take(rank))
            self.at = end
            return found
        while self.skip(","):
            if len(found) == self.ranks:
                self.at -= 1
                self.fail(f"one value, or one for each of {self.ranks} ranks")
            found.append(take(len(found)))
        if len(found) != self.ranks:
            self.fail(f"one value, or one for each of {self.ranks} ranks")
        return found

    def numbers(self) -> list[int]:
        """Take a number for each rank."""
        return self.each(self.number)

    def items(self, rank: int | None) -> list[int]:
        """Take a list of numbers in brackets."""
        self.need("[")
        found: list[int] = []
        while not self.skip("]"):
            times, _, value = self.next.rpartition("x")
            try:
                n = evaluate(times, rank, self.ranks) if times else 1
                if n > MOST:
                    raise ValueError(times)
                found += [DEFAULT if value == "default" else evaluate(value, rank, self.ranks, i) for i in range(n)]
            except ValueError:
                self.fail(f"a number, TIMESxNUMBER with TIMES up to {MOST}, or ]")
            self.at += 1
        return found

    def some_ranks(self, default: list[int] | None = None) -> list[bool]:
        """Take the ranks of a list, a number or a condition; without any, the default."""
        word = self.next
        if word == "[":
            chosen = self.items(None)
        elif "rank" in word:
            return [bool(value) for value in self.numbers()]
        elif word[:1].isdigit() or default is None:
            chosen = [self.number()]
        else:
            chosen = default
        if not set(chosen) <= set(range(self.ranks)):
            self.fail(f"ranks below {self.ranks} before this")
        return [rank in chosen for rank in range(self.ranks)]

    # ---- types ----------------------------------------------------------------------------------------------------

    @property
    def at_type(self) -> bool:
        """Whether the next word begins a type."""
        return self.next in NAMED or self.next == "NULL" or self.next in ATOMS or self.next.removesuffix("_c") in SHAPES

    def tree(self, rank: int) -> Tree:
        """Take a type."""
        name = self.next
        if not self.at_type:
            self.fail(f"a type: {', '.join([*NAMED, *ATOMS, *SHAPES])}")
        self.at += 1
        if name in NAMED or name == "NULL":
            return ["named", name]
        if name in ATOMS:
            return [name, *(self.number(rank) for _ in range(ATOMS[name]))]
        shape, found = SHAPES[name.removesuffix("_c")], [name]
        for part in shape:
            first = len(found) == 1 and name != "resized"
            found.append(self.times(rank) if part == "n" and first else self.part(part, rank))
        return found if "c" in shape else [*found, self.tree(rank)]

    def part(self, part: str, rank: int) -> Any:
        """Take what stands between a constructor and its child."""
        if part == "n":
            return self.number(rank)
        if part in "la":
            return self.items(rank)
        if part == "o":
            return self.one_of(("C", "F"), "the order of the dimensions")
        found: list[Any] = []
        opening, closing = ("[", "]") if part == "w" else ("{", "}")
        self.need(opening)
        while not self.skip(closing):
            ways = ("block", "cyclic", "none")
            found.append(self.one_of(ways, "a distribution") if part == "w" else self.tree(rank))
        return found

    # ---- the case -------------------------------------------------------------------------------------------------

    def head(self) -> Case:
        """Take what stands before the first call."""
        self.need("ranks")
        self.ranks = self.number()
        if not 1 <= self.ranks <= 64:
            self.at -= 1
            self.fail("1 to 64 ranks")
        case: Case = {"seed": 1, "ranks": self.ranks, "comm": "world", "fill": "random", "lax": False, "big": False}
        case |= {"initial": -1, "readonly": False, "hints": {}, "strategies": []}
        while self.next:
            if self.skip("comm"):
                case["comm"] = self.one_of(COMMS, "a communicator")
            elif self.skip("fill"):
                case["fill"] = self.one_of(("offset", "random"), "what is written")
            elif self.skip("file"):
                case["initial"] = self.number()
            elif self.skip("seed"):
                case["seed"] = self.number()
            elif self.skip("mode"):
                case["mode"] = self.several(MODES[1:], "a mode")
            elif self.skip("disk"):
                case["disk"] = self.number()
            elif self.skip("fault"):
                case["fault"] = self.next
                self.at += 1
            elif self.next in FLAGS:
                case[self.next] = True
                self.at += 1
            elif not self.hint(case["hints"]):
                self.fail(f"comm, disk, fault, fill, file, {', '.join(FLAGS)}, mode, seed, a hint NAME=VALUE or |")
        return case

    def hint(self, hints: dict[str, str]) -> bool:
        """Take a hint if there is one."""
        found = HINT.fullmatch(self.next) is not None
        if found:
            name, _, value = self.next.partition("=")
            hints[name] = value
            self.at += 1
        return found

    def call(self) -> Op:
        """Take one call, what other ranks do, and the error that must come."""
        op = self.plain_call()
        if self.skip("but"):
            op["other"] = self.some_ranks()
            op["but"] = self.plain_call()
        if self.skip("lost"):
            op["lost"] = [self.one_of(LOSABLE, "a function"), self.number()]
        if self.skip("fails"):
            op["fails"] = [self.one_of(ERRORS, "an error class")]
            while self.skip("or"):
                op["fails"].append(self.one_of(("none", *ERRORS), "an error class"))
            if self.skip("by"):
                if self.skip("some"):
                    op["some"] = True
                    op["fails"] += [] if "none" in op["fails"] else ["none"]
                elif op["op"] in ACCESS:
                    op["failing"] = self.some_ranks()
                else:
                    self.fail("some")
        if self.next:
            self.fail("the end of the call")
        return op

    def plain_call(self) -> Op:
        """Take what one rank calls."""
        kind = self.next
        takes = CALLS.get(kind)
        if takes is None:
            self.fail(f"a call: {', '.join(CALLS)}")
        self.at += 1
        op: Op = {"op": kind}
        takes(self, op)
        if self.next == "on" and kind not in WITHOUT_HANDLE:
            self.at += 1
            op["h"] = self.number()
        return op

    def access(self, op: Op) -> None:
        """Take a data-access call."""
        op["how"] = self.one_of(tuple(HOWS), "a way of access")
        op["count"] = self.each(self.times)
        op["mem"] = self.each(self.tree) if self.at_type else [list(BYTE) for _ in range(self.ranks)]
        op["bottom"] = [False] * self.ranks
        everybody = list(range(self.ranks))
        while self.next not in ("", "on", *BEHIND):
            if self.skip("@"):
                op["at"] = self.numbers()
            elif self.skip("by"):
                op["who"] = self.some_ranks()
            elif self.next in ("bottom", "large"):
                name = self.next
                self.at += 1
                op[name] = self.some_ranks(everybody)
            elif self.skip("as"):
                op["req"] = self.number()
            elif self.skip("snap"):
                op["snap"] = True
            elif self.skip("threads"):
                op["threads"] = self.number()
            elif self.skip("fill"):
                op["fill"] = self.one_of(("offset", "random"), "what is written")
            elif op["op"] == "mixed" and self.skip("verb"):
                op["verb"] = self.each(lambda _: self.one_of(("read", "write"), "what the rank does"))
            else:
                self.fail("@, by, bottom, large, as, snap, fill, threads, verb (of mixed), on or |")
        explicit = HOWS[op["how"]].pointer == "explicit"
        if explicit != ("at" in op):
            self.fail(f"@OFFSET with {op['how']}" if explicit else f"no @OFFSET with {op['how']}")
        if op["op"] == "mixed" and "verb" not in op:
            self.fail("verb read,write,... with mixed")

    def view(self, op: Op) -> None:
        """Take the words of a view."""
        if self.skip("turns"):
            size, every = self.number(), range(self.ranks)
            tile = ["resized", 0, self.ranks * size, ["contiguous", size, list(BYTE)]]
            op |= {"disp": [rank * size for rank in every], "etype": list(BYTE), "ftype": [tile for _ in every]}
            return
        op["disp"] = self.numbers() if self.skip("@") else [0] * self.ranks
        op["etype"] = self.tree(0)
        op["ftype"] = self.each(self.tree) if self.at_type else [op["etype"]] * self.ranks
        if self.skip("rep"):
            op["rep"] = self.one_of(REPS, "a data representation")

    def whence(self, op: Op) -> None:
        """Take the words of a seek."""
        op["offset"] = self.numbers() if op["op"] == "seek" else self.number()
        op["whence"] = self.maybe(("set", "cur", "end"))

    def wait(self, op: Op) -> None:
        """Take requests, and the way of waiting."""
        op["reqs"] = [self.number()]
        while self.next not in ("", *BEHIND, *STYLES):
            op["reqs"].append(self.number())
        op["style"] = self.maybe(STYLES)

    def open(self, op: Op) -> None:
        """Take the words of an open."""
        op |= {"h": self.number(), "file": 0, "comm": "world", "mode": ["rdwr"]}
        hints: dict[str, str] = {}
        while self.next not in ("", *BEHIND):
            if self.skip("file"):
                op["file"] = self.file()
            elif self.skip("comm"):
                op["comm"] = self.one_of(OPEN_COMMS, "a communicator")
            elif self.skip("mode"):
                op["mode"] = self.several(MODES, "a mode")
            elif self.skip("each"):
                op["each"] = True
            elif not self.hint(hints):
                self.fail("file, comm, mode, each, a hint NAME=VALUE or |")
        if hints:
            op["hints"] = hints

    def file(self) -> int | str:
        """Take the number or the name of a file."""
        word = self.next
        if word[:1].isdigit() and word.isdigit():
            return self.number()
        self.at += 1
        return word

    def check(self, case: Case, places: list[int]) -> None:
        """Refuse what is no legal program, at the call."""
        place = places[0]
        try:
            simulation = Simulation(case)
            for index, op in enumerate(case["ops"]):
                place = places[index + 1]
                simulation.step(index, op)
            place = len(self.text.rstrip())
            simulation.end()
        except Illegal as error:
            call = self.text[place:].split("|")[0].strip()
            self.fail(f"no legal program: {error}: {call or 'the end'}", place)
        except (ValueError, IndexError, AssertionError, KeyError, MemoryError, OverflowError) as error:
            self.fail(f"no type or call that the model knows: {error}", place)


def _number_of(name: str) -> Callable[[Reader, Op], None]:
    def take(reader: Reader, op: Op) -> None:
        op[name] = reader.number()

    return take


def _delete(reader: Reader, op: Op) -> None:
    op["file"] = reader.file()


def _atomicity(reader: Reader, op: Op) -> None:
    op["flag"] = reader.one_of(("on", "off"), "the mode") == "on"


def _query(reader: Reader, op: Op) -> None:
    op["shared"] = reader.skip("shared")


def _posix(reader: Reader, op: Op) -> None:
    op["what"] = reader.one_of(POSIX, "a POSIX call")
    op["file"] = str(reader.file())
    if op["what"] == "rename":
        op["to"] = str(reader.file())
    elif op["what"] == "write":
        op["count"] = reader.number()
        reader.need("@")
        op["at"] = reader.number()


def _kill(reader: Reader, op: Op) -> None:
    op["who"] = reader.next
    if not reader.skip("launcher", "delegates"):
        op["who"] = "ranks"
        op["ranks"] = reader.some_ranks()


def _nothing(reader: Reader, op: Op) -> None:
    """Take nothing: the call has no words."""


CALLS: dict[str, Callable[[Reader, Op], None]] = {
    **dict.fromkeys(ACCESS, Reader.access),
    "view": Reader.view,
    "seek": Reader.whence,
    "seek_shared": Reader.whence,
    "wait": Reader.wait,
    "open": Reader.open,
    "close": _number_of("h"),
    "size": _number_of("bytes"),
    "preallocate": _number_of("bytes"),
    "atomicity": _atomicity,
    "query": _query,
    "sync": _nothing,
    "fence": _nothing,
    "delete": _delete,
    "posix": _posix,
    "kill": _kill,
    "job": _nothing,
    "limit": _number_of("bytes"),
}


def declarations(reader: Reader, text: str, place: int) -> tuple[str, list[Declared]]:
    """Return the word ``except``, ``skip``, ``only`` or ``shows``, and what it declares."""
    found = _DECLARED.fullmatch(text)
    assert found is not None
    kind, names, reason = found.groups()
    variants = [_VARIANT.fullmatch(word) for word in names.replace(",", " ").split()]
    if not variants or None in variants or (kind in ("only", "shows")) != (reason is None) or reason == "":
        reader.fail(
            "expected 'except|skip VARIANT[(openmpi|mpich)]...: REASON', 'only VARIANT...' or 'shows COUNTER...'", place
        )
    reason = " ".join((reason or "").split())
    pairs = [(each.group(1), each.group(2) or "") for each in variants if each]
    return kind, [Declared(variant=name, family=family, reason=reason) for name, family in pairs]


def read(text: str, where: str = "text", line: int = 1, source: str = "") -> Entry:
    """Return the entry of a text; raises CaseError."""
    named = _NAME.match(text)
    reader = Reader(text, where, line)
    begin = named.end() if named else 0
    said: dict[str, list[Declared]] = {"except": [], "skip": [], "only": [], "shows": []}
    kept, end = [], len(text)
    for found in re.finditer(r"[^|]+", text[begin:]):
        place = begin + found.start()
        if _DECLARED.fullmatch(found.group()):
            end = min(end, place)
            kind, more = declarations(reader, found.group(), place + len(found.group()) - len(found.group().lstrip()))
            said[kind] += more
        elif place > end:
            reader.fail("a call behind 'except', 'skip', 'only' or 'shows'", place)
        else:
            kept.append(place)
    reader.words = [(word, place) for word, place in reader.words if begin <= place < end]
    while reader.words and reader.words[-1][0] == "|":
        reader.words.pop()
    case, places = reader.head(), [begin]
    case["ops"] = []
    while reader.at < len(reader.words):
        reader.at += 1
        places.append(reader.words[reader.at][1] if reader.at < len(reader.words) else len(text))
        case["ops"].append(reader.call())
    reader.check(case, places)
    name = " ".join(named.group("name").split()) if named else ""
    return Entry(
        name=name,
        case=case,
        text=" ".join(text[begin:].split()),
        where=f"{where}:{line}",
        source=source,
        excepted=tuple(said["except"]),
        skipped=tuple(said["skip"]),
        only=tuple(each.variant for each in said["only"]),
        shows=tuple(each.variant for each in said["shows"]),
    )


def read_file(path: pathlib.Path) -> list[Entry]:
    """Return the entries of a file; raises CaseError."""
    entries, seen = [], dict[str, str]()
    for line, text, source in _paragraphs(path.read_text("utf-8")):
        entry = read(text, path.name, line, source)
        if not entry.name or entry.name in seen:
            what = f"the name of {seen[entry.name]} again" if entry.name else "expected 'NAME: ranks N ...'"
            raise CaseError(f"{path.name}:{line}:1: {what}")
        seen[entry.name] = entry.where
        entries.append(entry)
    return entries


def keep_failed(entry: Entry, variant: str) -> None:
    """Remember a case that has failed under a variant, for ``run.py --last``."""
    LAST.parent.mkdir(exist_ok=True)
    LAST.write_text(json.dumps({"text": f"{entry.name}: {entry.text}", "variant": variant}), encoding="utf-8")


def last_failed() -> tuple[str, list[str]]:
    """Return the text of the case that was kept last, and its variant."""
    if not LAST.exists():
        raise CaseError(f"{LAST}: no case has failed")
    kept = json.loads(LAST.read_text("utf-8"))
    return kept["text"], [kept["variant"]]


def _rows(text: str) -> Iterator[str]:
    """Yield the entries of a text, one for each of its rows, with as many lines."""
    name, _, body = _ROW.sub("", text).partition(":")
    rows = list(_ROW.finditer(text))
    if rows and "ROW" not in body:
        raise CaseError(f"{name}: has rows, and no ROW where their words go")
    for row in rows:
        yield f"{name}, {row['name']}:{body.replace('ROW', row['words'].strip())}"
    if not rows:
        yield text


def _paragraphs(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield entries: the number of the first line, the text with continuations, the comment above."""
    comment: list[str] = []
    lines: list[str] = []
    first = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if lines and line[:1] != " ":
            for entry in _rows("\n".join(lines)):
                yield first, entry, " ".join(comment)
            lines, comment = [], []
        if line[:1] == "#":
            comment.append(line[1:].strip())
        elif line.strip():
            first = first if lines else number
            lines.append(line)
        else:
            comment = []


# ---- from a case to its text ----------------------------------------------------------------------------------------


def plain(case: Case) -> Case:
    """Return a case as its text tells it: without how it was drawn, and without the number of the first file."""
    kept = {name: value for name, value in case.items() if name not in DRAWN}
    ops = [{k: v for k, v in op.items() if k != "h" or v != 0 or op["op"] in ("open", "close")} for op in case["ops"]]
    return {"big": False, **kept, "strategies": [], "ops": ops}


def _numbers(values: list[int]) -> str:
    """Return a number for each rank as text."""
    if len(set(values)) == 1:
        return str(values[0])
    step = values[1] - values[0]
    if len(values) > 2 and all(value == values[0] + i * step for i, value in enumerate(values)):
        first = f"{values[0]}+" if values[0] else ""
        return f"{first}rank*{step}" if step > 0 else f"{values[0]}-rank*{-step}"
    return ",".join(map(str, values))


def _items(values: list[Any]) -> str:
    """Return a list as text."""
    if len(values) > 3 and len(set(values)) == 1:
        return f"[{len(values)}x{values[0]}]"
    return f"[{' '.join('default' if value == DEFAULT else str(value) for value in values)}]"


def _ranks(flags: list[bool]) -> str:
    """Return ranks as text."""
    return "" if all(flags) else f" {_items([rank for rank, flag in enumerate(flags) if flag])}"


def told_tree(tree: Tree) -> str:
    """Return a type as text."""
    if tree[0] == "named":
        return str(tree[1])
    if constructor(tree) == "struct":
        return f"{tree[0]} {_items(tree[1])} {_items(tree[2])} {{{' '.join(map(told_tree, tree[3]))}}}"
    last = [] if tree[0] in ATOMS else [told_tree(tree[-1])]
    parts = tree[1:] if tree[0] in ATOMS else tree[1:-1]
    return " ".join([tree[0], *(_items(part) if isinstance(part, list) else str(part) for part in parts), *last])


def _trees(trees: list[Tree]) -> str:
    """Return a type for each rank as text."""
    texts = [told_tree(tree) for tree in trees]
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)


def _access(op: Op) -> str:
    """Return a data-access call as text."""
    text = f"{op['op']} {op['how']} {_numbers(op['count'])}"
    if any(tree != BYTE for tree in op["mem"]):
        text += f" {_trees(op['mem'])}"
    if "at" in op:
        text += f" @{_numbers(op['at'])}"
    if "who" in op:
        text += f" by {_items([rank for rank, flag in enumerate(op['who']) if flag])}"
    if any(op["bottom"]):
        text += f" bottom{_ranks(op['bottom'])}"
    if "large" in op:
        text += f" large{_ranks(op['large'])}"
    if "req" in op:
        text += f" as {op['req']}"
    text += " snap" if op.get("snap") else ""
    text += f" threads {op['threads']}" if "threads" in op else ""
    text += f" fill {op['fill']}" if "fill" in op else ""
    return text + (f" verb {','.join(op['verb'])}" if "verb" in op else "")


def told_call(op: Op) -> str:
    """Return a call as text."""
    text = _told_call(op)
    if "but" in op:
        text += f" but {_items([rank for rank, flag in enumerate(op['other']) if flag])} {_told_call(op['but'])}"
    text += f" lost {op['lost'][0]} {op['lost'][1]}" if "lost" in op else ""
    text += f" fails {' or '.join(op['fails'])}" if "fails" in op else ""
    text += " by some" if op.get("some") else ""
    return text + (
        f" by {_items([rank for rank, flag in enumerate(op['failing']) if flag])}" if "failing" in op else ""
    )


def _told_call(op: Op) -> str:
    """Return what one rank calls as text."""
    kind, text = op["op"], str(op["op"])
    if kind in ACCESS:
        text = _access(op)
    elif kind == "view":
        text += f" @{_numbers(op['disp'])} {told_tree(op['etype'])}"
        text += f" {_trees(op['ftype'])}" if any(tree != op["etype"] for tree in op["ftype"]) else ""
        text += f" rep {op['rep']}" if "rep" in op else ""
    elif kind in ("seek", "seek_shared"):
        text += f" {_numbers(op['offset']) if kind == 'seek' else op['offset']}"
        text += f" {op['whence']}" if op["whence"] != "set" else ""
    elif kind == "wait":
        text += f" {' '.join(map(str, op['reqs']))}" + (f" {op['style']}" if op["style"] != "wait" else "")
    elif kind in ("size", "preallocate", "limit"):
        text += f" {op['bytes']}"
    elif kind == "atomicity":
        text += " on" if op["flag"] else " off"
    elif kind == "query":
        text += " shared" if op["shared"] else ""
    elif kind == "delete":
        text += f" {op['file']}"
    elif kind == "posix":
        text += f" {op['what']} {op['file']}"
        text += f" {op['to']}" if op["what"] == "rename" else ""
        text += f" {op['count']} @{op['at']}" if op["what"] == "write" else ""
    elif kind == "kill":
        text += _ranks([*op["ranks"], False]) if op["who"] == "ranks" else f" {op['who']}"
    elif kind == "close":
        return f"close {op['h']}"
    elif kind == "open":
        text += f" {op['h']} file {op['file']} comm {op['comm']} mode {','.join(op['mode'])}"
        text += " each" if op.get("each") else ""
        return text + "".join(f" {name}={value}" for name, value in op.get("hints", {}).items())
    return text + (f" on {op['h']}" if op.get("h", 0) else "")


def told(case: Case) -> str:
    """Return a case as text, whether or not it can be read again."""
    text = f"ranks {case['ranks']}"
    text += "" if case["comm"] == "world" else f" comm {case['comm']}"
    text += "" if case["initial"] < 0 else f" file {case['initial']}"
    text += "" if case["fill"] == "random" else f" fill {case['fill']}"
    text += "".join(f" {name}" for name in FLAGS if case.get(name))
    text += f" mode {','.join(case['mode'])}" if "mode" in case else ""
    text += f" disk {case['disk']}" if "disk" in case else ""
    text += f" fault {case['fault']}" if "fault" in case else ""
    text += "" if case["seed"] == 1 else f" seed {case['seed']}"
    text += "".join(f" {name}={value}" for name, value in case["hints"].items())
    return " | ".join([text, *map(told_call, case["ops"])])


def tell(case: Case) -> str:
    """Return a case as text, or as JSON if the text would not be the same case."""
    text = told(case)
    try:
        same = read(text).case == plain(case)
    except CaseError:
        same = False
    return text if same else json.dumps(case)
