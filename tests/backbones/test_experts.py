"""A mixture of experts: the choice of a token, loading into one tensor, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import uncode
from tests.checkpoints import DIALECTS, WITH_EXPERTS, checkpoint, like_the_toy, save
from uncode import Canvas, UncodeError, decode, presets
from uncode.backbones.dialects.llada2 import LLADA2
from uncode.backbones.loading import checkpoint as checkpoints
from uncode.backbones.transformer.experts import choose
from uncode.backbones.transformer.mixture import Mixture
from uncode.testing import check_denoiser

Weights = dict[str, Tensor]
EXPERT = "model.layers.1.mlp.experts.7.down_proj.weight"
LAST = "model.layers.1.mlp.experts.7.up_proj.weight"


def test_a_token_chooses_from_its_groups() -> None:
    """Two of four groups of two, and in them the best three, by the score and the bias; weights are scores alone."""
    scores = torch.tensor([[0.9, 0.1, 0.6, 0.5, 0.8, 0.7, 0.1, 0.2]])
    bias = torch.tensor([0, 0, 0, 0, 0, 0.2, 0, 0])
    mixture = Mixture(8, 3, 1, score="sigmoid", has_bias=True, groups=4, open_groups=2, normed=True, scale=2.0)
    chosen, weights = choose(scores.logit(), bias, mixture)
    assert chosen.tolist() == [[5, 4, 2]]  # 0 is the best of all, but of a group that is closed
    torch.testing.assert_close(weights, 2 * torch.tensor([[0.7, 0.8, 0.6]]) / 2.1)


def test_equals_are_chosen_by_their_number() -> None:
    chosen, weights = choose(torch.zeros(2, 6), None, Mixture(6, 2, 1, groups=3, open_groups=2))
    assert chosen.tolist() == [[0, 1], [0, 1]]
    torch.testing.assert_close(weights, torch.full((2, 2), 1 / 6))
    chosen, weights = choose(
        torch.zeros(1, 3), torch.tensor([0, 0.5, 0]), Mixture(3, 1, 1, has_bias=True, weighs_bias=True)
    )
    assert chosen.tolist() == [[1]] and weights.item() == pytest.approx(1 / 3 + 0.5)


@pytest.mark.parametrize("wrong", [{"groups": 3}, {"groups": 4, "open_groups": 5}, {"groups": 4}, {"groups": 8}])
def test_groups_that_do_not_fit(wrong: dict[str, int]) -> None:
    with pytest.raises(UncodeError, match="3 of 8 experts cannot be chosen from"):
        Mixture(8, 3, 1, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("dialect", WITH_EXPERTS)
def test_check_denoiser(dialect: str) -> None:
    check_denoiser(like_the_toy(dialect, 0))


@pytest.mark.parametrize("dialect", WITH_EXPERTS)
def test_a_row_is_the_same_alone_and_in_a_batch(dialect: str) -> None:
    model = like_the_toy(dialect, 1)
    prompts = [[1, 2, 3], [4], [5, 6, 7, 8, 9]]
    for sampler in (
        presets.confidence(block_length=4),
        presets.edit(threshold=0.3, edit_threshold=0.1, block_length=4),
    ):
        together = decode(model, Canvas.after_prompt(prompts, length=12, mask_id=model.mask_id), sampler)
        for row, prompt in enumerate(prompts):
            alone = decode(model, Canvas.after_prompt([prompt], length=12, mask_id=model.mask_id), sampler)
            assert torch.equal(alone.generated[0], together.generated[row])


@pytest.mark.parametrize("dialect", WITH_EXPERTS)
def test_experts_that_do_not_fit_are_listed(dialect: str, tmp_path: Path) -> None:
    config, weights = DIALECTS[dialect]
    faults: dict[str, Callable[[Weights], Any]] = {
        rf"missing: {EXPERT}; unexpected: {EXPERT}s": lambda w: w.update({f"{EXPERT}s": w.pop(EXPERT)}),
        rf"missing: {LAST}": lambda w: w.pop(LAST),
        r"unexpected: model\.layers\.1\.mlp\.experts\.8\.up_proj\.weight": lambda w: w.update(
            {LAST.replace("7", "8"): w[LAST]}
        ),
        rf"of another shape: {EXPERT} \[32, 15\] instead of \[32, 16\]": lambda w: w.update({EXPERT: w[EXPERT][:, 1:]}),
        r"unexpected: model\.layers\.0\.mlp\.experts": lambda w: w.update({LAST.replace("1", "0"): w[LAST]}),
        r"missing: model\.layers\.1\.mlp\.gate\.weight": lambda w: w.pop("model.layers.1.mlp.gate.weight"),
    }
    for number, (message, change) in enumerate(faults.items()):
        wrong = weights(config(0), 0)
        change(wrong)
        wrong = {name: t.clone() for name, t in wrong.items()}
        with pytest.raises(UncodeError, match=message):
            uncode.load(save(tmp_path / str(number), config(0), wrong, shards=2), device="cpu")


def test_joined_projections_that_do_not_fit(tmp_path: Path) -> None:
    config, weights = DIALECTS["llada2"]
    wrong = weights(config(0), 0)
    name = "model.layers.0.attention.query_key_value.weight"
    wrong[name] = wrong[name][1:].contiguous()
    with pytest.raises(UncodeError, match=rf"{name} \[63, 32\] instead of \[64, 32\]"):
        uncode.load(save(tmp_path, config(0), wrong), device="cpu")


def test_each_tensor_is_read_into_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One allocation for all experts of a layer, and pieces smaller than a tensor. Routers stay in float32."""
    monkeypatch.setattr(checkpoints, "_READ_BYTES", 100)
    made: list[tuple[int, ...]] = []
    allocate = checkpoints.empty_tensor

    def counted(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        made.append(tuple(shape))
        return allocate(shape, dtype, device)

    monkeypatch.setattr(checkpoints, "empty_tensor", counted)
    config, weights = DIALECTS["llada2"]
    stored = weights(config(0), 0)
    model: Any = uncode.load(checkpoint(tmp_path, "llada2", 0, shards=3), device="cpu", dtype="bfloat16")
    experts, sides = model.network.layers[1].experts, ("gate", "up")
    names = [f"model.layers.1.mlp.experts.{n}.{side}_proj.weight" for n in range(8) for side in sides]
    assert torch.equal(experts.gate_ups.flatten(0, 1), torch.cat([stored[name] for name in names]).bfloat16())
    assert torch.equal(experts.bias, stored["model.layers.1.mlp.gate.expert_bias"])
    assert experts.router.weight.dtype == experts.bias.dtype == torch.float32
    assert torch.equal(
        model.network.layers[1].v.weight, stored["model.layers.1.attention.query_key_value.weight"][-16:].bfloat16()
    )
    largest = max(made, key=lambda shape: torch.Size(shape).numel())
    assert largest == (8, 32, 32) and made.count(largest) == 1


@pytest.mark.parametrize("dialect", WITH_EXPERTS)
def test_experts_are_not_packed(dialect: str, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, dialect, 0)
    with pytest.raises(UncodeError, match=r"^experts cannot be packed: load this model without `weights=`\.$"):
        uncode.load(folder, device="cpu", weights="int8")
    network: Any = uncode.load(folder, device="cpu").network
    assert network.shape.weight_bytes(4) == sum(p.nbytes for p in network.parameters())


def test_the_norm_of_a_configuration_that_is_silent() -> None:
    """LLaDA2MoeConfig says 1e-5, and Qwen's configuration 1e-6."""
    config = DIALECTS["llada2"][0](0)
    del config["rms_norm_eps"]
    assert LLADA2.shape(config).eps == 1e-5


def test_settings_that_are_not_published(tmp_path: Path) -> None:
    for dialect, key, value in (
        ("llada2", "score_function", "softmax"),
        ("llada2", "use_bias", True),
        ("llada_moe", "clip_qkv", 8.0),
        ("llada_moe", "moe_router_score_function", "sigmoid"),
        ("llada_moe", "moe_layer_freq", [1]),
    ):
        config, weights = DIALECTS[dialect]
        folder = save(tmp_path / key, config(0) | {key: value}, weights(config(0), 0))
        with pytest.raises(UncodeError, match=rf"this LLaDA.* checkpoint has {key}="):
            uncode.load(folder, device="cpu")
