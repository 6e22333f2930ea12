"""The Triton kernels beside the plain code, run by Triton's interpreter: no GPU is needed, only patience.

The tests start `python -m tests.interpreted` with TRITON_INTERPRET=1, which Triton reads when it is imported.
"""

from __future__ import annotations

import torch
from torch import Tensor

from uncode.backbones import kernels, pointwise
from uncode.backbones.pointwise import Kept
from uncode.core import fused
from uncode.core.belief import Belief
from uncode.core.noise import Draw, PhiloxNoise

FUSED = (torch.float32, torch.bfloat16)


def close(found: Tensor, wanted: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(found.double(), wanted.double(), atol=tolerance, rtol=tolerance, equal_nan=True)


def belief() -> None:
    """In one part and in several, with ties, tokens that are impossible, and a position that is nearly certain."""
    random = torch.Generator().manual_seed(0)
    for groups in (8, 64):
        fused.GROUPS = groups
        for dtype in FUSED:
            logits = (torch.randn(2, 4, 301, generator=random) * 4).to(dtype)
            logits[..., 5] = -torch.inf
            logits[0, 0, 7] = logits[0, 0].max()
            logits[0, 1], logits[0, 1, 9] = -torch.inf, 0
            logits[0, 2, 250] = 60
            logits[1, 0] = 1
            noise = PhiloxNoise(torch.tensor([[-5], [2**40 + 7]]), torch.tensor([[3], [11]]))
            draw = Draw(0.7, noise, torch.arange(4)[None] + 17)
            top, best, rest, second, slope, drawn = fused.sums(logits, draw)
            exact = Belief.of(logits.double())
            assert torch.equal(best, exact.token)
            assert drawn is not None and torch.equal(drawn, Belief.of(logits.double(), draw).token)
            assert torch.equal(top.double(), logits.double().amax(-1))
            for found, wanted in ((rest, exact.rest), (second, exact.second), (slope, exact.slope)):
                close(found, wanted)
            alone = fused.sums(logits[1:, 2:3])
            assert torch.equal(alone[2][0, 0], rest[1, 2]) and torch.equal(alone[4][0, 0], slope[1, 2])


def not_a_number() -> None:
    """What is not a number is never certain."""
    logits = torch.randn(1, 3, 100)
    logits[0, 0], logits[0, 1, 7], logits[0, 2] = torch.nan, torch.nan, -torch.inf
    _, best, rest, *_ = fused.sums(logits)
    assert rest.isnan().all() and bool((best < 100).all())


def layers() -> None:
    """Norms, gates and rotations, the latter also where keys and values are kept."""
    random = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random)

    for rows in (1, 2):
        x, delta, weight = draw(2, 3, 48), draw(2, 3, 48), draw(48)
        for found, wanted in zip(
            kernels.add_norm(x, delta, weight, 1e-5), pointwise.add_norm(x, delta, weight, 1e-5), strict=True
        ):
            close(found, wanted)
        close(kernels.add_norm(x, None, weight, 1e-5)[1], pointwise.add_norm(x, None, weight, 1e-5)[1])
        both = draw(2, 3, 96)
        close(kernels.gated(both), pointwise.gated(both))
        turns = draw(rows, 1, 3, 6)  # half a head need not be a power of two
        rotation = turns.cos(), turns.sin()
        for places in (None, torch.tensor([4, 0, 6]), torch.tensor([[1, 2, 3], [6, 5, 4]])):
            qkv, made = draw(2, 3, (6 + 2 * 3) * 12), list[list[Tensor]]()
            for turn in (True, False):
                kept = None if places is None else Kept(torch.zeros(3, 3, 7, 12), torch.zeros(3, 3, 7, 12), places)
                given = qkv.clone()
                if turn:
                    kernels.turn(given, 6, 3, rotation, kept)
                    split = given.view(2, 3, 12, 12).transpose(1, 2)
                    seen = (split[:, 6:9], split[:, 9:]) if kept is None else kept.read(2)
                    made.append([split[:, :6], *seen])
                else:
                    made.append(list(pointwise.heads_of(given, 6, 3, rotation, kept)))
            for found, wanted in zip(*made, strict=True):
                close(found, wanted)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    belief()
    not_a_number()
    layers()
    print("alike")
