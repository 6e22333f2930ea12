"""The names, options and sources of all samplers, read from their source files without importing torch.

The command line lists samplers, completes their names and refuses a misspelt one at once. Importing the presets
themselves takes seconds, because they need torch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Any

from ..core.errors import UncodeError, require, shown, suggest

PRESET_FILES = ("classic", "newer", "own")
"""The modules of `presets`, in the order in which they are listed."""
DEFAULT_SAMPLER = "certain_first"
"""The sampler of `decode`, `demo` and the server where none is named: it needs no setting per task."""
MEANING = {
    "alg": "Dream's algorithm: origin, maskgit_plus, topk_margin or entropy",
    "alg_temp": "temperature of the order: Gumbel noise on the ranking",
    "anchor": "probability from which a committed position lowers the bar for its neighbours",
    "answer_length": "tokens of the answer",
    "answer_start": "offset at which the answer stands; none: every mask that proposes text",
    "block_length": "tokens in a block; none: one block",
    "blocks": "number of blocks, filled from left to right",
    "boost": "exponent of the probability that a token gains as credit",
    "budget": "summed entropy of the masks before a position, in nats, up to which it is open",
    "cache": "KV cache: none, prefix or dual; auto: prefix where the model has one, else none",
    "candidates": "positions that are tried in a probe each",
    "clip": "upper bound of the informativeness -log p (the paper's alpha)",
    "confidence_eos_eot_inf": "commit positions that propose an EOS token last",
    "count": "tokens that are taken back and written again at a time; saber: least tokens committed per step",
    "decay": "share of a credit that is left after a step",
    "delimiter": "the token that ends a block: newline, period or comma",
    "delimiter_threshold": "least probability of the delimiter that ends a block",
    "drift": "KL divergence from the step before, in nats, below which a position is stable",
    "early": "gap of the two largest logits that ends a decode in the first third of its steps",
    "edit_threshold": "probability above which another token overwrites a standing one",
    "eps": "share of masks left at the last time step of Dream's schedule",
    "factor": "bound on (n + 1) * (1 - confidence of the n-th token)",
    "frequency": "frequency table: a file or a name (--frequency); default: the model's own",
    "gamma": "error budget in nats: the sum of entropies less their maximum",
    "history": "steps for which a position must be stable",
    "informativeness": "whether to use the informativeness prior",
    "late": "the same in the last third",
    "logits_eos_inf": "never propose EOS",
    "loops": "rounds of remasking",
    "low": "least probability of the best position in a run of masks",
    "middle": "the same in the second third",
    "neighbour": "bar for the neighbours of an anchor",
    "position_temperature": "temperature of the draw of candidates",
    "proxy": "uncertainty to calibrate: confidence, entropy or margin",
    "radius": "columns on each side of an anchor",
    "rate": "decay of the positional prior per token (the paper's lambda); 0: no positional prior",
    "ratio": "share of the tokens that are written before remasking begins",
    "remasking": "order inside a block: low_confidence or random",
    "rounds": "most forwards on a full block",
    "sigma": "width of the Gaussian around a position, in tokens",
    "special": "weight of EOS tokens: unseen (the clip), neutral (the mean) or counted (as the table says)",
    "start": "share of a block's steps after which remasking begins",
    "steps": "forwards in all; none: one token a forward",
    "strength": "weight of the credit in the logits",
    "tau": "tokens per forward",
    "temperature": "temperature of the proposed tokens; 0: the most probable one",
    "threshold": "commit every position that reaches this probability, or this score",
    "top_k": "draw among the k most probable tokens; none: all",
    "top_p": "draw among the most probable tokens with this total probability; none: all",
}
"""What each option does. A test holds that no option is missing."""
Range = tuple[Callable[[float], bool], str]
_AT_LEAST_0: Range = (lambda value: value >= 0, "at least 0")
_AT_LEAST_1: Range = (lambda value: value >= 1, "at least 1")
_CANDIDATES: Range = (lambda value: 2 <= value <= 64, "from 2 to 64")
_ABOVE_0: Range = (lambda value: value > 0, "above 0")
_INSIDE: Range = (lambda value: 0 < value < 1, "above 0 and below 1")
_BELOW_1: Range = (lambda value: 0 <= value < 1, "at least 0 and below 1")
_UP_TO_1: Range = (lambda value: 0 < value <= 1, "above 0 and at most 1")
RANGES: dict[str, Range] = {
    "alg_temp": _AT_LEAST_0,
    "anchor": _UP_TO_1,
    "answer_length": _AT_LEAST_1,
    "answer_start": _AT_LEAST_0,
    "block_length": _AT_LEAST_1,
    "blocks": _AT_LEAST_1,
    "boost": _AT_LEAST_0,
    "budget": _AT_LEAST_0,
    "candidates": _CANDIDATES,
    "clip": _ABOVE_0,
    "count": _AT_LEAST_1,
    "decay": _UP_TO_1,
    "delimiter_threshold": _UP_TO_1,
    "drift": _ABOVE_0,
    "early": _AT_LEAST_0,
    "edit_threshold": _BELOW_1,
    "eps": _INSIDE,
    "factor": _ABOVE_0,
    "gamma": _AT_LEAST_0,
    "history": _AT_LEAST_1,
    "late": _AT_LEAST_0,
    "loops": _AT_LEAST_0,
    "low": _BELOW_1,
    "middle": _AT_LEAST_0,
    "neighbour": _UP_TO_1,
    "position_temperature": _ABOVE_0,
    "radius": _AT_LEAST_1,
    "rate": _AT_LEAST_0,
    "ratio": _UP_TO_1,
    "rounds": _AT_LEAST_0,
    "sigma": _ABOVE_0,
    "start": _INSIDE,
    "steps": _AT_LEAST_1,
    "strength": _AT_LEAST_0,
    "tau": _AT_LEAST_1,
    "temperature": _AT_LEAST_0,
    "threshold": _UP_TO_1,
    "top_k": _AT_LEAST_1,
    "top_p": _UP_TO_1,
}
"""What every option that is a number may be. A test holds that none is missing."""
_NO_PROBABILITY = ("uncode_fast_dllm", "entropy_threshold")
"""The samplers whose threshold is a score or an entropy."""


def range_of(option: str, sampler: str) -> Range | None:
    """What an option of a sampler may be, if it is a number."""
    return _ABOVE_0 if option == "threshold" and sampler in _NO_PROBABILITY else RANGES.get(option)


_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
}


@dataclass(frozen=True)
class Option:
    """One option of a sampler."""

    name: str
    default: str
    """As TOML and `--set` write it; empty where the option must be given."""
    annotation: str = ""
    """Its type, as the signature writes it."""
    range: Range | None = None
    """What it may be, if it is a number."""

    @property
    def meaning(self) -> str:
        return MEANING[self.name]

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it takes, where it takes words."""
        spelt = _aliases().get(self.annotation, self.annotation)
        inner = re.fullmatch(r"Literal\[(.*)\]", spelt)
        return ast.literal_eval(f"({inner[1]},)") if inner else ()

    def value_of(self, written: Any) -> Any:
        """The value that TOML and `--set` write. `none` is None, except where it is a choice."""
        return None if written == "none" and "none" not in self.choices else written

    def check(self, value: object) -> None:
        """Raise if a value is of the wrong type or out of range."""
        if self.choices:
            near = suggest(str(value), self.choices)
            require(value in self.choices, f"{self.name} has no choice {shown(value)}: {near}")
        kind, _, optional = self.annotation.partition(" | ")
        types, meant = _TYPES.get(kind, ((object,), ""))
        fits = isinstance(value, types) and (not isinstance(value, bool) or kind not in ("int", "float"))
        require(fits or (value is None and optional == "None"), f"{self.name} must be {meant}, not {shown(value)}.")
        if self.range is not None and value is not None:
            inside, words = self.range
            require(inside(value), f"{self.name} must be {words}, not {shown(value)}.")  # type: ignore[arg-type]


@dataclass(frozen=True)
class CatalogEntry:
    """What a sampler's signature and docstring say."""

    name: str
    options: tuple[Option, ...]
    summary: str
    source: str
    defaults: str
    cost: str
    """Forwards and memory, beside the logits of a step."""

    @property
    def citation(self) -> str:
        """The source, up to its first semicolon or sentence on the code."""
        return re.split(r"[;]|, generate", self.source)[0]

    def option(self, name: str) -> Option:
        """The option of that name, or an error with the near one."""
        known = {option.name: option for option in self.options}
        if name not in known:
            raise UncodeError(f"the sampler '{self.name}' has no option '{name}': {suggest(name, known)}")
        return known[name]


@cache
def catalog() -> dict[str, CatalogEntry]:
    """Every sampler by the name the command line knows it by, in the order of the files."""
    shared = next(f for f in _functions("registry.py") if f.name == "calibrated")
    functions = [f for file in PRESET_FILES for f in _functions(f"presets/{file}.py")]
    presets = {f.name: _entry(f, f.name, shared) for f in functions if _is_sampler(f)}
    quirks = {f"legacy.{f.name}": f for f in _functions("legacy.py") if _is_sampler(f)}
    return presets | {name: _entry(f, name, shared) for name, f in quirks.items()}


def find(name: str, own: Iterable[str] = ()) -> CatalogEntry:
    """The sampler of that name, or an error with the near one; `own` are the names of a model's own sampler files."""
    known = catalog()
    if name not in known:
        files = ", and no sampler file of this model," if own else ""
        raise UncodeError(f"no sampler{files} is named '{name}': {suggest(name, [*known, *own])}")
    return known[name]


def takes_table(name: str, options: Mapping[str, Any]) -> bool:
    """Whether a preset, with these options, uses a frequency table."""
    takes = any(option.name == "frequency" for option in find(name).options)
    return takes and options.get("informativeness", True) is True


def _functions(file: str) -> list[ast.FunctionDef]:
    tree = ast.parse((Path(__file__).parent / file).read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def _is_sampler(function: ast.FunctionDef) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == "Sampler"


def _entry(function: ast.FunctionDef, name: str, shared: ast.FunctionDef) -> CatalogEntry:
    arguments = function.args
    options = [_option(a, d, name) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg is not None:  # **calibration: the settings every Uncode preset takes
        options += [_option(a, d, name) for a, d in zip(shared.args.args, shared.args.defaults, strict=True)]
    text = cleandoc(ast.get_docstring(function) or "")
    _, _, rest = text.partition("Source:")
    body, _, cost = re.sub(r"\s+", " ", rest).strip().partition(" Cost: ")
    source, start, defaults = re.match(r"(.*?)(\s(?=Defaults? ?)|$)(.*)", body).groups()  # type: ignore[union-attr]
    return CatalogEntry(
        name, tuple(options), text.splitlines()[0], source.rstrip("."), (start + defaults).strip(), cost
    )


def _option(argument: ast.arg, default: ast.expr | None, sampler: str) -> Option:
    annotation = ast.unparse(argument.annotation) if argument.annotation else ""
    value = "" if default is None else ast.literal_eval(default)
    written = value if isinstance(value, str) else str(value).lower()
    return Option(argument.arg, written, annotation, range_of(argument.arg, sampler))


@cache
def _aliases() -> dict[str, str]:
    """The types that have their own name (`Proxy`), spelt out."""
    tree = ast.parse(Path(__file__).with_name("registry.py").read_text(encoding="utf-8"))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    return {ast.unparse(node.targets[0]): ast.unparse(node.value) for node in assigned}
