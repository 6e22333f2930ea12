"""The movement of an animated SVG, as CSS. Its colours are in `animation.css`."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

COLUMN, TITLE_COLUMN, NUMBER_LINE = 8.2, 9.4, 20
"""Width of a column of text and of the title, and distance of the step numbers."""
SECONDS, LEAD_SECONDS, HOLD_SECONDS = 9.0, 0.8, 3.2
"""How long the tokens take to appear, the masks are shown before, and the final state is held after."""
FADE_SECONDS, RING_SECONDS, RESET_SECONDS = 0.12, 0.55, 0.35
SAME_STEP = 0.6
"""The part of a step for which a token is shown that the same step erased."""


class Clock(NamedTuple):
    """The times of one loop. All trajectories run at the same pace."""

    per_step: float
    steps: int

    @property
    def loop(self) -> float:
        return self.at(self.steps) + HOLD_SECONDS

    def at(self, step: float) -> float:
        """The second at which the tokens of a step appear."""
        return LEAD_SECONDS + self.per_step * step

    def percent(self, second: float) -> str:
        return f"{number(100 * second / self.loop, 3)}%"


class ShownSteps(NamedTuple):
    """The steps that commit a token and erase it; `end` is None for a token that stays."""

    start: int
    end: int | None

    @property
    def name(self) -> str:
        """The name of its animation."""
        return f"s{self.start}" if self.end is None else f"s{self.start}-{self.end}"


def motion(clock: Clock, spans: Collection[ShownSteps], steps: Collection[int]) -> str:
    """The animations of tokens, step numbers, bars and verdicts. Without them, each element is in its final state."""
    rules = [f"g,use,.bar{{animation:{number(clock.loop, 3)}s linear infinite}}", _reset(clock)]
    for span in sorted(spans, key=lambda one: (one.start, one.end or -1)):
        end = None if span.end is None else clock.at(max(span.end, span.start + SAME_STEP))
        rules.append(_appear(clock, span.name, clock.at(span.start), end))
    for count in sorted(set(steps)):
        rules += [_count(clock, count), _fill(clock, count)]
        rules.append(_appear(clock, f"e{count}", clock.at(count) + FADE_SECONDS, None))
    return "@media (prefers-reduced-motion:no-preference){\n" + "\n".join(rules) + "\n}\n"


def _reset(clock: Clock) -> str:
    """All tokens fade at the end of the loop."""
    return _rule("all", f"0%,{clock.percent(clock.loop - RESET_SECONDS)}{{opacity:1}}to{{opacity:0}}")


def _appear(clock: Clock, name: str, start: float, end: float | None) -> str:
    """A token appears, and a ring shows for a moment that it is new."""
    full, calm = start + FADE_SECONDS, start + RING_SECONDS
    if end is not None:
        full, calm = min(full, (start + end) / 2), min(calm, end)
    frames = (
        f"0%,{clock.percent(start)}{{opacity:0;stroke-opacity:1}}{clock.percent(full)}{{opacity:1;stroke-opacity:1}}"
    )
    if end is None:
        return _rule(name, frames + f"{clock.percent(calm)},to{{opacity:1;stroke-opacity:0}}")
    frames += f"{clock.percent(calm)},{clock.percent(end)}{{opacity:1;stroke-opacity:0}}"
    return _rule(name, frames + f"{clock.percent(end + FADE_SECONDS)},to{{opacity:0;stroke-opacity:0}}")


def _count(clock: Clock, steps: int) -> str:
    """The strip of step numbers moves up behind its window, one number at a time."""
    x, last = number(len(str(steps)) * COLUMN), 14 - NUMBER_LINE * steps
    jump = f"animation-timing-function:steps({max(steps, 1)},start)"
    frames = (
        f"0%{{transform:translate({x}px,14px)}}{clock.percent(clock.at(0))}{{transform:translate({x}px,14px);{jump}}}"
    )
    return _rule(f"n{steps}", frames + f"{clock.percent(clock.at(steps))},to{{transform:translate({x}px,{last}px)}}")


def _fill(clock: Clock, steps: int) -> str:
    start, end = clock.percent(clock.at(0)), clock.percent(clock.at(steps))
    return _rule(f"b{steps}", f"0%,{start}{{transform:scaleX(0)}}{end},to{{transform:scaleX(1)}}")


def _rule(name: str, frames: str) -> str:
    return f".{name}{{animation-name:{name}}}@keyframes {name}{{{frames}}}"


def number(value: float, digits: int = 1) -> str:
    """A number in as few characters as possible."""
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
