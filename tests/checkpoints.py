"""Small random checkpoints in the published names and configurations of every dialect.

Weights are stateless noise, so the same checkpoint can be built wherever the published code runs and
here; nothing but inputs and outputs is recorded. Five of each dialect, no two of one shape.
"""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

import uncode
from tests.toy import EOS, EOT, MASK, VOCAB, numbers
from uncode.backbones.denoiser import TransformerDenoiser

Config = dict[str, Any]
COUNT = 5
SHARPNESS = 2.0

LLADA_SHAPES = [  # width, layers, heads, key heads, hidden, vocabulary, theta, bias of q, k and v
    (32, 2, 4, 4, 48, 61, 500000.0, False),
    (48, 3, 4, 4, 64, 67, 500000.0, False),
    (32, 2, 4, 2, 96, 61, 10000.0, False),
    (64, 1, 2, 2, 80, 71, 500000.0, True),
    (40, 4, 5, 1, 56, 83, 500000.0, False),
]
DREAM_SHAPES = [
    (32, 2, 4, 2, 48, 61, 1000000.0),
    (56, 3, 7, 1, 64, 67, 1000000.0),
    (32, 2, 4, 4, 96, 61, 10000.0),
    (64, 1, 4, 2, 80, 71, 1000000.0),
    (48, 4, 6, 2, 56, 83, 1000000.0),
]

LLAMA_SHAPES = [  # width, layers, heads, key heads, width of a head, hidden, vocabulary, theta, tied
    (32, 2, 4, 2, 8, 48, 61, 500000.0, False),
    (48, 3, 6, 1, 8, 64, 67, 500000.0, True),
    (32, 2, 4, 4, 16, 96, 61, 10000.0, False),
    (64, 1, 2, 2, 24, 80, 71, 1000000.0, True),
    (40, 4, 5, 1, 12, 56, 83, 1000000.0, False),
]
BLOCK_LENGTHS = [4, 4, 8, 5, 16]
LLADA2_EXPERTS = [  # experts, of a token, width, shared, layers before, groups, open groups, share of RoPE, scale
    (8, 2, 16, 1, 1, 4, 2, 0.5, 2.5),
    (16, 4, 12, 1, 1, 4, 2, 0.5, 2.5),
    (8, 3, 24, 2, 0, 1, 1, 0.25, 1.0),
    (4, 1, 32, None, 0, 2, 1, 0.5, 2.0),
    (32, 8, 8, 1, 2, 8, 4, 0.5, 2.5),
]
LLADA_MOE_EXPERTS = [  # experts, of a token, width of one, width of the shared one, layers with experts, bias, norm
    (8, 2, 16, None, [0, 1], False, True),
    (16, 4, 12, 24, [1, 1, 0], False, True),
    (8, 3, 24, None, [1, 1], True, False),
    (4, 1, 32, 40, [1], True, True),
    (32, 8, 8, None, [1, 1, 1, 1], False, True),
]


def llada_config(number: int) -> Config:
    """The fields of LLaDA-8B's config.json that decide the network, in a small size."""
    width, layers, heads, key_heads, hidden, vocab, theta, bias = LLADA_SHAPES[number]
    return {
        "architectures": ["LLaDAModelLM"],
        "model_type": "llada",
        "activation_type": "silu",
        "alibi": False,
        "attention_dropout": 0.0,
        "attention_layer_norm": False,
        "bias_for_layer_norm": False,
        "block_group_size": 1,
        "block_type": "llama",
        "d_model": width,
        "embedding_dropout": 0.0,
        "embedding_size": vocab,
        "eos_token_id": vocab - 3,
        "flash_attention": False,
        "include_bias": False,
        "include_qkv_bias": bias,
        "init_device": "cpu",
        "input_emb_norm": False,
        "layer_norm_type": "rms",
        "layer_norm_with_affine": True,
        "mask_token_id": vocab - 1,
        "max_sequence_length": 128,
        "mlp_hidden_size": hidden,
        "mlp_ratio": 4,
        "multi_query_attention": None,
        "n_heads": heads,
        "n_kv_heads": key_heads,
        "n_layers": layers,
        "pad_token_id": vocab - 3,
        "residual_dropout": 0.0,
        "rms_norm_eps": 1e-5,
        "rope": True,
        "rope_full_precision": True,
        "rope_theta": theta,
        "scale_logits": False,
        "vocab_size": vocab,
        "weight_tying": False,
    }


def dream_config(number: int) -> Config:
    """The fields of Dream-v0's config.json that decide the network, in a small size."""
    width, layers, heads, key_heads, hidden, vocab, theta = DREAM_SHAPES[number]
    return {
        "architectures": ["DreamModel"],
        "model_type": "Dream",
        "attention_dropout": 0.0,
        "bos_token_id": vocab - 3,
        "eos_token_id": vocab - 3,
        "hidden_act": "silu",
        "hidden_size": width,
        "intermediate_size": hidden,
        "mask_token_id": vocab - 1,
        "max_position_embeddings": 128,
        "max_window_layers": layers,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": key_heads,
        "pad_token_id": vocab - 3,
        "rms_norm_eps": 1e-6,
        "rope_scaling": None,
        "rope_theta": theta,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "vocab_size": vocab,
    }


def llama_config(number: int, has_head_dim: bool = True) -> Config:
    """The fields that decide the network where it is built like LLaMA or Qwen in transformers, in a small size."""
    width, layers, heads, key_heads, head_dim, hidden, vocab, theta, tied = LLAMA_SHAPES[number]
    return {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": vocab - 3,
        "eos_token_id": vocab - 3,
        **({"head_dim": head_dim} if has_head_dim else {}),
        "hidden_act": "silu",
        "hidden_size": width,
        "intermediate_size": hidden,
        "mask_token_id": vocab - 1,
        "max_position_embeddings": 128,
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": key_heads,
        "pad_token_id": vocab - 3,
        "rms_norm_eps": 1e-6,
        "rope_scaling": None,
        "rope_theta": theta,
        "tie_word_embeddings": tied,
        "vocab_size": vocab,
    }


def illada_config(number: int) -> Config:
    return llama_config(number, has_head_dim=False) | {
        "architectures": ["ILLaDAForCausalLM"],
        "model_type": "illada",
        "layer_norm_eps": None,
        "resid_pdrop": 0.0,
    }


def stable_diffcoder_config(number: int) -> Config:
    return llama_config(number, has_head_dim=False) | {
        "architectures": ["StableDiffcoderForCausalLM"],
        "model_type": "llama",
        "block_length": BLOCK_LENGTHS[number],
    }


def sdar_config(number: int) -> Config:
    return llama_config(number) | {
        "architectures": ["SDARForCausalLM"],
        "model_type": "sdar",
        "block_length": BLOCK_LENGTHS[number],
    }


def dream_reasoner_config(number: int) -> Config:
    return llama_config(number) | {
        "architectures": ["DreamForCausalLM"],
        "model_type": "Dream",
        "block_size": BLOCK_LENGTHS[number],
    }


def fast_dllm_v2_config(number: int) -> Config:
    return llama_config(number, has_head_dim=False) | {
        "architectures": ["Fast_dLLM_QwenForCausalLM"],
        "model_type": "Fast_dLLM_Qwen",
        "bd_size": BLOCK_LENGTHS[number],
    }


def nemotron_config(number: int) -> Config:
    rope = {
        "rope_type": "yarn",
        "rope_theta": LLAMA_SHAPES[number][7],
        "factor": [16.0, 4.0, 8.0, 16.0, 2.0][number],
        "original_max_position_embeddings": [64, 128, 256, 4096, 16384][number],
        "beta_fast": [32.0, 8.0, 32.0, 32.0, 4.0][number],
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "llama_4_scaling_beta": 0.1,
    }
    return llama_config(number) | {
        "architectures": ["NemotronLabsDiffusionModel"],
        "model_type": "nemotron_labs_diffusion",
        "block_size": BLOCK_LENGTHS[number],
        "dlm_paradigm": "bidirectional",
        "rope_parameters": rope,
        "rope_scaling": None,
        "tie_word_embeddings": False,
    }


def nemotron_weights(config: Config, seed: int) -> dict[str, Tensor]:
    def published(name: str) -> str:
        return name.replace("model.", "encoder.", 1).replace("lm_head", "diffusion_head")

    return {published(name): weight for name, weight in llama_weights(config, seed).items()}


def coda_config(number: int) -> Config:
    """CoDA's head is never tied, and its heads together are as wide as the network."""
    made = llama_config(number, has_head_dim=False)
    made |= {"architectures": ["CoDALanguageModel"], "model_type": "CoDA", "tie_word_embeddings": False}
    return made | {"head_dim": made["hidden_size"] // made["num_attention_heads"]}


def a2d_config(number: int) -> Config:
    return llama_config(number) | {"architectures": ["A2DQwen3LMHeadModel"], "model_type": "a2d-qwen3"}


def a2d_bd3lm_config(number: int) -> Config:
    return a2d_config(number) | {"block_size": BLOCK_LENGTHS[number]}


def llada2_config(number: int) -> Config:
    experts, active, hidden, shared, first, groups, opened, part, scale = LLADA2_EXPERTS[number]
    return llama_config(number) | {
        "architectures": ["LLaDA2MoeModelLM"],
        "block_length": BLOCK_LENGTHS[number],
        "first_k_dense_replace": first,
        "model_type": "llada2_moe",
        "moe_intermediate_size": hidden,
        "n_group": groups,
        "norm_head": False,
        "norm_topk_prob": True,
        "num_experts": experts,
        "num_experts_per_tok": active,
        "num_shared_experts": shared,
        "partial_rotary_factor": part,
        "routed_scaling_factor": scale,
        "score_function": "sigmoid",
        "topk_group": opened,
        "use_bias": False,
        "use_qk_norm": number != 2,
        "use_qkv_bias": number == 3,
    }


def llada_moe_config(number: int) -> Config:
    experts, active, hidden, shared, kinds, has_bias, has_norm = LLADA_MOE_EXPERTS[number]
    made = llama_config(number, has_head_dim=False)
    return made | {
        "architectures": ["LLaDAMoEModelLM"],
        "clip_qkv": None,
        "dense_intermediate_size": made.pop("intermediate_size"),
        "expert_intermediate_size": hidden,
        "model_type": "llada",
        "moe_layer_freq": kinds,
        "moe_router_enable_expert_bias": has_bias,
        "moe_router_score_function": "softmax",
        "num_experts": experts,
        "num_experts_per_tok": active,
        "partial_rotary_factor": 1.0,
        "qk_layernorm": has_norm,
        "shared_expert_intermediate_size": shared,
    }


def llada_weights(config: Config, seed: int) -> dict[str, Tensor]:
    """Float32 weights under LLaDA's parameter names."""
    width, hidden, vocab = config["d_model"], config["mlp_hidden_size"], config["embedding_size"]
    keys = width // config["n_heads"] * config["n_kv_heads"]
    shapes = {"model.transformer.wte.weight": (vocab, width)}
    for layer in range(config["n_layers"]):
        block = f"model.transformer.blocks.{layer}"
        shapes |= {
            f"{block}.attn_norm.weight": (width,),
            f"{block}.q_proj.weight": (width, width),
            f"{block}.k_proj.weight": (keys, width),
            f"{block}.v_proj.weight": (keys, width),
            f"{block}.attn_out.weight": (width, width),
            f"{block}.ff_norm.weight": (width,),
            f"{block}.ff_proj.weight": (hidden, width),
            f"{block}.up_proj.weight": (hidden, width),
            f"{block}.ff_out.weight": (width, hidden),
        }
        if config["include_qkv_bias"]:
            shapes |= {f"{block}.{p}_proj.bias": (n,) for p, n in (("q", width), ("k", keys), ("v", keys))}
    shapes |= {"model.transformer.ln_f.weight": (width,), "model.transformer.ff_out.weight": (vocab, width)}
    return fill(shapes, seed, head="model.transformer.ff_out.weight")


def dream_weights(config: Config, seed: int) -> dict[str, Tensor]:
    return llama_weights(config, seed, has_bias=True)


def llama_weights(config: Config, seed: int, has_bias: bool = False, has_norm: bool = False) -> dict[str, Tensor]:
    """Float32 weights under the parameter names of transformers' LLaMA and Qwen, which are Dream's too."""
    width, hidden, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    head_dim = config.get("head_dim", width // config["num_attention_heads"])
    queries, keys = head_dim * config["num_attention_heads"], head_dim * config["num_key_value_heads"]
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab, width)}
    for layer in range(config["num_hidden_layers"]):
        block = f"model.layers.{layer}"
        shapes |= {
            f"{block}.input_layernorm.weight": (width,),
            f"{block}.self_attn.q_proj.weight": (queries, width),
            f"{block}.self_attn.q_proj.bias": (queries,),
            f"{block}.self_attn.k_proj.weight": (keys, width),
            f"{block}.self_attn.k_proj.bias": (keys,),
            f"{block}.self_attn.v_proj.weight": (keys, width),
            f"{block}.self_attn.v_proj.bias": (keys,),
            f"{block}.self_attn.o_proj.weight": (width, queries),
            f"{block}.post_attention_layernorm.weight": (width,),
            f"{block}.mlp.gate_proj.weight": (hidden, width),
            f"{block}.mlp.up_proj.weight": (hidden, width),
            f"{block}.mlp.down_proj.weight": (width, hidden),
        }
        if has_norm:
            shapes |= {f"{block}.self_attn.{p}_norm.weight": (head_dim,) for p in "qk"}
    if not has_bias:
        shapes = {name: shape for name, shape in shapes.items() if not name.endswith("bias")}
    shapes |= {"model.norm.weight": (width,)}
    if config["tie_word_embeddings"]:
        return fill(shapes, seed, head="model.embed_tokens.weight")
    return fill(shapes | {"lm_head.weight": (vocab, width)}, seed, head="lm_head.weight")


def mlp_shapes(stem: str, width: int, hidden: int) -> dict[str, tuple[int, ...]]:
    sides = {"gate": (hidden, width), "up": (hidden, width), "down": (width, hidden)}
    return {f"{stem}.{name}_proj.weight": shape for name, shape in sides.items()}


def experts_shapes(config: Config, stem: str, hidden: int) -> dict[str, tuple[int, ...]]:
    width, count = config["hidden_size"], config["num_experts"]
    shapes: dict[str, tuple[int, ...]] = {f"{stem}.gate.weight": (count, width)}
    for expert in range(count):
        shapes |= mlp_shapes(f"{stem}.experts.{expert}", width, hidden)
    return shapes


def llada2_weights(config: Config, seed: int) -> dict[str, Tensor]:
    """Float32 weights under LLaDA2's parameter names."""
    width, hidden, vocab = config["hidden_size"], config["moe_intermediate_size"], config["vocab_size"]
    head_dim, heads = config["head_dim"], config["num_attention_heads"]
    joined = head_dim * (heads + 2 * config["num_key_value_heads"])
    shapes: dict[str, tuple[int, ...]] = {"model.word_embeddings.weight": (vocab, width)}
    for layer in range(config["num_hidden_layers"]):
        block = f"model.layers.{layer}"
        shapes |= {f"{block}.{name}_layernorm.weight": (width,) for name in ("input", "post_attention")}
        shapes |= {f"{block}.attention.query_key_value.weight": (joined, width)}
        if config["use_qkv_bias"]:
            shapes |= {f"{block}.attention.query_key_value.bias": (joined,)}
        if config["use_qk_norm"]:
            shapes |= {f"{block}.attention.{name}_layernorm.weight": (head_dim,) for name in ("query", "key")}
        shapes |= {f"{block}.attention.dense.weight": (width, head_dim * heads)}
        if layer < config["first_k_dense_replace"]:
            shapes |= mlp_shapes(f"{block}.mlp", width, config["intermediate_size"])
            continue
        shapes |= experts_shapes(config, f"{block}.mlp", hidden)
        shapes |= {f"{block}.mlp.gate.expert_bias": (config["num_experts"],)}
        if config["num_shared_experts"]:
            shapes |= mlp_shapes(f"{block}.mlp.shared_experts", width, hidden * config["num_shared_experts"])
    shapes |= {"model.norm.weight": (width,)}
    if config["tie_word_embeddings"]:
        return fill(shapes, seed, head="model.word_embeddings.weight")
    return fill(shapes | {"lm_head.weight": (vocab, width)}, seed, head="lm_head.weight")


def llada_moe_weights(config: Config, seed: int) -> dict[str, Tensor]:
    """Float32 weights under LLaDA-MoE's parameter names."""
    width, vocab, shared = config["hidden_size"], config["vocab_size"], config["shared_expert_intermediate_size"]
    head_dim = width // config["num_attention_heads"]
    keys = head_dim * config["num_key_value_heads"]
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab, width)}
    for layer, kind in enumerate(config["moe_layer_freq"]):
        block = f"model.layers.{layer}"
        sides = {"q": (width, width), "k": (keys, width), "v": (keys, width), "o": (width, width)}
        shapes |= {f"{block}.{name}_layernorm.weight": (width,) for name in ("input", "post_attention")}
        shapes |= {f"{block}.self_attn.{name}_proj.weight": shape for name, shape in sides.items()}
        if config["qk_layernorm"]:
            shapes |= {f"{block}.self_attn.{name}_norm.weight": (head_dim,) for name in "qk"}
        if not kind:
            shapes |= mlp_shapes(f"{block}.mlp", width, config["dense_intermediate_size"])
            continue
        shapes |= experts_shapes(config, f"{block}.mlp", config["expert_intermediate_size"])
        if config["moe_router_enable_expert_bias"]:
            shapes |= {f"{block}.mlp.expert_bias": (config["num_experts"],)}
        if shared:
            shapes |= mlp_shapes(f"{block}.shared_expert", width, shared)
    shapes |= {"model.norm.weight": (width,)}
    if config["tie_word_embeddings"]:
        return fill(shapes, seed, head="model.embed_tokens.weight")
    return fill(shapes | {"lm_head.weight": (vocab, width)}, seed, head="lm_head.weight")


def fill(shapes: dict[str, tuple[int, ...]], seed: int, head: str) -> dict[str, Tensor]:
    weights = {}
    for stream, (name, shape) in enumerate(shapes.items()):
        noise = numbers(seed, stream, *shape)
        if name.endswith("bias"):
            noise = noise / 2
        elif len(shape) == 1:
            noise = 1 + noise / 8
        elif name == head:
            noise = noise * SHARPNESS / shape[1] ** 0.5
        elif "wte" not in name and "embed" not in name:
            noise = noise / shape[1] ** 0.5
        weights[name] = noise.float()
    return weights


DIALECTS = {
    "llada": (llada_config, llada_weights),
    "dream": (dream_config, dream_weights),
    "illada": (illada_config, llama_weights),
    "stable_diffcoder": (stable_diffcoder_config, llama_weights),
    "sdar": (sdar_config, partial(llama_weights, has_norm=True)),
    "dream_reasoner": (dream_reasoner_config, partial(llama_weights, has_norm=True)),
    "coda": (coda_config, partial(llama_weights, has_norm=True)),
    "a2d": (a2d_config, partial(llama_weights, has_norm=True)),
    "a2d_bd3lm": (a2d_bd3lm_config, partial(llama_weights, has_norm=True)),
    "nemotron": (nemotron_config, nemotron_weights),
    "fast_dllm_v2": (fast_dllm_v2_config, partial(llama_weights, has_bias=True)),
    "llada_moe": (llada_moe_config, llada_moe_weights),
    "llada2": (llada2_config, llada2_weights),
}


WITH_EXPERTS = ("llada_moe", "llada2")


def save(folder: Path, config: Config, weights: dict[str, Tensor], shards: int = 1) -> Path:
    """A checkpoint folder as on the hub: config.json and one file of weights, or several with an index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if shards == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return folder
    names, index = list(weights), {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = {name: weights[name] for name in names[shard::shards]}
        save_file(part, folder / file, metadata={"format": "pt"})
        index |= dict.fromkeys(part, file)
    size = sum(t.numel() * t.element_size() for t in weights.values())
    text = json.dumps({"metadata": {"total_size": size}, "weight_map": index})
    (folder / "model.safetensors.index.json").write_text(text)
    return folder


def checkpoint(folder: Path, dialect: str, number: int, shards: int = 1) -> Path:
    """One of the five checkpoints of a dialect, in a folder."""
    config, weights = DIALECTS[dialect]
    made = config(number)
    return save(folder, made, weights(made, seed=number), shards)


def tokens(vocab: int, seed: int, rows: int, length: int) -> Tensor:
    """Ordinary token ids (no mask, no EOS tokens), `[rows, length]`."""
    noise = numbers(seed, 77, rows, length).abs()
    return (noise * 1e6).long() % (vocab - 3)


class Published:
    """What matters of a model of a published class, for `uncode.wrap`."""

    def __init__(self, config: Config, weights: dict[str, Tensor]) -> None:
        self.config = SimpleNamespace(**config, name_or_path="org/published")
        self.weights = weights

    def state_dict(self) -> dict[str, Tensor]:
        return self.weights

    def __call__(self) -> None:
        """A model can be called; this one is only asked for its parameters."""


@cache
def like_the_toy(dialect: str, seed: int) -> TransformerDenoiser:
    """A float64 model of a dialect with the toy network's vocabulary and special ids."""
    config, weights = DIALECTS[dialect]
    made = config(seed % 2) | {"vocab_size": VOCAB, "embedding_size": VOCAB}
    made |= {"mask_token_id": MASK, "eos_token_id": [EOS, EOT]}
    found = uncode.wrap(Published(made, {name: t.double() for name, t in weights(made, 50 + seed).items()}))
    assert isinstance(found, TransformerDenoiser)
    return found
