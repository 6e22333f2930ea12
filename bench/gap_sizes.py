"""How often the model chooses the right size of a gap (`<mask:?>`): one to three words of right answers are masked.

Two rules are compared: the mean log-probability of the proposals in the gap alone, and the rule of
`uncode.generation.prompt`, which adds that of the token after the gap.

python bench/gap_sizes.py               # 16 answers a family, some minutes on two cores
python bench/gap_sizes.py --model ./mine --answers 64
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from random import Random

import uncode
from uncode.evals.suite.families import FAMILIES
from uncode.generation.prompt import MAX_CHOSEN_TOKENS, canvas_of, choose_sizes, with_pieces

LARGEST_ROW = 180
"""Tokens of prompt and answer: the context of `tiny` has 192."""


def by_proposals(model: uncode.Denoiser, pieces: list[str]) -> int:
    """The size at which the model's first proposals are most probable."""
    at_once = uncode.presets.confidence(steps=1)
    found = list[float]()
    for size in range(1, MAX_CHOSEN_TOKENS + 1):
        trace = uncode.decode(model, canvas_of(model, [with_pieces(model, pieces, [size])]), at_once)
        found.append(float(trace.logp.nanmean()))
    return found.index(max(found)) + 1


def masked(text: str, random: Random) -> tuple[str, str, str]:
    """The text before a gap of one to three words, the words, and the text after it."""
    words = [word.span() for word in re.finditer(r"\S+", text)]
    first = random.randrange(1, len(words) - 1)
    last = min(first + random.randrange(3), len(words) - 2)
    begin, end = words[first][0], words[last][1]
    return text[:begin], text[begin:end], text[end:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--answers", type=int, default=16, help="of each family")
    given = parser.parse_args()
    model, random, right = uncode.load(given.model, device=given.device), Random(0), Counter[str]()
    count = model.tokenizer.encode
    for family in FAMILIES.values():
        for example in family.examples()[: given.answers]:
            answer = family.response(example, family.style(random))
            if len(answer.split()) < 3 or len(count(family.prompt(example) + answer)) > LARGEST_ROW:
                continue
            before, words, after = masked(answer, random)
            pieces = [family.prompt(example) + before, after]
            size = len(count(pieces[0] + words + after)) - len(with_pieces(model, pieces, [1]).ids) + 1
            right.update({"gaps": 1, "proposals alone": by_proposals(model, pieces) == size})
            right["with the token after the gap"] += choose_sizes(model, pieces, [None]) == [size]
    gaps = right.pop("gaps")
    for rule, found in right.items():
        print(f"{rule}: {found} of {gaps}, {100 * found / gaps:.0f} %")


if __name__ == "__main__":
    main()
