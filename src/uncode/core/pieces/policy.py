"""Policy and sampler: everything that decides the order and the tokens, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from ..errors import require
from ..support.above import from_above
from . import branches as branches  # noqa: PLC0414  # its pieces have names once it is imported
from .blocks import Blocks, BlockSchedule
from .cache import CachePolicy, NoCache
from .piece import Piece, brief
from .propose import Adjust, Greedy, Proposal
from .remask import Editor, Never, Remasker
from .sampler_file import read_toml, to_toml
from .score import Score
from .select import Selector, TopK
from .stop import AtTheEnd, Stop
from .tables import FrequencySource

LONGEST_REPR = 100
"""Characters of a repr."""
MAX_DRAFT_STEPS = 64
"""Canvases that one forward computes of a row."""


def one_line(start: str, parts: list[Piece]) -> str:
    """Pieces in brackets after `start`, in at most :data:`LONGEST_REPR` characters."""
    for settings in (True, False):
        text = start + ", ".join(brief(part, settings) for part in parts) + ")"
        if len(text) <= LONGEST_REPR:
            return text
    return text[: LONGEST_REPR - 4] + "...)"


def unusual(whole: Piece, names: tuple[str, ...]) -> list[Piece]:
    """The parts of a piece that are not its defaults."""
    made = {field.name: field.default_factory for field in fields(whole)}
    parts = ((name, getattr(whole, name)) for name in names)
    return [part for name, part in parts if part != made[name]()]  # type: ignore[operator]


@dataclass(frozen=True)
class Policy(Piece):
    """The rules that decide the order: which positions are filled when. It reads beliefs and offsets, never logits."""

    score: Score
    select: Selector = field(default_factory=TopK)
    blocks: BlockSchedule = field(default_factory=Blocks)
    remask: Remasker = field(default_factory=Never)
    stop: Stop = field(default_factory=AtTheEnd)
    edit: Editor | None = None

    def check(self) -> None:
        ends, revises = type(self.stop).__name__, type(self.edit or self.remask).__name__
        require(
            not (self.stop.sees_beliefs and self.revises),
            f"{ends} ends a row by committing all of it, so {revises} can take nothing back: leave out one of the two.",
        )
        require(
            not (self.stop.overwrites and self.revises),
            f"{ends} writes over tokens, and so does {revises}: leave out one of the two.",
        )
        finds, shares = type(self.blocks).__name__, type(self.select).__name__
        require(
            not (self.blocks.sees_beliefs and self.select.has_schedule),
            f"{finds} finds its blocks while it decodes, so {shares} cannot share its steps among them: select without "
            "a schedule, Threshold(1.0) say.",
        )
        if not self.select.has_schedule:
            for piece in self.pieces():
                needs, lacks = type(piece).__name__, type(self.select).__name__
                require(
                    not piece.needs_schedule,
                    f"{needs} needs a number of steps, and {lacks} has none: select with a schedule, TopK(Even()) say.",
                )

    @property
    def revises(self) -> bool:
        """Whether tokens that were written may be taken back or overwritten."""
        return self.remask.erases or self.edit is not None

    @property
    def parts(self) -> list[Piece]:
        """Score and selector, and what else is not the default."""
        edit = [] if self.edit is None else [self.edit]
        return [self.score, self.select, *unusual(self, ("blocks", "remask", "stop")), *edit]

    def __repr__(self) -> str:
        return one_line("Policy(", self.parts)


@dataclass(frozen=True)
class Sampler(Piece):
    """A policy, a proposal, a cache and a limit: everything but the model, the canvas and the seed."""

    per_row: ClassVar[tuple[str, ...]] = ("adjust",)

    policy: Policy
    propose: Proposal = field(default_factory=Greedy)
    cache: CachePolicy = field(default_factory=NoCache)
    limit: int | None = None
    """Most steps a row may take, each with its probes; None is eight times its masks and 64 more."""
    name: str = "custom"
    draft_steps: int = 1
    """Most steps that one forward makes. More than one takes a sampler whose next steps can be foreseen."""
    adjust: Adjust = field(default_factory=Adjust)
    """What is added to the logits: a bias, and penalties of tokens that stand in the row."""

    def __repr__(self) -> str:
        return one_line(
            f"Sampler('{self.name}': ", [*self.policy.parts, *unusual(self, ("propose", "cache", "adjust"))]
        )

    def _repr_html_(self) -> str:
        """For notebooks: all pieces with all settings, defaults too."""
        return str(from_above("sampler_html")(self))

    def check(self) -> None:
        require(self.limit is None or self.limit >= 1, f"the limit must be at least 1 forward, not {self.limit}.")
        names = [buffer.name for piece in self.pieces() for buffer in piece.buffers()]
        twice = [name for at, name in enumerate(names) if name in names[:at]]
        require(not twice, f"two pieces of a sampler remember '{twice[0] if twice else ''}': use one of them.")
        fits = 1 <= self.draft_steps <= MAX_DRAFT_STEPS
        require(fits, f"draft_steps must be from 1 to {MAX_DRAFT_STEPS}, not {self.draft_steps}.")
        if self.draft_steps > 1:
            piece, what = next(self._unforeseen(), ("", ""))
            require(
                not piece,
                f"draft_steps={self.draft_steps} needs steps that can be foreseen, and {piece} {what}: set it to 1, or "
                f"change {piece}.",
            )

    def _unforeseen(self) -> Iterator[tuple[str, str]]:
        """The pieces because of which the next steps do not follow from what the last one believed, and why."""
        policy = self.policy
        if not policy.select.commits_one:
            yield type(policy.select).__name__, "may commit more than one token a step"
        if policy.revises:
            yield type(policy.edit or policy.remask).__name__, "changes tokens that were written"
        if policy.stop.sees_beliefs:
            yield type(policy.stop).__name__, "ends a row by its beliefs"
        if policy.stop.overwrites:
            yield type(policy.stop).__name__, "writes behind masks that stay open"
        if not isinstance(policy.blocks, Blocks):
            yield type(policy.blocks).__name__, "has blocks that are not known beforehand"
        if not self.cache.stores_once:
            yield type(self.cache).__name__, "stores keys and values more than once a block"
        for piece in (part for whole in (policy, self.propose, self.cache) for part in whole.pieces()):
            remembers = bool(piece.buffers()) or piece.needs_drift
            reasons = {"draws at random": piece.draws, "remembers earlier steps": remembers}
            reasons |= {"runs probes": piece.max_probes > 0, "differs from row to row": bool(piece.per_row)}
            yield from ((type(piece).__name__, reason) for reason, holds in reasons.items() if holds)

    @property
    def max_probes(self) -> int:
        return sum(piece.max_probes for part in (self.policy, self.propose, self.cache) for piece in part.pieces())

    def to_dict(self) -> dict[str, Any]:
        data = super().to_dict()
        del data["piece"], data["policy"]["piece"], data["adjust"]["piece"]
        if self.adjust == Adjust():  # as in files that know no such setting
            del data["adjust"]
        if self.draft_steps == 1:  # as in files that know no other number
            del data["draft_steps"]
        return data

    def to_toml(self) -> str:
        """The sampler as TOML, complete: :meth:`from_toml` gives an equal one."""
        return to_toml(self.to_dict())

    @classmethod
    def from_toml(
        cls, text: str, *, frequency: FrequencySource | None = None, name: str = "the sampler file"
    ) -> Sampler:
        """The sampler that :meth:`to_toml` wrote; errors name the line, and the file by `name`. `frequency` is as in
        :meth:`from_dict`."""
        sampler: Sampler = read_toml(text, lambda data: cls.from_dict(data, frequency=frequency), name)
        return sampler

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a sampler file (TOML) that :meth:`load`, `--sampler` and `sampler=` read, whole or not at all. A file
        that is no sampler file is replaced with `force` alone; links stay links."""
        from_above("save_text")(path, self.to_toml(), "sampler file", force)

    @classmethod
    def load(cls, path: str | Path, *, frequency: FrequencySource | None = None) -> Sampler:
        """The sampler in a sampler file; `frequency` is the table that the file names, where it names one."""
        text = from_above("load_text")(path, "sampler file")
        return cls.from_toml(text, frequency=frequency, name=f"'{path}'")

    def stopping(self, stop: Stop) -> Sampler:
        """The same sampler with another stop rule in the place of `AtTheEnd` and `AfterEos`, and beside any other."""
        return replace(self, policy=replace(self.policy, stop=self.policy.stop.followed_by(stop)))

    def biasing(self, bias: Mapping[int, float]) -> Sampler:
        """The same sampler with a bias: by token id, what is added to its logits."""
        return replace(self, adjust=self.adjust.biasing(bias))

    def caching(self, cache: CachePolicy) -> Sampler:
        """The same sampler with another cache policy."""
        return replace(self, cache=cache)
