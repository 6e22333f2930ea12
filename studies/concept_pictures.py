"""The pictures of the order, of a step and of caches (extra `plots`): `python -m studies.concept_pictures`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from uncode.analysis.figures.style import COLOURS, GREY, new_figure, picture, style, tidy
from uncode.core.pieces.cache import CachePolicy, DualCache, NoCache, Place, PrefixCache, Span, WindowCache
from uncode.evals.suite.report import short
from uncode.util.write import write_whole

from .trainings import ROOT, Training, trainings

FOLDER = ROOT / "docs" / "pictures"
SIZE = (4.2, 2.9)
"""In inches: the width of a phone, so that no letter becomes too small there."""
BOUNDARY, TRIVIAL, STEP, CACHES = "boundary.svg", "trivial.svg", "step.svg", "caches.svg"

STAGES = (
    ("Open", "the next block that has masks", "blocks"),
    ("Forward", "the network, over the plan's window", "cache policy"),
    ("Believe", "a token for each column, and how sure", "proposal"),
    ("Score", "where first: a number per position", "score"),
    ("Select", "how many: the positions of this step", "selector"),
    ("Take back", "tokens that become masks again", "remasker"),
    ("Write", "the tokens, and the belief behind each", ""),
    ("Check", "is the row finished?", "stop rule"),
)
"""The stages of a step, what each decides, and the piece of the sampler that decides it."""
BETWEEN = {1: "logits: one row per column of the window", 2: "belief: token, log p, entropy, margin", 3: "ranking"}
"""What goes from a stage to the next."""
WIDTH, MARGIN, BOX, GAP = 400, 36, 46, 26
PROMPT, COLUMNS, CELL, STRIP = 10, 46, 8, 14
"""Of the picture of caches: columns of the prompt and of the canvas, and the size of a cell."""
POLICIES: tuple[tuple[str, CachePolicy], ...] = (
    ("none", NoCache()),
    ("prefix", PrefixCache()),
    ("dual", DualCache()),
    ("window", WindowCache(margin=4)),
)
LOOK = """
text{font:13px system-ui,sans-serif;fill:#1c1c1a}.name{font-weight:700}.soft,.piece{fill:#5c5c56;font-size:12px}
.card{fill:#f4f4f0;stroke:#deddd6}.box{fill:#fff;stroke:#a9a89e}.line{fill:none;stroke:#65655f;stroke-width:1.4}
.head{fill:#65655f}.out{fill:#fff;stroke:#c9c8c1}.kept{fill:#c9c8c1}.now{fill:#0072b2}.frame{fill:none;stroke:#d55e00;stroke-width:2}
@media (prefers-color-scheme:dark){
text{fill:#ececea}.soft,.piece{fill:#b0b0aa}.card{fill:#161618;stroke:#3a3a3e}.box{fill:#1f1f22;stroke:#707077}
.line{stroke:#a3a39d}.head{fill:#a3a39d}.out{fill:#1f1f22;stroke:#55555a}.kept{fill:#6a6a70}.now{fill:#56b4e9}.frame{stroke:#ff9a4d}}
"""


def caches() -> str:
    """What a step computes with each cache: the first of a block and a later one, as the policies plan it."""
    parts, y = [], 24
    for name, policy in POLICIES:
        slides = isinstance(policy, WindowCache)
        parts.append(f'<text class="name" x="16" y="{y}">{name}</text>')
        for title, later in (("a refresh" if slides else "first step of a block", 0), ("a later step", 1)):
            start = 20 + 2 * later * slides  # two tokens of the window were written, and it slid
            block, opened = _span(start, start + 8), _span(20, 28)
            place = Place(block, np.array([later]), block, COLUMNS, block.start, start=PROMPT)
            if later:
                place = replace(
                    place, first_mask_before=opened.start, stop_before=opened.stop, since_refresh=2, since_prompt=2
                )
            plan = policy(place)
            parts.append(f'<text class="soft" x="90" y="{y}">{title}</text>')
            parts += _strip(y + 6, _columns(plan.window), _columns(plan.reuse), _columns(block))
            y += 42
        y += 8
    for x, kind, text in ((16, "now", "computed"), (116, "kept", "reused from the cache"), (288, "frame", "open")):
        parts.append(f'<rect class="{kind}" x="{x}" y="{y - 10}" width="12" height="12"/>')
        parts.append(f'<text class="soft" x="{x + 18}" y="{y}">{text}</text>')
    about = "The columns that a step computes and those whose keys it reuses, by cache."
    return _card("What a step computes with each cache", about, y + 16, parts)


def _span(start: int, stop: int) -> Span:
    return Span(np.array([start]), np.array([stop]))


def _columns(span: Span) -> range:
    return range(int(span.start[0]), int(span.stop[0]))


def _strip(y: int, computed: range, reused: range, block: range) -> list[str]:
    """The columns of the canvas in a row, with a gap after the prompt."""

    def place(column: int) -> int:
        return 16 + CELL * column + (4 if column >= PROMPT else 0)

    kinds = ["now" if n in computed else "kept" if n in reused else "out" for n in range(COLUMNS)]
    cells = [f'<rect class="{k}" x="{place(n)}" y="{y}" width="6" height="{STRIP}"/>' for n, k in enumerate(kinds)]
    x, width = place(block.start) - 2, CELL * len(block) + 2
    return [*cells, f'<rect class="frame" x="{x}" y="{y - 3}" width="{width}" height="{STRIP + 6}" rx="3"/>']


def _card(title: str, about: str, height: int, parts: Sequence[str]) -> str:
    """A picture as wide as a phone, with a background of its own for either theme."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'role="img"><!-- uncode -->',
        f"<title>{title}</title>\n<desc>{about}</desc>\n<style>{LOOK}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        *parts,
        "</svg>\n",
    ])  # fmt: skip


def step() -> str:
    """The eight stages of a step, one below the other."""
    parts, top = [], 16
    for number, (name, does, piece) in enumerate(STAGES):
        y = top + number * (BOX + GAP)
        right = WIDTH - MARGIN - 12
        parts += [
            f'<rect class="box" x="{MARGIN}" y="{y}" width="{WIDTH - 2 * MARGIN}" height="{BOX}" rx="6"/>',
            f'<text class="name" x="{MARGIN + 12}" y="{y + 19}">{number + 1}. {name}</text>',
            f'<text class="piece" x="{right}" y="{y + 19}" text-anchor="end">{piece}</text>',
            f'<text class="soft" x="{MARGIN + 12}" y="{y + 37}">{does}</text>',
        ]
        if number + 1 < len(STAGES):
            parts += _arrow(y + BOX, BETWEEN.get(number, ""))
    last = top + (len(STAGES) - 1) * (BOX + GAP) + BOX // 2
    side, first = WIDTH - 14, top + BOX // 2
    parts += [
        f'<path class="line" d="M{WIDTH - MARGIN} {last}H{side}V{first}H{WIDTH - MARGIN + 8}"/>',
        f'<path class="head" d="M{WIDTH - MARGIN} {first}l9 -4.5v9z"/>',
        f'<text class="soft" x="{MARGIN}" y="{last + BOX // 2 + 24}">'
        "The next step follows, until every row is finished.</text>",
    ]
    height = last + BOX // 2 + 40
    described = " ".join(f"{number}. {name}: {does}." for number, (name, does, _) in enumerate(STAGES, 1))
    return _card("One step of decoding", described, height, parts)


def _arrow(y: int, label: str) -> list[str]:
    """An arrow down from a box, with what it carries."""
    middle = WIDTH // 2 - 90
    return [
        f'<path class="line" d="M{middle} {y}v{GAP - 8}"/>',
        f'<path class="head" d="M{middle} {y + GAP}l-4.5 -9h9z"/>',
        f'<text class="soft" x="{middle + 14}" y="{y + GAP // 2 + 5}">{label}</text>',
    ]


def boundary(runs: Sequence[Training]) -> Any:
    """When each tenth of the span is written: by confidence, beside the line of left to right."""
    figure = new_figure(*SIZE)
    axes = figure.subplots()
    for run, colour in zip(runs, COLOURS, strict=False):
        when = [100 * part[0] for part in run.results.biases["all"]["when"]]
        tenths = range(1, len(when) + 1)
        axes.plot(tenths, when, "o-", markersize=3.5, color=colour, label=f"confidence, seed {run.seed}")
    axes.plot(tenths, [100 * (tenth - 0.5) / len(when) for tenth in tenths], "--", color=GREY, label="left to right")
    axes.set_xlabel("tenth of the answer's span")
    axes.set_ylabel("written after, % of the decode")
    axes.set_xticks(list(tenths))
    axes.set_ylim(0, 100)
    axes.legend(frameon=False)
    tidy(axes)
    return figure


def trivial(run: Training) -> Any:
    """The share of trivial tokens among the first that are written: by confidence and from left to right."""
    figure = new_figure(*SIZE)
    axes = figure.subplots()
    families = [name for name in run.results.biases if name != "all"]
    places = range(len(families))
    bars = (("trivial_early", "confidence", -0.2), ("trivial_early_left_to_right", "left to right", 0.2))
    for (key, label, shift), colour in zip(bars, (COLOURS[0], "0.65"), strict=True):
        shares = [100 * run.results.biases[name][key][0] for name in families]
        axes.bar([place + shift for place in places], shares, width=0.4, color=colour, label=label)
    axes.set_xticks(list(places), [short(name) for name in families], rotation=35, ha="right")
    axes.set_ylabel("trivial, % of the first quarter")
    axes.margins(x=0.03)
    axes.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    tidy(axes)
    return figure


def main() -> None:
    runs = trainings()
    with style():
        write_whole(FOLDER / BOUNDARY, picture(boundary(runs), "svg"))
        write_whole(FOLDER / TRIVIAL, picture(trivial(runs[0]), "svg"))
    write_whole(FOLDER / STEP, step())
    write_whole(FOLDER / CACHES, caches())
    print(f"{FOLDER}: {BOUNDARY}, {TRIVIAL}, {STEP}, {CACHES}")


if __name__ == "__main__":
    main()
