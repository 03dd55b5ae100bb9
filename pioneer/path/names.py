"""Rank fields in file names: which digits of a private file's name are the rank of the process that uses it.

Problem.   The private files of two ranks are the same file of the workload path; only a number in their names differs
           (He, Du, Narasimhamurthy, "PIONEER", section V-B, removes a suffix). Programs put the rank anywhere in the
           name (``cm1out_000030_000001_s.dat``), several times (``/out/3/part.3``), counted from 0 or from 1; other
           numbers in the name, time steps for one, may be equal to the rank by chance. Other ranks may access these
           files: neighbours read them, the root renames or removes them all.
Algorithm. A file is private if one rank alone has done the most to it: written it, else made it, else opened it, else
           used it. Only the name of a private file can have a rank field. Each of its numbers that equals the rank, or
           each that equals the rank plus 1, may be one. Every choice of such numbers gives a template, which counts if
           two ranks have come to it. Among those the choice wins that is possible for most names which differ in their
           numbers only: a time step is equal to the rank now and then, a rank field always is. If several choices
           remain, the choice with most fields wins. Another rank's use of such a file is a reference. Where several
           ranks look at files at one distance, and fewer at this file, it is to the file of a rank that is so far away.
           ``{rank~1}`` is the next rank's, ``{rank~-1}`` that of the one before, the first following the last.
           Otherwise it is a reference to the file of one rank (``{rank=3}``). In a replay with fewer ranks this number
           is reckoned modulo the number of ranks, so that the file exists. In a replay with more ranks it is the same
           rank. A rank makes as many calls as it did, whatever the number of ranks, so no rank inspects files of
           further ranks.
Parts.     A file that some ranks have opened on a communicator of theirs may have its number in its name, or that of
           its first rank: ``half.{rank//2}``, ``half.{rank//2*2}``, ``pair.{rank%2}`` (`communicator_template`).
Guarantee. Applying a template to the rank gives the name back, digit by digit.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mpiio_ext.pioneer.path.rules import Rule

_NUMBER = re.compile(r"\d+")
#: Kinds of use of a file by a rank, the weakest first.
LOOKED, OPENED, MADE, WRITTEN = range(4)
_Used = Iterable[str] | Mapping[str, int]

_FIELD = re.compile(
    r"\{\{|\}\}|\{rank(?P<other>~(?P<apart>-?\d+)|=(?P<one>\d+))?"
    r"(?P<part>//(?P<block>[1-9]\d*)(?P<first>\*(?P=block))?|%(?P<every>[1-9]\d*))?"
    r"(?:\+(?P<plus>\d+))?(?::0(?P<width>\d+))?\}"
)
_WIDTH = re.compile(r":0\d+\}")
_BASES = (0, 1)
#: Most numbers of a name that are tried as rank fields; the last ones, which are the likeliest.
_MOST_FIELDS = 6


@dataclass(frozen=True, slots=True)
class Template:
    """A file name with rank fields: ``out_{rank:06}.dat``, ``part.{rank+1}``; braces of the name are doubled.

    A name without rank fields is a template, too, which gives the same name for every rank. ``part.{rank~1}`` is the
    file of the next rank, ``part.{rank=3}`` that of rank 3. ``half.{rank//2}`` is the file of two consecutive ranks,
    ``half.{rank//2*2}`` the same file named after the first of them, ``pair.{rank%2}`` the file of the even ranks or of
    the odd ones.
    """

    text: str

    @property
    def has_rank(self) -> bool:
        """Whether each rank has a name of its own."""
        return any(
            match[0] not in ("{{", "}}") and not match["one"] and not match["part"]
            for match in _FIELD.finditer(self.text)
        )

    @property
    def of_part(self) -> bool:
        """Whether it is the file of several ranks that are in a communicator."""
        return not self.has_rank and any(match["part"] for match in _FIELD.finditer(self.text))

    @property
    def refers(self) -> bool:
        """Whether it is the file of another rank."""
        return any(match["other"] for match in _FIELD.finditer(self.text))

    @property
    def own(self) -> Template:
        """The template by which each rank has such a file of its own."""
        return Template(_FIELD.sub(lambda match: match[0].replace(match["other"] or "", ""), self.text))

    def to(self, other: str) -> Template:
        """Return a reference to the file of another rank: "~1", "=3"."""
        return Template(_FIELD.sub(lambda match: match[0].replace("{rank", f"{{rank{other}"), self.text))

    def name(self, rank: int, ranks: int | None = None) -> str:
        """Return the name that a rank uses.

        Parameters
        ----------
        rank : whose name.
        ranks : how many there are; None: not known, and references are not reckoned modulo their number.

        Raises
        ------
        ValueError
            The text is no template: a brace that is neither doubled nor part of a field.
        """

        def value(match: re.Match[str]) -> str:
            if match[0] in ("{{", "}}"):
                return match[0][0]
            whose = int(match["one"]) if match["one"] else rank + int(match["apart"] or 0)
            whose = max(0, whose) if not ranks or not match["other"] else whose % ranks
            if match["block"]:
                whose = whose // int(match["block"]) * (int(match["block"]) if match["first"] else 1)
            elif match["every"]:
                whose %= int(match["every"])
            return str(whose + int(match["plus"] or 0)).zfill(int(match["width"] or 0))

        rest = _FIELD.sub("", self.text)
        if "{" in rest or "}" in rest:
            raise ValueError(f"{self.text!r} is no file name with rank fields: braces of the name itself are doubled")
        return _FIELD.sub(value, self.text)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _field(digits: str, base: int) -> str:
    width = f":0{len(digits)}" if len(digits) > 1 and digits[0] == "0" else ""
    return f"{{rank{f'+{base}' if base else ''}{width}}}"


def _template(name: str, numbers: Iterable[re.Match[str]], base: int) -> str:
    parts, end = [], 0
    for number in numbers:
        parts += [_escaped(name[end : number.start()]), _field(number[0], base)]
        end = number.end()
    return "".join([*parts, _escaped(name[end:])])


@dataclass(frozen=True, slots=True)
class _Choice:
    """Numbers of a private name that may be its rank.

    Attributes
    ----------
    skeleton : the name without its numbers.
    places : which of its numbers.
    base : what is added to the rank.
    template : the name with fields in place of these numbers, as far as this name shows their widths.
    plain : the same without widths, which long numbers do not show: 7 of 007 and 1234 are fields alike.
    """

    skeleton: str
    places: tuple[int, ...]
    base: int
    template: str
    plain: str

    @property
    def family(self) -> tuple[str, tuple[int, ...], int]:
        """Names of one family differ in other numbers only: time steps for one."""
        return self.skeleton, self.places, self.base


def _choices(name: str, rank: int) -> Iterator[_Choice]:
    numbers = list(_NUMBER.finditer(name))
    skeleton = _NUMBER.sub("#", name)
    for base in _BASES:
        equal = [place for place, number in enumerate(numbers) if int(number[0]) == rank + base][-_MOST_FIELDS:]
        for count in range(1, len(equal) + 1):
            for places in itertools.combinations(equal, count):
                text = _template(name, [numbers[place] for place in places], base)
                yield _Choice(skeleton, places, base, text, _WIDTH.sub("}", text))


def _levels(used: _Used) -> Mapping[str, int]:
    """Return the strongest kind of use that a rank has made of each file."""
    return used if isinstance(used, Mapping) else dict.fromkeys(used, LOOKED)


def _owners(names: Mapping[int, _Used]) -> dict[str, int | None]:
    """Return the rank that has done the most to each file, None where several have."""
    most: dict[str, tuple[int, int | None]] = {}
    for rank, used in names.items():
        for name, level in _levels(used).items():
            known = most.get(name)
            if known is None or level > known[0]:
                most[name] = level, rank
            elif level == known[0]:
                most[name] = level, None
    return {name: rank for name, (_, rank) in most.items()}


def _chosen(private: Mapping[str, int]) -> dict[str, _Choice]:
    """Return the likeliest choice for each private name that has one."""
    members: Counter[tuple[str, tuple[int, ...], int]] = Counter()
    ranks: dict[str, set[int]] = defaultdict(set)
    choices = {name: list(_choices(name, rank)) for name, rank in private.items()}
    for name, several in choices.items():
        for choice in several:
            members[choice.family] += 1
            ranks[choice.plain].add(private[name])
    found = {}
    for name, several in choices.items():
        shared = [choice for choice in several if len(ranks[choice.plain]) > 1]
        if shared:
            found[name] = max(shared, key=lambda choice: (members[choice.family], len(choice.places), -choice.base))
    return found


def _agreed(counted: str, texts: set[str]) -> str | None:
    """Return one template that gives all names back which these do: short numbers show the width, long ones do not."""
    widths = [[match["width"] for match in _FIELD.finditer(text) if match[0] not in ("{{", "}}")] for text in texts]
    merged = []
    for column in zip(*widths, strict=True):
        shown = {width for width in column if width is not None}
        if len(shown) > 1:
            return None
        merged.append(next(iter(shown), None))
    fields = iter(merged)

    def put(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0]
        width = next(fields)
        return match[0] if width is None else f"{match[0][:-1]}:0{width}}}"

    return _FIELD.sub(put, counted)


def find_templates(names: Mapping[int, _Used]) -> dict[str, Template]:
    """Return the template of every file name, as the rank whose file it is uses it.

    Parameters
    ----------
    names : the names that each rank has used, perhaps with what it has done to them (`WRITTEN` and so on); a rank that
        is missing has not been traced. Two ranks are enough.
    """
    owners = _owners(names)
    private = {name: rank for name, rank in owners.items() if rank is not None}
    templates: dict[str, dict[str, str]] = defaultdict(dict)
    for name, choice in _chosen(private).items():
        templates[choice.plain][name] = choice.template
    found = {name: Template(_escaped(name)) for name in owners}
    for plain, members in templates.items():
        agreed = _agreed(plain, set(members.values()))
        if agreed is None:
            continue
        template = Template(agreed)
        if len(members) > 1 and all(template.name(private[name]) == name for name in members):
            found.update(dict.fromkeys(members, template))
    return found


# ---- files of communicators ------------------------------------------------------------------------------------------


def _width(digits: Sequence[str]) -> str:
    """Return the form of a field for numbers that are filled up with zeros; empty: they are not."""
    return next((f":0{len(text)}" for text in digits if len(text) > 1 and text[0] == "0"), "")


def communicator_template(opens: Mapping[str, Sequence[int]], rule: Rule) -> dict[str, Template] | None:
    """Return the templates of files whose names identify the communicator of their opens; None: they do not.

    Parameters
    ----------
    opens : members of the communicator by file; the names differ in their numbers only.
    rule : of the communicators.
    """
    if rule.kind not in ("blocks", "every") or not opens:
        return None
    k = rule.size
    fields = {"blocks": (f"//{k}", f"//{k}*{k}"), "every": (f"%{k}",)}[rule.kind]
    numbers = {name: list(_NUMBER.finditer(name)) for name in opens}
    best: list[tuple[int, str]] = []
    for part, base in itertools.product(fields, _BASES):
        wanted = {name: int(Template(f"{{rank{part}+{base}}}").name(min(ranks))) for name, ranks in opens.items()}
        places = [
            place
            for place in range(len(next(iter(numbers.values()))))
            if all(int(found[place][0]) == wanted[name] for name, found in numbers.items())
        ]
        if len(places) > len(best):
            plus = f"+{base}" if base else ""
            widths = [_width([found[place][0] for found in numbers.values()]) for place in places]
            best = [(place, f"{{rank{part}{plus}{width}}}") for place, width in zip(places, widths, strict=True)]
    templates = {name: _with_fields(name, numbers[name], dict(best)) for name in opens}
    fitting = all(templates[name].name(rank) == name for name, ranks in opens.items() for rank in ranks)
    return templates if best and fitting else None


def _with_fields(name: str, numbers: Sequence[re.Match[str]], fields: Mapping[int, str]) -> Template:
    """Return a name in which some of its numbers are fields."""
    parts, end = [], 0
    for place, field in sorted(fields.items()):
        parts += [_escaped(name[end : numbers[place].start()]), field]
        end = numbers[place].end()
    return Template("".join([*parts, _escaped(name[end:])]))


def _of_parts(
    used: Iterable[str], rank: int, parts: Mapping[str, Template], members: Mapping[str, Sequence[int]]
) -> dict[str, Template]:
    """Return the templates of the files of communicators that a rank has used; those of others are references."""
    return {
        name: parts[name] if parts[name].name(rank) == name else parts[name].to(f"={min(members[name])}")
        for name in used
        if name in parts
    }


def templates_by_rank(
    names: Mapping[int, _Used],
    ranks: int = 0,
    parts: Mapping[str, Template] | None = None,
    members: Mapping[str, Sequence[int]] | None = None,
) -> dict[int, dict[str, Template]]:
    """Return for each rank the template of every name that it has used; of others' files these are references.

    Parameters
    ----------
    names : as of `find_templates`.
    ranks : of the program; 0: not known.
    parts, members : templates of files that were opened on communicators of a part of the ranks, and who these are.
    """
    of_parts = {rank: _of_parts(used, rank, parts or {}, members or {}) for rank, used in names.items()}
    if parts:
        names = {
            rank: {name: level for name, level in _levels(used).items() if name not in parts}
            for rank, used in names.items()
        }
    found = _templates_by_rank(names, ranks)
    return {rank: own | of_parts[rank] for rank, own in found.items()}


def _templates_by_rank(names: Mapping[int, _Used], ranks: int) -> dict[int, dict[str, Template]]:
    """Return the templates of files without the fields that communicators give."""
    own, owners = find_templates(names), _owners(names)
    count = max(ranks, 1 + max(names, default=0))
    found = {rank: {name: own[name] for name in used} for rank, used in names.items()}
    others = [
        (rank, name, owner)
        for rank, used in names.items()
        for name in used
        if own[name].has_rank and (owner := owners[name]) is not None and owner != rank
    ]
    at_file = Counter((own[name].text, owner) for _, name, owner in others)
    at_distance = Counter((own[name].text, (owner - rank) % count) for rank, name, owner in others)
    for rank, name, owner in others:
        apart = (owner - rank) % count
        several = at_distance[own[name].text, apart] > at_file[own[name].text, owner]
        nearest = apart - count if 2 * apart > count else apart
        found[rank][name] = own[name].to(f"~{nearest}" if several else f"={owner}")
    return found
