"""Trajectories as an animated SVG: tokens appear in the order of their commits. For a README, a slide or a page.

The picture works wherever an image does: it has no script and loads nothing. All movement is in CSS animations; without
them (`prefers-reduced-motion`, a converter to PNG) the picture shows the final state. Every token has its own position
and length, so that renderers with other fonts draw the same lines. The lines are those of the final text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from ..core.errors import require
from ..core.moments import MOMENTS
from ..util.template import rendered
from ..util.write import write_whole
from .animation_style import COLUMN, NUMBER_LINE, SECONDS, TITLE_COLUMN, Clock, motion, number
from .page import Trajectory, Verdict, check_texts
from .row_summary import steps_of, summary
from .shown_tokens import ShownToken, shown_tokens
from .token_layout import CUT, Part, TokenText, cut_to, lay_out, visible, width_of, wrap
from .visible_text import BREAK

COLUMNS, MIN_COLUMNS, MAX_PROMPT_LINES, MAX_TRAJECTORIES = 42, 32, 6, 4
LINE, CELL, BASE = 24.0, 18.0, 13.0
"""Distance of two lines, height of a token's box, and how far below its top the baseline is."""
MARGIN, PADDING, GAP, HEAD, FOOT = 16.0, 16.0, 12.0, 52.0, 36.0
"""Around the panels, inside them, between them, and above and below the tokens of a panel."""


def write_animation(path: str | Path, trajectories: Sequence[Trajectory], *, title: str | None = None) -> None:
    """Write the animation atomically."""
    write_whole(Path(path), animation(trajectories, title=title))


def animation(
    trajectories: Sequence[Trajectory], *, title: str | None = None, seconds: float = SECONDS, columns: int = COLUMNS
) -> str:
    """One to four trajectories of the same prompt as an animated SVG, two side by side.

    `seconds` is how long the trajectory with the most steps takes; the others run at the same pace. `columns` is the
    width of a trajectory in characters.
    """
    _check(trajectories, seconds, columns)
    most = max(1, *(steps_of(one.row) for one in trajectories))
    panels = [_Panel(one, columns) for one in trajectories]
    across = min(2, len(panels))
    width = 2 * MARGIN + across * panels[0].width + (across - 1) * GAP
    body, y = _heading(title, trajectories[0].row["prompt_text"], width)
    for first in range(0, len(panels), across):
        abreast = panels[first : first + across]
        height = max(panel.height for panel in abreast)
        for place, panel in enumerate(abreast):
            body.append(_group(panel.drawn(height), MARGIN + place * (panel.width + GAP), y))
        y += height + GAP
    legend, y = _legend(y + 4, width, panels)
    spans = {token.span for panel in panels for token in panel.tokens if token.moment != "given"}
    css = rendered(__package__, "animation.css") + motion(
        Clock(seconds / most, most), spans, [panel.steps for panel in panels]
    )
    return _document(title, trajectories, css, [*body, *legend], (math.ceil(width), math.ceil(y + MARGIN)))


def _check(trajectories: Sequence[Trajectory], seconds: float, columns: int) -> None:
    count = len(trajectories)
    check_texts(trajectories)
    require(count <= MAX_TRAJECTORIES, f"{count} trajectories are too many: give at most {MAX_TRAJECTORIES}.")
    require(math.isfinite(seconds) and seconds > 0, f"seconds must be a positive number, not {seconds}.")
    require(columns >= MIN_COLUMNS, f"columns must be at least {MIN_COLUMNS}, not {columns}.")
    prompts = {one.row["prompt_text"] for one in trajectories}
    require(len(prompts) == 1, "the trajectories have different prompts: choose those of one prompt.")


class _Panel:
    """One trajectory: name, steps, tokens and verdict."""

    def __init__(self, trajectory: Trajectory, columns: int) -> None:
        self.name, self.verdict, row = trajectory.title, trajectory.verdict, trajectory.row
        self.columns, self.steps, self.tokens = columns, steps_of(row), shown_tokens(row)
        self.masked = [at for at, token in enumerate(row["canvas_ids"]) if token == row["mask_id"]]
        final = {token.offset: token for token in self.tokens if token.stays}
        pieces = [_piece(final.get(offset)) for offset in range(len(row["generated_texts"]))]
        self.parts, lines = lay_out(pieces, columns)
        self.width = columns * COLUMN + 2 * PADDING
        self.height = HEAD + lines * LINE + (FOOT if self.verdict else PADDING - (LINE - CELL))

    def drawn(self, height: float) -> str:
        masks = "".join(_mask(self.parts[offset][0]) for offset in self.masked)
        tokens = "\n".join(map(self._token, self.tokens))
        frame = f'<rect class="panel" width="{number(self.width)}" height="{number(height)}" rx="8"/>'
        body = _group(f'{masks}\n<g class="all">{tokens}</g>', PADDING, HEAD)
        return f"{frame}\n{self._head()}\n{body}{self._verdict(height - 15)}"

    def _head(self) -> str:
        """The name, the steps so far, and the bar. The steps are a strip of all numbers behind a window."""
        digits, length = len(str(self.steps)), number(self.columns * COLUMN)
        right = PADDING + self.columns * COLUMN
        window, left = number(digits * COLUMN), right - (2 * digits + 1) * COLUMN
        place = f"translate({window},{14 - NUMBER_LINE * self.steps})"
        strip = f'<use href="#steps" class="n{self.steps}" transform="{place}"/>'
        bars = f'<rect class="track" width="{length}" height="3" rx="1.5"/>'
        bars += f'<rect class="bar b{self.steps}" width="{length}" height="3" rx="1.5"/>'
        return (
            _text(PADDING, 24, cut_to(_one_line(self.name), self.columns - 2 * digits - 8), "name")
            + _text(left - 5 * COLUMN, 24, "step", "soft")
            + f'<svg x="{number(left)}" y="10" width="{window}" height="{NUMBER_LINE}">{strip}</svg>'
            + _text(right - (digits + 1) * COLUMN, 24, f"/{self.steps}", "soft")
            + _group(bars, PADDING, 35)
        )

    def _token(self, token: ShownToken) -> str:
        parts = self.parts[token.offset]
        if not token.stays:  # it stands in the first box of the final token, where it is narrowed or cut if need be
            text = visible(token.text).strip(" ").replace("\n", BREAK)
            parts = [parts[0]._replace(text=cut_to(text, 2 * parts[0].width))]
        is_pale = token.is_eos or not any(part.text.strip(" ") for part in parts)
        names = ["t", token.moment, "pale" * is_pale, "gone" * (not token.stays)]
        names.append("" if token.moment == "given" else token.span.name)
        drawn = "".join(_part(part, token) for part in parts)
        return f'<g class="{" ".join(filter(None, names))}">{drawn}</g>'

    def _verdict(self, y: float) -> str:
        if self.verdict is None:
            return ""
        text = cut_to(f"{'✓' if self.verdict.right else '✗'} {_one_line(_outcome(self.verdict))}", self.columns)
        kind = "right" if self.verdict.right else "wrong"
        return f'<g class="e{self.steps}">{_text(PADDING, y, text, f"verdict {kind}")}</g>'


def _piece(final: ShownToken | None) -> TokenText:
    """The text of a final token for the layout. An EOS, or a mask that was never filled, takes one column."""
    return TokenText(" ", alone=True) if final is None or final.is_eos else TokenText(visible(final.text))


def _part(part: Part, token: ShownToken) -> str:
    x, y = part.column * COLUMN, part.line * LINE
    box = "" if token.moment == "given" else _box(part)
    if token.is_eos:
        return box + _eos_sign(x, y)
    return box + _text(x, y + BASE, part.text, "", min(part.width, width_of(part.text)))


def _box(part: Part) -> str:
    place = f'x="{number(part.column * COLUMN + 0.4)}" y="{number(part.line * LINE)}"'
    return f'<rect {place} width="{number(part.width * COLUMN - 0.8)}" height="{number(CELL)}" rx="2.5"/>'


def _mask(part: Part) -> str:
    """A small box in the middle of the final token's box. All masks are alike, since a mask does not know its token."""
    x, y = (part.column + part.width / 2) * COLUMN - 2.6, part.line * LINE + CELL / 2 - 4
    return f'<rect class="mask" x="{number(x)}" y="{number(y)}" width="5.2" height="8" rx="1.5"/>'


def _eos_sign(x: float = 0.0, y: float = 0.0) -> str:
    return f'<path class="sign" d="M{number(x + COLUMN / 2 - 1.5)} {number(y + CELL / 2 - 1.5)}h3v3h-3z"/>'


def _text(x: float, y: float, text: str, kind: str, width: int | None = None, column: float = COLUMN) -> str:
    """A text of a fixed length, since fonts differ in the width of a column and in the characters they have."""
    if not text.strip(" "):
        return ""
    columns = width_of(text)
    width = columns if width is None else width
    is_plain = text.isascii() and columns == width
    length = f' textLength="{number(width * column)}"' if columns > 1 else ""
    length += "" if is_plain or not length else ' lengthAdjust="spacingAndGlyphs"'
    named = f' class="{kind}"' if kind else ""
    words = escape(text, quote=False).replace(" ", "\u00a0")  # a renderer may drop or join blanks
    return f'<text{named} x="{number(x)}" y="{number(y)}"{length}>{words}</text>'


def _group(content: str, x: float, y: float) -> str:
    return f'<g transform="translate({number(x)},{number(y)})">{content}</g>'


def _heading(title: str | None, prompt: str, width: float) -> tuple[list[str], float]:
    """The title and the last lines of the prompt, and where the panels begin."""
    room, y, drawn = width - 2 * MARGIN, MARGIN, list[str]()
    if title:
        fitting = cut_to(_one_line(title), int(room / TITLE_COLUMN))
        drawn.append(_text(MARGIN, y + 15, fitting, "title", column=TITLE_COLUMN))
        y += 28
    lines = wrap(prompt.strip("\n"), int(room / COLUMN)) if prompt.strip() else []
    for line in lines if len(lines) <= MAX_PROMPT_LINES else [CUT, *lines[1 - MAX_PROMPT_LINES :]]:
        indent = len(line) - len(line.lstrip(" "))
        drawn.append(_text(MARGIN + indent * COLUMN, y + 13, line.strip(" "), "soft"))
        y += 19
    return drawn, y + (8 if drawn else 0)


def _legend(y: float, width: float, panels: Sequence[_Panel]) -> tuple[list[str], float]:
    """The colours, the signs that occur, and where the legend ends."""
    tokens = [token for panel in panels for token in panel.tokens if token.is_eos]
    colours, at = _text(0, BASE, "committed", "soft"), 10.0
    for moment in MOMENTS:
        sample = _box(Part(0, 0, len(moment) + 1, "")) + _text(COLUMN / 2, BASE, moment, "")
        colours += f'<g class="t {moment}" transform="translate({number(at * COLUMN)},0)">{sample}</g>'
        at += len(moment) + 2
    items = [(colours, at + 1), _sign("mask", _mask(Part(0, 0, 1, "")))]
    if any(token.moment in MOMENTS for token in tokens):
        items.append(_sign("EOS", f'<g class="t middle pale">{_box(Part(0, 0, 1, ""))}{_eos_sign()}</g>'))
    if any(token.moment == "filled" for token in tokens):
        items.append(_sign("EOS filled by the stop rule", _eos_sign()))
    drawn, x = list[str](), MARGIN
    for item, columns in items:
        if x > MARGIN and x + (columns - 2) * COLUMN > width - MARGIN:
            x, y = MARGIN, y + LINE
        drawn.append(_group(item, x, y))
        x += columns * COLUMN
    return drawn, y + CELL


def _sign(word: str, drawing: str) -> tuple[str, float]:
    """A sign with its meaning, and the columns that both take."""
    return drawing + _text(1.7 * COLUMN, BASE, word, "soft"), len(word) + 3.7


def _document(
    title: str | None, trajectories: Sequence[Trajectory], css: str, body: Sequence[str], size: tuple[int, int]
) -> str:
    width, height = size
    box = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    facts = [f"{one.title}: {'; '.join(_facts(one))}." for one in trajectories]
    last = max(steps_of(one.row) for one in trajectories)
    numbers = "".join(f'<tspan x="0" y="{NUMBER_LINE * count}">{count}</tspan>' for count in range(last + 1))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img"><!-- uncode -->',
        f"<title>{escape(_one_line(title or 'Tokens in the order of their commits'), quote=False)}</title>",
        f"<desc>{escape(_one_line(' '.join(facts)), quote=False)}</desc>",
        f"<style>{css}</style>",
        f'<defs><text id="steps" class="soft" text-anchor="end">{numbers}</text></defs>',
        f'<rect class="card" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="12"/>',
    ]
    return "\n".join([*parts, *body, "</svg>\n"])


def _facts(one: Trajectory) -> list[str]:
    return summary(one.row) + ([_outcome(one.verdict)] if one.verdict else [])


def _outcome(verdict: Verdict) -> str:
    return ("right" if verdict.right else "wrong") + (f": {verdict.reason}" if verdict.reason else "")


def _one_line(text: str) -> str:
    return visible(text).replace("\n", " ")
