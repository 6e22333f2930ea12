"""The figures of the report in their order, each with its title and its caption."""

from __future__ import annotations

CAPTIONS = {
    "order": (
        "The order of four samplers",
        "The probability that a position is unmasked after a step. A curve from both lower corners to the middle is "
        "the paper's U shape; a diagonal is left to right. The boundary-first index is positive if the outer quarters "
        "are written before the inner half; it is a difference of ranks, from 0 (written first) to 1 (written last).",
    ),
    "grid": (
        "Boundaries first, on every task",
        "The same for three samplers by uncertainty on every task, with their accuracies beside them.",
    ),
    "planning": (
        "Reasoning and planning need different orders",
        "The share of right answers, averaged over the tasks of each kind, with 95 % intervals.",
    ),
    "trivial": (
        "Trivial tokens first",
        "The share of trivial tokens (the paper's list: such as spaces, punctuation and “the”) among the text tokens "
        "that are committed, over twentieths of the decode. EOS tokens are left out. The dashed line is the share in "
        "the texts of a left-to-right decode, which stands in for an autoregressive model.",
    ),
    "rejection": (
        "Rejecting trivial tokens",
        "Accuracy of confidence if its pick of a trivial token is rejected with probability p, in favour of the best "
        "position with another token.",
    ),
    "anchor_maps": (
        "A given token as an anchor",
        "The unmasking of confidence with one token given before decoding (a space, “the” or a full stop), at a "
        "quarter or at three quarters of the answer. The first map is without an anchor.",
    ),
    "anchors": (
        "What the anchor changes around it",
        "Left: when each position is written. Right: how much earlier than without the anchor, over the same problems.",
    ),
    "answers": (
        "When the answer is committed",
        "Left: the time and the entropy at which each answer is committed; large points are means. Right: the share of "
        "answers that are complete before half of the text in front of them.",
    ),
    "entropy": (
        "Uncertainty over time",
        "The mean predictive entropy of the positions that are still masked, with a 95 % band.",
    ),
    "priors": (
        "Each prior alone",
        "Average accuracy without a prior (confidence), with each prior of Uncode alone, and with both.",
    ),
    "hyperparameters": (
        "Rate and clip",
        "Accuracy of Uncode against the rate of its positional prior and the clip of its informativeness prior.",
    ),
    "rates": (
        "Entropy as a guide to the rate",
        "Mean predictive entropy (left axis) and accuracy (right axis) over the rates. If the two mirror each other, "
        "the rate can be chosen without labels.",
    ),
    "corpora": (
        "Frequency tables of other corpora",
        "Average accuracy of Uncode with frequency tables that were counted on other corpora.",
    ),
    "efficiency": (
        "Several tokens a forward",
        "Accuracy against speed-up of three samplers that write several tokens a forward. An arrow leads to the same "
        "sampler with Uncode's order.",
    ),
}
