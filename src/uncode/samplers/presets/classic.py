"""The samplers up to 2025, each as one expression. Flat and boring on purpose: read one, and you have read it all.

Each docstring names its source and quotes each default. `steps=None` means one token a step.
"""

from __future__ import annotations

from typing import Literal, Unpack

from ...core.pieces.blocks import Blocks
from ...core.pieces.policy import Policy, Sampler
from ...core.pieces.propose import Greedy, Proposal, Sample
from ...core.pieces.remask import LeastConfident, LoopQuota
from ...core.pieces.score import (
    Confidence,
    Defer,
    Exp,
    ExponentialPosition,
    Gumbel,
    Margin,
    NegEntropy,
    Score,
    Uniform,
)
from ...core.pieces.select import Decay, EntropyBudget, Even, Exactly, Factor, Selector, TauLeap, Threshold, TopK
from ..registry import Cache, Calibration, cache_named, calibrated, drawn, preset


@preset
def uniform(*, steps: int | None = None, temperature: float = 0.0) -> Sampler:
    """Random order: masked positions are picked uniformly.

    Source: Austin et al., Structured Denoising Diffusion Models in Discrete State-Spaces, NeurIPS 2021
        (arXiv:2107.03006); LLaDA generate.py, remasking='random'.
    Default steps: None, "the number of denoising steps to be equal to the sequence length" (Uncode, Sec. 5).
    Default temperature: 0.0, "the temperature is set to 0.0" (Uncode, App. A).
    Cost: one forward a token, or `steps`; no memory.
    """
    return Sampler(Policy(Uniform(), TopK(Even(steps))), drawn(temperature), name="uniform")


@preset
def confidence(*, steps: int | None = None, temperature: float = 0.0) -> Sampler:
    """The most probable proposal first.

    Source: Chang et al., MaskGIT, CVPR 2022 (arXiv:2202.04200); Nie et al., Large Language Diffusion Models
        (arXiv:2502.09992), generate.py, remasking='low_confidence' in one block.
    Default steps: None, "we unmask one position per decoding step" (Uncode, App. A).
    Default temperature: 0.0, as in LLaDA's generate.
    Cost: one forward a token, or `steps`; no memory.
    """
    return Sampler(Policy(Confidence(), TopK(Even(steps))), drawn(temperature), name="confidence")


@preset
def entropy(*, steps: int | None = None, temperature: float = 0.0) -> Sampler:
    """The least entropy first.

    Source: Ye et al., Dream 7B (arXiv:2508.15487); Uncode release, generate_with_entropy in one block (its blocks
        are a bug: the block is ignored and masks are left over).
    Default steps: None, one position a step. Default temperature: 0.0.
    Cost: one forward a token, or `steps`; no memory.
    """
    return Sampler(Policy(NegEntropy(), TopK(Even(steps))), drawn(temperature), name="entropy")


@preset
def margin(*, steps: int | None = None, temperature: float = 0.0) -> Sampler:
    """The widest gap between the two most probable tokens first.

    Source: Kim et al., Train for the Worst, Plan for the Best, ICML 2025 (arXiv:2502.06768); Uncode release,
        generate_with_margin in one block.
    Default steps: None, one position a step. Default temperature: 0.0.
    Cost: one forward a token, or `steps`; no memory.
    """
    return Sampler(Policy(Margin(), TopK(Even(steps))), drawn(temperature), name="margin")


@preset
def left_to_right() -> Sampler:
    """Strictly from left to right, one token a step: the order of an autoregressive model.

    Source: the "L-to-R" column in scripts/paint_heatmap.py of the Uncode release, which has no code for it.
    Cost: one forward a token; no memory.
    """
    return Sampler(Policy(ExponentialPosition(1.0), TopK(Exactly(1))), name="left_to_right")


@preset
def semi_ar(*, blocks: int = 8, steps: int | None = None, temperature: float = 0.0, cache: Cache = "none") -> Sampler:
    """Blocks from left to right, the most probable proposal first inside each.

    Source: Nie et al., Large Language Diffusion Models (arXiv:2502.09992), generate.py with block_length.
    Default blocks: 8, "we set the number of blocks to 8 for all tasks" (Uncode, App. A).
    Default steps: None, one position a step. Default cache: none, as published.
    Cost: one forward a token, or `steps`; no memory, with a cache the keys and values of the span.
    """
    policy = Policy(Confidence(), TopK(Even(steps)), Blocks(count=blocks))
    return Sampler(policy, drawn(temperature), cache_named(cache), name="semi_ar")


@preset
def llada(
    *,
    steps: int | None = 128,
    block_length: int = 128,
    temperature: float = 0.0,
    remasking: Literal["low_confidence", "random"] = "low_confidence",
    logits_eos_inf: bool = False,
    confidence_eos_eot_inf: bool = False,
) -> Sampler:
    """LLaDA's own generate, with its two switches against early EOS tokens.

    `logits_eos_inf` bans EOS; `confidence_eos_eot_inf` puts positions that propose an EOS token after all
    others (the published line does so only at temperature 0; `legacy.llada_eos` is that line).

    Source: Nie et al., Large Language Diffusion Models (arXiv:2502.09992), generate.py and Appendix B.4.
    Defaults: steps=128, block_length=128, temperature=0., remasking='low_confidence', logits_eos_inf=False,
        confidence_eos_eot_inf=False: the signature of generate.
    Cost: `steps` forwards; no memory.
    """
    score: Score = Confidence() if remasking == "low_confidence" else Uniform()
    if confidence_eos_eot_inf:
        score = score + Defer(("ends",))
    policy = Policy(score, TopK(Even(steps)), Blocks(length=block_length))
    return Sampler(policy, drawn(temperature, ban=("eos",) if logits_eos_inf else ()), name="llada")


@preset
def eb(*, gamma: float = 0.01, temperature: float = 0.0) -> Sampler:
    """Entropy-bounded: the least entropy first, as many as the error budget allows.

    Source: Ben-Hamu et al., Accelerated Sampling from Masked Diffusion Models via Entropy Bounded Unmasking
        (arXiv:2505.24857); Uncode release, generate_with_eb_sampler.
    Default gamma: 0.01, "we set gamma = 0.01 for all datasets" (Uncode, App. A; the release's signature says 0.1).
    Cost: at most one forward a token, fewer the larger gamma; no memory.
    """
    return Sampler(Policy(NegEntropy(), EntropyBudget(gamma)), drawn(temperature), name="eb")


@preset
def tau_leaping(*, tau: int = 2, temperature: float = 0.0) -> Sampler:
    """A fixed number of tokens a step, the most probable proposals first.

    Source: Uncode, App. A, "unmask a fixed number of tokens (tau) at each decoding step"; not tau-leaping in the
        sense of continuous-time Markov chains.
    Default tau: 2, "we set tau = 2" (Uncode, App. A).
    Cost: one forward for every `tau` tokens; no memory.
    """
    return Sampler(Policy(Confidence(), TopK(Exactly(tau))), drawn(temperature), name="tau_leaping")


@preset
def fast_dllm(
    *, threshold: float = 0.9, block_length: int = 32, cache: Cache = "none", temperature: float = 0.0
) -> Sampler:
    """Blocks, and in each step every position whose confidence reaches a threshold.

    Source: Wu et al., Fast-dLLM (arXiv:2505.22618), llada/generate.py: generate, generate_with_prefix_cache,
        generate_with_dual_cache.
    Default threshold: 0.9, "we set the confidence threshold to epsilon = 0.9" (Uncode, App. A).
    Default block_length: 32, Fast-dLLM's scripts. Default cache: none; prefix and dual are its two caches.
    Cost: at most one forward a token, fewer the lower the threshold; no memory, with a cache the keys and values
        of the span.
    """
    policy = Policy(Confidence(), Threshold(threshold), Blocks(length=block_length))
    return Sampler(policy, drawn(temperature), cache_named(cache), name="fast_dllm")


@preset
def fast_dllm_factor(
    *, factor: float = 1.0, block_length: int = 32, cache: Cache = "none", temperature: float = 0.0
) -> Sampler:
    """Blocks, and in each step as many of the most confident positions as their joint confidence allows.

    Source: Wu et al., Fast-dLLM (arXiv:2505.22618), factor decoding; Uncode release, get_transfer_index_dynamic,
        whose last candidate passes unchecked (`legacy.fast_dllm_factor` is that rule).
    Default factor: 1.0, the signature's. Default block_length: 32. Default cache: none, as in that function; with a
        cache it is our combination, compared with no published one.
    Cost: at most one forward a token, fewer the larger the factor; no memory, with a cache the keys and values
        of the span.
    """
    policy = Policy(Confidence(), Factor(factor), Blocks(length=block_length))
    return Sampler(policy, drawn(temperature), cache_named(cache), name="fast_dllm_factor")


@preset
def remdm(
    *, steps: int | None = None, block_length: int = 32, count: int = 1, start: float = 0.875, temperature: float = 1.0
) -> Sampler:
    """ReMDM on LLaDA: near the end of a block, the least confident tokens are taken back and written again.

    Source: Wang et al., Remasking Discrete Diffusion Models with Inference-Time Scaling (arXiv:2503.00307);
        guanghanwang/ReMDM-LLaDA, llada_remdm_sample.
    Default steps: None, one token a step (its scripts: sampling_steps=32 for 32 tokens). Default block_length: 32,
        its scripts. Default count: 1, "remdm_number=1". Default start: 0.875, "block_size / 8 * 7"; counted in steps
        here and in tokens there, which is the same at one token a step (with fewer steps the published loop can
        take back columns it never wrote). It also ends after a block with an EOS token: use AfterEos for that.
    Default temperature: 1.0, tokens are drawn from the softmax.
    Cost: more forwards than tokens, since tokens that are taken back are written again; one number per position.
    """
    policy = Policy(
        Confidence(),
        TopK(LoopQuota(steps, count, start)),
        Blocks(length=block_length),
        LeastConfident(count, start),
    )
    return Sampler(policy, drawn(temperature), name="remdm")


@preset
def dream(
    *,
    alg: Literal["origin", "maskgit_plus", "topk_margin", "entropy"] = "origin",
    steps: int | None = 512,
    eps: float = 1e-3,
    temperature: float = 0.0,
    top_p: float | None = None,
    top_k: int | None = None,
    alg_temp: float | None = None,
) -> Sampler:
    """Dream's own diffusion_generate, with its four algorithms; here temperature changes the ranking, as in Dream.

    Source: Ye et al., Dream 7B (arXiv:2508.15487), generation_utils.py published with the weights.
    Defaults: alg="origin", steps=512, eps=1e-3, temperature=0.0, top_p, top_k and alg_temp None: its
        generation configuration.
    Cost: `steps` forwards; no memory.
    """
    scores: dict[str, Score] = {
        "origin": Confidence(),
        "maskgit_plus": Confidence(),
        "topk_margin": Margin(),
        "entropy": NegEntropy(),
    }
    score = scores[alg]
    if alg_temp:
        score = (NegEntropy() if alg == "entropy" else Exp(score)) + Gumbel(alg_temp)
    select: Selector = TauLeap(Decay(steps, eps)) if alg == "origin" else TopK(Decay(steps, eps))
    plain = temperature == 0 and top_p is None and top_k is None
    propose: Proposal = Greedy() if plain else Sample((), temperature, top_k, top_p, "drawn")
    return Sampler(Policy(score, select), propose, name="dream")


@preset
def uncode(*, steps: int | None = None, temperature: float = 0.0, **calibration: Unpack[Calibration]) -> Sampler:
    """Uncode: uncertainty calibrated by a positional prior and by how informative the proposed token is.

    `rate=0` is informativeness alone, `informativeness=False` position alone (no table needed). Without `frequency`,
    the model's own table is used.

    Source: Empirical Analysis of Decoding Biases in Masked Diffusion Models (Uncode), ACL 2026, Sec. 4; its score
        exp(-lambda i) * min(-log p(token), alpha) * F is added up as logarithms here. `legacy.uncode_release` is the
        released code, which clips the product of S and F.
    Default steps: None, "equal to the sequence length". Default rate: 0.25, "lambda = 0.25 for the remaining tasks"
        (0 for Sudoku, 0.5 for Countdown). Default clip: 10, "we fix the clipping threshold to alpha = 10".
    Default proxy: confidence, "we use prediction confidence as the base uncertainty proxy".
    Default special: unseen, what the released tables imply: EOS tokens do not occur in them.
    Cost: one forward a token, or `steps`; a frequency table, one number per token of the vocabulary.
    """
    policy = Policy(calibrated(**calibration), TopK(Even(steps)))
    return Sampler(policy, drawn(temperature), name="uncode")


@preset
def uncode_tau(*, tau: int = 2, **calibration: Unpack[Calibration]) -> Sampler:
    """Uncode's order, a fixed number of tokens a step.

    Source: Uncode, App. A, "positions to unmask are selected according to the calibrated score".
    Default tau: 2, "we set tau = 2". The rest as in uncode.
    Cost: one forward for every `tau` tokens; a frequency table, as uncode.
    """
    return Sampler(Policy(calibrated(**calibration), TopK(Exactly(tau))), name="uncode_tau")


@preset
def uncode_eb(*, gamma: float = 0.01, **calibration: Unpack[Calibration]) -> Sampler:
    """Uncode's order, as many tokens a step as the entropy budget allows along it.

    Source: Uncode, App. A, "we replace the entropy-based priority with our calibrated score".
    Default gamma: 0.01, "we set the error tolerance parameter to gamma = 0.01". The rest as in uncode.
    Cost: at most one forward a token, fewer the larger gamma; a frequency table, as uncode.
    """
    return Sampler(Policy(calibrated(**calibration), EntropyBudget(gamma)), name="uncode_eb")


@preset
def uncode_fast_dllm(
    *, threshold: float = 0.6, block_length: int = 32, cache: Cache = "auto", **calibration: Unpack[Calibration]
) -> Sampler:
    """Blocks, and in each step every position whose calibrated score reaches a threshold.

    The positional prior counts from the start of the block: from the start of the answer, nothing past offset 11
    could reach 0.6 at rate 0.25. The score is no probability: informativeness multiplies it by up to ten. So at low
    rates improbable tokens pass, and programs fail (docs/leaderboard.md). `certain_first_fast` admits by probability.

    Source: Uncode, App. A, "we apply the unmasking threshold to the calibrated score".
    Default threshold: 0.6, "we set the threshold to epsilon = 0.6". Default block_length: 32, as in Fast-dLLM.
    Default cache: auto, which is prefix, "we adopt the prefix KV cache mechanism", where the model has a KV cache,
        and none elsewhere, with a warning. The rest as in uncode.
    Cost: at most one forward a token, fewer the lower the threshold; a frequency table, as uncode, and with a
        cache the keys and values of the span.
    """
    score = calibrated(**calibration, origin="block")
    policy = Policy(score, Threshold(threshold, of="score"), Blocks(length=block_length))
    return Sampler(policy, cache=cache_named(cache), name="uncode_fast_dllm")
