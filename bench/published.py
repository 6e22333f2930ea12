"""Decoding in the style of the published code, on the weights of one of our networks: the baseline of the benchmarks.

This is a rewrite of Fast-dLLM's generate functions for LLaDA and of their modelling code: a module for each norm,
rotary embedding, activation and dropout; separate projections; RoPE in float32, applied to all keys at every step; KV
caches by concatenation, or by an index that every layer computes; logits for the whole window; a softmax in float64;
top-k row by row; and a host sync after every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncode.backbones.transformer.network import Layer as OurLayer
from uncode.backbones.transformer.network import RMSNorm as OurNorm
from uncode.backbones.transformer.network import Transformer
from uncode.backbones.transformer.shape import Shape

Pair = tuple[Tensor, Tensor]
"""Keys and values of a layer, without RoPE."""


class Norm(nn.Module):
    def __init__(self, like: OurNorm) -> None:
        super().__init__()
        self.weight, self.eps = like.weight, like.eps

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(enabled=False, device_type=x.device.type):
            dtype = x.dtype
            x = x.to(torch.float32)
            variance = x.pow(2).mean(-1, keepdim=True)
            x = x * torch.rsqrt(variance + self.eps)
            x = x.to(dtype)
        return self.weight * x


class Rotary(nn.Module):
    def __init__(self, shape: Shape, device: torch.device) -> None:
        super().__init__()
        steps = torch.arange(0, shape.head_width, 2, device=device, dtype=torch.float) / shape.head_width
        positions = torch.arange(shape.context, device=device, dtype=torch.float)
        angles = torch.einsum("i, j -> ij", positions, 1.0 / shape.theta**steps)
        both = torch.cat((angles, angles), dim=-1)
        self.sin, self.cos = both.sin()[None, None], both.cos()[None, None]

    def forward(self, q: Tensor, k: Tensor, end: Tensor | None = None) -> Pair:
        wide_q, wide_k = q.float(), k.float()
        with torch.autocast(q.device.type, enabled=False):
            queries, keys = wide_q.shape[-2], wide_k.shape[-2]
            sin, cos = self.sin[:, :, :keys].type_as(wide_q), self.cos[:, :, :keys].type_as(wide_q)
            last = keys if end is None else int(end.item())
            here = slice(last - queries, last)
            wide_q = self._turned(sin[:, :, here], cos[:, :, here], wide_q)
            wide_k = self._turned(sin, cos, wide_k)
        return wide_q.type_as(q), wide_k.type_as(k)

    @staticmethod
    def _turned(sin: Tensor, cos: Tensor, t: Tensor) -> Tensor:
        first, second = t.view(*t.shape[:-1], 2, -1).unbind(dim=-2)
        return ((t * cos) + (torch.cat((-second, first), dim=-1) * sin)).to(t.dtype)


class Layer(nn.Module):
    def __init__(self, layer: OurLayer, rotary: Rotary, attention: Callable[..., Tensor]) -> None:
        super().__init__()
        self.own, self.rotary, self.attend = layer, rotary, attention
        self.attention_norm, self.mlp_norm = Norm(layer.attention_norm), Norm(layer.mlp_norm)
        self.act, self.dropout = nn.SiLU(), nn.Dropout(0.0)

    def forward(self, x: Tensor, past: Pair | None, replace: Tensor | None) -> tuple[Tensor, Pair]:
        h = self.attention_norm(x)
        seen, kept = self._attention(self.own.q(h), self.own.k(h), self.own.v(h), past, replace)
        x = x + self.dropout(seen)
        h = self.mlp_norm(x)
        h, up = self.own.gate(h), self.own.up(h)
        return x + self.dropout(self.own.down(self.act(h) * up)), kept

    def _attention(
        self, q: Tensor, k: Tensor, v: Tensor, past: Pair | None, replace: Tensor | None
    ) -> tuple[Tensor, Pair]:
        rows, length, width = q.shape
        q = q.view(rows, length, self.own.heads, -1).transpose(1, 2)
        k, v = (t.view(rows, length, self.own.key_heads, -1).transpose(1, 2) for t in (k, v))
        end = None
        if past is not None and replace is None:
            k, v = (torch.cat(both, dim=-2) for both in zip(past, (k, v), strict=True))
        elif past is not None and replace is not None:
            positions = replace[:1].nonzero(as_tuple=True)[1]
            past[0][:, :, positions] = k
            past[1][:, :, positions] = v
            (k, v), end = past, positions.max() + 1
        kept = (k, v)
        q, k = self.rotary(q, k, end)
        seen = self.attend(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False)
        seen = seen.transpose(1, 2).contiguous().view(rows, length, width)
        return self.own.out(seen), kept


class Published(nn.Module):
    """The network in the published structure. On a GPU its attention is a compiled function, as published."""

    def __init__(self, network: Transformer) -> None:
        super().__init__()
        device = network.embed.weight.device
        attention: Callable[..., Tensor] = functional.scaled_dot_product_attention
        if device.type == "cuda":
            attention = torch.compile(functional.scaled_dot_product_attention)
        rotary = Rotary(network.shape, device)
        self.embed, self.head, self.dropout = network.embed, network.head, nn.Dropout(0.0)
        self.layers = [Layer(layer, rotary, attention) for layer in network.layers if isinstance(layer, OurLayer)]
        self.norm = Norm(network.norm)
        self.eval()
        for layer in self.layers:
            layer.eval()

    def forward(
        self, tokens: Tensor, past: list[Pair] | None = None, replace: Tensor | None = None
    ) -> tuple[Tensor, list[Pair]]:
        x = self.dropout(self.embed(tokens))
        present = []
        for number, layer in enumerate(self.layers):
            x, kept = layer(x, None if past is None else past[number], replace)
            present.append(kept)
        return self.head(self.norm(x)), present


def _transfer(logits: Tensor, masked: Tensor, tokens: Tensor, count: Tensor) -> Pair:
    """The proposal, and the positions to write: the most confident ones of each row."""
    proposal = torch.argmax(logits, dim=-1)
    probability = functional.softmax(logits.to(torch.float64), dim=-1)
    confidence = torch.squeeze(torch.gather(probability, dim=-1, index=torch.unsqueeze(proposal, -1)), -1)
    proposal = torch.where(masked, proposal, tokens)
    confidence = torch.where(masked, confidence, -torch.inf)
    chosen = torch.zeros_like(proposal, dtype=torch.bool)
    for row in range(len(confidence)):
        _, best = torch.topk(confidence[row], k=int(count[row]))
        chosen[row, best] = True
    return proposal, chosen


@torch.no_grad()
def published(
    model: Published,
    prompt: Tensor,
    length: int,
    block: int,
    cache: str,
    mask_id: int,
    skipped: int = 0,
    per_forward: int = 1,
) -> Iterator[Tensor]:
    """Decode so many tokens per forward, block by block from left to right. Yields the canvas after every step."""
    canvas = torch.full((len(prompt), prompt.shape[1] + length), mask_id, dtype=torch.long, device=prompt.device)
    canvas[:, : prompt.shape[1]] = prompt
    count = torch.full((len(prompt), 1), per_forward, dtype=torch.int64, device=prompt.device)
    canvas[:, prompt.shape[1] : prompt.shape[1] + skipped * block] = prompt[:, :1]
    for start in range(prompt.shape[1] + skipped * block, canvas.shape[1], block):
        end = start + block
        past: list[Pair] | None = None
        replace = torch.zeros_like(canvas, dtype=torch.bool)
        replace[:, start:end] = True
        while True:
            first, last = (0, canvas.shape[1]) if past is None else (start, end if cache == "dual" else canvas.shape[1])
            here = canvas[:, first:last]
            masked = here == mask_id
            masked[:, end - first :] = False
            logits, present = model(here, past, replace if past is not None and cache == "dual" else None)
            proposal, chosen = _transfer(logits, masked, here, count)
            here[chosen] = proposal[chosen]
            if cache == "dual" and past is None:
                past = present
            elif cache == "prefix" and past is None:
                past = [(k[:, :, :start], v[:, :, :start]) for k, v in present]
            yield canvas
            if (canvas[:, start:end] == mask_id).sum() == 0:
                break
