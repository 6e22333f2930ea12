"""The one table of options: name, type, meaning, range and slider of every option of every sampler. It needs no torch.

A preset says which options it takes, and their defaults. The checks of presets, `--set` and its completion, the fields
of a request and the sliders of the live page follow from this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..core.errors import OptionError, SettingError, shown
from ..core.pieces.piece import read_value

DEFAULT_SAMPLER = "certain_first"
"""The sampler of `generate`, the command line and the server where none is named: it needs no setting per task."""
DEFAULT_LENGTH = 96
"""Tokens of an answer where no length is given."""

Algorithm = Literal["origin", "maskgit_plus", "topk_margin", "entropy"]
Cache = Literal["auto", "none", "prefix", "dual", "window", "window-never"]
Delimiter = Literal["newline", "period", "comma"]
Proxy = Literal["confidence", "entropy", "margin"]
Remasking = Literal["low_confidence", "random"]
Special = Literal["unseen", "neutral", "counted"]

Range = tuple[Callable[[float], bool], str]
AT_LEAST_0: Range = (lambda value: value >= 0, "at least 0")
AT_LEAST_1: Range = (lambda value: value >= 1, "at least 1")
FROM_1_TO_64: Range = (lambda value: 1 <= value <= 64, "from 1 to 64")
FROM_2_TO_64: Range = (lambda value: 2 <= value <= 64, "from 2 to 64")
ABOVE_0: Range = (lambda value: value > 0, "above 0")
INSIDE: Range = (lambda value: 0 < value < 1, "above 0 and below 1")
FROM_MINUS_2_TO_2: Range = (lambda value: -2 <= value <= 2, "from -2 to 2")
BELOW_1: Range = (lambda value: 0 <= value < 1, "at least 0 and below 1")
FROM_0_TO_1: Range = (lambda value: 0 <= value <= 1, "from 0 to 1")
UP_TO_1: Range = (lambda value: 0 < value <= 1, "above 0 and at most 1")

LENGTH = None
"""As the end of a slider: the number of tokens to generate."""


@dataclass(frozen=True)
class Option:
    """One option; as an option of a preset, with its default there."""

    name: str
    type: Any
    """int, float, bool or a Literal; None for a frequency table."""
    meaning: str
    range: Range | None = None
    """What a number may be."""
    slider: tuple[float, float | None, float] | None = None
    """First value, last value and step of a number's slider. Other values can be typed."""
    can_be_none: bool = False
    """Whether every sampler takes None. One whose default is None takes it too."""
    default: Any = None
    """In the table, that of a shared option where a preset names none."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it takes, where it takes words."""
        return get_args(self.type)

    @property
    def written_default(self) -> str:
        """The default as TOML and `--set` write it."""
        return self.default if isinstance(self.default, str) else str(self.default).lower()

    def read(self, value: Any, where: str = "") -> Any:
        """A value from code, `--set`, TOML or JSON ("none" is None there), or an error that names the option."""
        if self.type is None:
            return value
        where = where or self.name
        optional = self.can_be_none or self.default is None
        try:
            found = read_value(value, self.type | None if optional else self.type, where)
        except SettingError as error:
            raise OptionError(str(error), self.name) from None
        if self.range is not None and found is not None:
            fits, words = self.range
            if not fits(found):
                raise OptionError(f"{where} must be {words}, not {shown(found)}.", self.name)
        return found


# fmt: off
_ROWS = (
    Option("alg", Algorithm, "Dream's algorithm: origin, maskgit_plus, topk_margin or entropy"),
    Option("alg_temp", float, "temperature of the order: Gumbel noise on the ranking",
           AT_LEAST_0, (0, 2, 0.05), can_be_none=True),
    Option("anchor", float, "probability from which a committed position lowers the bar for its neighbours",
           UP_TO_1, (0.05, 1, 0.05)),
    Option("answer_length", int, "tokens of the answer", AT_LEAST_1, (1, 64, 1)),
    Option("answer_start", int, "offset at which the answer stands; none: every mask that proposes text",
           AT_LEAST_0, (0, LENGTH, 1), can_be_none=True),
    Option("block_length", int, "tokens in a block; none: one block", AT_LEAST_1, (1, LENGTH, 1), can_be_none=True),
    Option("blocks", int, "number of blocks, filled from left to right", AT_LEAST_1, (1, LENGTH, 1)),
    Option("boost", float, "exponent of the probability that a token gains as credit", AT_LEAST_0, (0, 1, 0.05)),
    Option("budget", float, "summed entropy of the masks before a position, in nats, up to which it is open",
           AT_LEAST_0, (0, 10, 0.1)),
    Option("cache", Cache, "KV cache: none, prefix, dual, window or, never refreshed, window-never; auto: prefix where "
           "the model has one, else none; without blocks, prefix and dual save only the prompt, and windows slide",
           default="none"),
    Option("candidates", int, "positions that are tried in probes", FROM_2_TO_64, (2, 32, 1)),
    Option("clip", float, "upper bound of the informativeness -log p (the paper's alpha)",
           ABOVE_0, (0.5, 20, 0.5), can_be_none=True),
    Option("confidence_eos_eot_inf", bool, "commit positions that propose an EOS token last"),
    Option("count", int, "tokens that are taken back and written again at a time; saber: least tokens committed per "
           "step", AT_LEAST_1, (1, LENGTH, 1)),
    Option("decay", float, "share of a credit that is left after a step", UP_TO_1, (0.05, 1, 0.05)),
    Option("delimiter", Delimiter, "the token that ends a block: newline, period or comma"),
    Option("delimiter_threshold", float, "least probability of the delimiter that ends a block",
           UP_TO_1, (0.05, 1, 0.05)),
    Option("draft_steps", int, "most steps that one forward makes, so many times wider; the tokens stay the same; for "
           "samplers of one token a step", FROM_1_TO_64, (1, 8, 1), default=1),
    Option("drift", float, "KL divergence from the step before, in nats, below which a position is stable",
           ABOVE_0, (0.001, 0.1, 0.001)),
    Option("early", float, "gap of the two largest logits that ends a decode in the first third of its steps",
           AT_LEAST_0, (0, 20, 0.5)),
    Option("edit_threshold", float, "probability above which another token overwrites a standing one",
           BELOW_1, (0, 0.95, 0.05)),
    Option("eos_factor", float, "factor on the confidence of EOS at a block's first step; it rises to 1 at the last",
           UP_TO_1, (0.05, 1, 0.05)),
    Option("eps", float, "share of masks left at the last time step of Dream's schedule", INSIDE, (0.001, 0.1, 0.001)),
    Option("every", int, "steps from one revision to the next", AT_LEAST_1, (1, 64, 1)),
    Option("factor", float, "bound on (n + 1) * (1 - confidence of the n-th token)", ABOVE_0, (0.1, 4, 0.1)),
    Option("frequency", None, "frequency table: a file or a name (--frequency); default: the model's own"),
    Option("frequency_penalty", float, "subtracted from a token's logit for each time that the answer has it",
           FROM_MINUS_2_TO_2, (-2, 2, 0.1), default=0.0),
    Option("gamma", float, "error budget in nats: the sum of entropies less their maximum", AT_LEAST_0, (0, 1, 0.01)),
    Option("history", int, "steps for which a position must be stable", AT_LEAST_1, (1, 10, 1)),
    Option("informativeness", bool, "whether to use the informativeness prior"),
    Option("late", float, "the same in the last third", AT_LEAST_0, (0, 20, 0.5)),
    Option("logits_eos_inf", bool, "never propose EOS"),
    Option("loops", int, "rounds of remasking", AT_LEAST_0, (0, 64, 1)),
    Option("low", float, "least probability of the best position in a run of masks", BELOW_1, (0, 0.95, 0.05)),
    Option("middle", float, "the same in the second third", AT_LEAST_0, (0, 20, 0.5)),
    Option("min_p", float, "draw among tokens with this share of the largest probability; none: all",
           FROM_0_TO_1, (0, 1, 0.05), can_be_none=True),
    Option("neighbour", float, "bar for the neighbours of an anchor", UP_TO_1, (0.05, 1, 0.05)),
    Option("position_temperature", float, "temperature of the draw of candidates", ABOVE_0, (0.05, 2, 0.05)),
    Option("presence_penalty", float, "subtracted from the logit of a token that the answer has",
           FROM_MINUS_2_TO_2, (-2, 2, 0.1), default=0.0),
    Option("proxy", Proxy, "uncertainty to calibrate: confidence, entropy or margin"),
    Option("radius", int, "columns on each side of an anchor", AT_LEAST_1, (1, 32, 1)),
    Option("rate", float, "decay of the positional prior per token (the paper's lambda); 0: no positional prior",
           AT_LEAST_0, (0, 1, 0.01)),
    Option("ratio", float, "share of the tokens that are written before remasking begins", UP_TO_1, (0.025, 1, 0.025)),
    Option("remasking", Remasking, "order inside a block: low_confidence or random"),
    Option("repetition_penalty", float, "divides the positive logits of tokens that the prompt or the answer has, and "
           "multiplies the negative ones", ABOVE_0, (0.5, 2, 0.05), default=1.0),
    Option("rounds", int, "most forwards on a full block", AT_LEAST_0, (1, 64, 1)),
    Option("sigma", float, "width of the Gaussian around a position, in tokens", ABOVE_0, (0.5, 50, 0.5)),
    Option("special", Special, "weight of EOS tokens: unseen (the clip), neutral (the mean) or counted (as the table "
           "says)"),
    Option("start", float, "share of a block's steps after which remasking begins", INSIDE, (0.025, 0.975, 0.025)),
    Option("steps", int, "forwards in all; none: one token a forward", AT_LEAST_1, (1, LENGTH, 1), can_be_none=True),
    Option("strength", float, "weight of the credit in the logits", AT_LEAST_0, (0, 2, 0.05)),
    Option("tau", int, "tokens per forward", AT_LEAST_1, (1, LENGTH, 1)),
    Option("temperature", float, "temperature of the proposed tokens; 0: the most probable one",
           AT_LEAST_0, (0, 2, 0.05), default=0.0),
    Option("threshold", float, "commit every position that reaches this probability, or this score",
           UP_TO_1, (0.05, 1, 0.05)),
    Option("top_k", int, "draw among the k most probable tokens; none: all", AT_LEAST_1, (1, 100, 1), can_be_none=True),
    Option("top_p", float, "draw among the most probable tokens with this total probability; none: all",
           UP_TO_1, (0.05, 1, 0.05), can_be_none=True),
    Option("window", int, "masks that are open, from the first one on: a window that slides instead of blocks; none: "
           "blocks", AT_LEAST_1, (1, LENGTH, 1), can_be_none=True),
    Option("window_columns", int, "most columns of the window; none: as many as it needs for its masks",
           AT_LEAST_1, (1, LENGTH, 1), can_be_none=True),
)
# fmt: on
OPTIONS = {row.name: row for row in _ROWS}
PENALTIES = ("frequency_penalty", "presence_penalty", "repetition_penalty")
SHARED = ("block_length", "cache", "draft_steps", "min_p", *PENALTIES, "temperature", "top_k", "top_p", "window")
"""The options that every sampler takes, a saved one too: they change its blocks, its cache, its proposal, its penalties
and how many steps a forward makes."""
