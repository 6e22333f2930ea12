"""What makes a function a preset: its options are checked, its shared options applied, and it is listed.

This module imports no torch, nor do the files of presets: their pieces are imported when the first sampler is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, cleandoc, signature
from typing import Any, ParamSpec, TypedDict, Unpack

from ..core.errors import OptionError, suggest
from ..core.support.arguments import checks_arguments
from . import pieces as p
from .options import OPTIONS, PENALTIES, SHARED, Cache, Option, Range

P = ParamSpec("P")


class Placed(TypedDict, total=False):
    """The options of every sampler that say where and from what it computes."""

    block_length: int | None
    cache: Cache
    draft_steps: int
    window: int | None


class Shared(Placed, total=False):
    """All of them; see `SHARED` in the table of options."""

    frequency_penalty: float
    min_p: float | None
    presence_penalty: float
    repetition_penalty: float
    temperature: float
    top_k: int | None
    top_p: float | None


@dataclass(frozen=True)
class Preset:
    """A named sampler: the function that makes it, its options, and what it says of itself."""

    name: str
    """As the command line knows it: `legacy.NAME` for a published quirk."""
    make: Callable[..., p.Sampler]
    options: tuple[Option, ...]
    summary: str
    source: str
    defaults: str
    """The defaults, each with the place it is quoted from."""
    cost: str
    """Forwards and memory, beside the logits of a step."""

    @property
    def citation(self) -> str:
        """The source, up to its first semicolon or the name of a file."""
        return self.source.partition(";")[0].partition(", generate")[0]

    def option(self, name: str) -> Option:
        """The option of that name, or an error with the near one."""
        found = next((option for option in self.options if option.name == name), None)
        if found is None:
            known = [option.name for option in self.options]
            raise OptionError(f"the sampler '{self.name}' has no option '{name}': {suggest(name, known)}", name)
        return found


PRESETS: dict[str, Preset] = {}
"""Every preset and quirk by its name, in the order of their files. :func:`~uncode.samplers.catalog.catalog` has all."""


def preset(
    *,
    source: str,
    defaults: str = "",
    cost: str = "",
    rest: Callable[..., Any] | None = None,
    ranges: Mapping[str, Range] | None = None,
    is_quirk: bool = False,
    **shared: Unpack[Shared],
) -> Callable[[Callable[P, p.Policy | p.Sampler]], Callable[P, p.Sampler]]:
    """A decorator: enter a preset into :data:`PRESETS`. The first line of its docstring is its summary.

    Options are checked before any piece is made, so that an error names the option and not the piece's setting. `rest`
    is the function whose options are among the preset's `**options`, `ranges` are those that are not the table's, and
    the other keywords are its defaults of shared options. Those are applied to what the function returns, but for those
    that it names in its own signature.
    """
    usual: dict[str, Any] = {name: OPTIONS[name].default for name in SHARED} | {**shared}

    def decorate(function: Callable[P, p.Policy | p.Sampler]) -> Callable[P, p.Sampler]:
        own = [each for each in signature(function).parameters.values() if each.kind is Parameter.KEYWORD_ONLY]
        spread = [] if rest is None else [each for each in signature(rest).parameters.values() if each.name in OPTIONS]
        common = [name for name in SHARED if name not in {each.name for each in own}]
        spread += [Parameter(name, Parameter.KEYWORD_ONLY, default=usual[name]) for name in common]
        options = {each.name: replace(OPTIONS[each.name], default=each.default) for each in (*own, *spread)}
        options |= {name: replace(options[name], range=found) for name, found in (ranges or {}).items()}
        name, listed = function.__name__, f"legacy.{function.__name__}" if is_quirk else function.__name__
        what = name if is_quirk else f"the sampler '{name}'"

        @wraps(function)
        def make(*args: P.args, **given: P.kwargs) -> p.Sampler:
            values = {key: options[key].read(value, f"the option {key} of {what}") for key, value in given.items()}
            changes = _together(shared, {key: values.pop(key) for key in common if key in values}, what)
            if "blocks" in options and changes.get("block_length") is None:
                changes.pop("block_length", None)  # their number says how long they are
            clash = next((key for key in ("block_length", "window") if "blocks" in values and changes.get(key)), None)
            if clash is not None:
                raise OptionError(f"{what} takes either blocks or {clash}: leave one of the two out.", clash)
            made = function(**values)  # type: ignore[call-arg]  # all go by name
            sampler = made if isinstance(made, p.Sampler) else p.Sampler(made)
            named = replace(sampler, name=name) if sampler.name == "custom" else sampler
            return with_shared(named, changes)

        checked = checks_arguments(what, spread)(make)
        said = cleandoc(function.__doc__ or "")
        summary, about = said.splitlines()[0], (f"Source: {source}.", defaults, f"Cost: {cost}" if cost else "")
        checked.__doc__ = "\n\n".join([said, *filter(None, about)])
        PRESETS[listed] = Preset(listed, checked, tuple(options.values()), summary, source, defaults, cost)
        return checked

    return decorate


def _together(defaults: Mapping[str, Any], given: dict[str, Any], what: str) -> dict[str, Any]:
    """The shared options of a preset: blocks that are given replace its window, and a window its blocks."""
    length, window = given.get("block_length"), given.get("window")
    if length is not None and window is not None:
        raise OptionError(f"{what} takes either block_length or window: leave one of the two out.", "window")
    replaced = "window" if length is not None else "block_length" if window is not None else None
    return {**{key: value for key, value in defaults.items() if key != replaced}, **given}


def with_shared(sampler: p.Sampler, changes: Mapping[str, Any]) -> p.Sampler:
    """The sampler with other values of its shared options: its blocks, its cache, its proposal, its penalties and its
    draft steps."""
    changes = _together({}, {**changes}, f"the sampler '{sampler.name}'")
    blocks = _blocks(sampler.policy.blocks, changes)
    made: dict[str, Any] = {"policy": replace(sampler.policy, blocks=blocks)}
    if "cache" in changes:
        made["cache"] = cache_named(changes["cache"], blocks.slides)
    drawing: dict[str, Any] = {
        key: changes[key] for key in ("temperature", "top_k", "top_p", "min_p") if key in changes
    }
    if drawing:
        made["propose"] = _drawing(sampler.propose, drawing)
    if penalties := {key: changes[key] for key in PENALTIES if key in changes}:
        made["adjust"] = replace(sampler.adjust, **penalties)
    if "draft_steps" in changes:
        made["draft_steps"] = changes["draft_steps"]
    return replace(sampler, **made)


def _blocks(blocks: p.BlockSchedule, changes: Mapping[str, Any]) -> p.BlockSchedule:
    """The block schedule with another length of blocks, or a window that slides. A window cache without blocks has
    one."""
    given = "block_length" in changes
    length: Any = changes.get("block_length")
    if changes.get("window") is not None:
        if type(blocks) is not p.Blocks and not isinstance(blocks, p.SlidingWindow):
            raise OptionError(f"the blocks of this sampler, {type(blocks).__name__}, take no window.", "window")
        old = blocks if isinstance(blocks, p.SlidingWindow) else p.SlidingWindow()
        return replace(old, masks=changes["window"])
    if isinstance(blocks, p.SlidingWindow):
        return p.Blocks(length=length) if length is not None or "window" in changes else blocks
    if given and isinstance(blocks, p.DelimitedBlocks):
        return replace(blocks, length=length)
    if given and not isinstance(blocks, p.Blocks):
        raise OptionError(f"the blocks of this sampler, {type(blocks).__name__}, take no block_length.", "block_length")
    if given and isinstance(blocks, p.Blocks):
        blocks = replace(blocks, count=None, length=length)
    slides = changes.get("cache") in ("window", "window-never") and "window" not in changes
    return p.SlidingWindow() if slides and blocks in (p.Blocks(), p.Blocks(count=1)) else blocks


def _drawing(propose: p.Proposal, changes: dict[str, Any]) -> p.Proposal:
    """The proposal with another temperature and other cuts. At temperature 0 the cuts change nothing."""
    if isinstance(propose, p.Greedy) and not changes.get("temperature"):
        return propose
    if type(propose) is p.Greedy:
        return p.Sample(propose.ban, **changes)
    if not isinstance(propose, p.Sample):
        option = next(iter(changes))
        raise OptionError(f"the proposal {type(propose).__name__} of this sampler takes no {option}.", option)
    drawn = replace(propose, **changes)
    is_greedy = type(drawn) is p.Sample and drawn.temperature == 0 and drawn.ranking == "clean"
    return p.Greedy(drawn.ban) if is_greedy else drawn


def cache_named(name: Cache, slides: bool = False) -> p.CachePolicy:
    """The cache policy of that name; auto is prefix where the model has a KV cache, and none beside a window that
    slides."""
    caches = {
        "auto": p.NoCache() if slides else p.PrefixCache(optional=True),
        "none": p.NoCache(),
        "prefix": p.PrefixCache(),
        "dual": p.DualCache(),
        "window": p.WindowCache(),
        "window-never": p.WindowCache(every=None),
    }
    return caches[name]
