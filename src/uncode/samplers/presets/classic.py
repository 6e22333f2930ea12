"""The samplers up to 2025, each as one expression. Flat and boring on purpose: read one, and you have read it all.

Each names its source and quotes each default. `steps=None` means one token a step.
"""

from __future__ import annotations

from typing import Unpack

from .. import pieces as p
from ..calibration import Calibration, calibrated
from ..options import ABOVE_0, Algorithm, Remasking
from ..preset import Placed, Shared, preset


@preset(
    source="Austin et al., Structured Denoising Diffusion Models in Discrete State-Spaces, NeurIPS 2021 "
    "(arXiv:2107.03006); LLaDA generate.py, remasking='random'",
    defaults='Default steps: None, "the number of denoising steps to be equal to the sequence length" (Uncode, Sec. '
    '5). Default temperature: 0.0, "the temperature is set to 0.0" (Uncode, App. A).',
    cost="one forward a token, or `steps`; no memory.",
)
def uniform(*, steps: int | None = None, **shared: Unpack[Shared]) -> p.Policy:
    """Random order: masked positions are picked uniformly."""
    return p.Policy(p.Uniform(), p.TopK(p.Even(steps)))


@preset(
    source="Chang et al., MaskGIT, CVPR 2022 (arXiv:2202.04200); Nie et al., Large Language Diffusion Models "
    "(arXiv:2502.09992), generate.py, remasking='low_confidence' in one block",
    defaults='Default steps: None, "we unmask one position per decoding step" (Uncode, App. A). Default temperature: '
    "0.0, as in LLaDA's generate.",
    cost="one forward a token, or `steps`; no memory.",
)
def confidence(*, steps: int | None = None, **shared: Unpack[Shared]) -> p.Policy:
    """The most probable proposal first."""
    return p.Policy(p.Confidence(), p.TopK(p.Even(steps)))


@preset(
    source="Ye et al., Dream 7B (arXiv:2508.15487); Uncode release, generate_with_entropy in one block (its blocks "
    "are a bug: the block is ignored and masks are left over)",
    defaults="Default steps: None, one position a step. Default temperature: 0.0.",
    cost="one forward a token, or `steps`; no memory.",
)
def entropy(*, steps: int | None = None, **shared: Unpack[Shared]) -> p.Policy:
    """The least entropy first."""
    return p.Policy(p.NegEntropy(), p.TopK(p.Even(steps)))


@preset(
    source="Kim et al., Train for the Worst, Plan for the Best, ICML 2025 (arXiv:2502.06768); Uncode release, "
    "generate_with_margin in one block",
    defaults="Default steps: None, one position a step. Default temperature: 0.0.",
    cost="one forward a token, or `steps`; no memory.",
)
def margin(*, steps: int | None = None, **shared: Unpack[Shared]) -> p.Policy:
    """The widest gap between the two most probable tokens first."""
    return p.Policy(p.Margin(), p.TopK(p.Even(steps)))


@preset(
    source='the "L-to-R" column in scripts/paint_heatmap.py of the Uncode release, which has no code for it',
    cost="one forward a token; no memory.",
)
def left_to_right(**shared: Unpack[Shared]) -> p.Policy:
    """Strictly from left to right, one token a step: the order of an autoregressive model."""
    return p.Policy(p.ExponentialPosition(1.0), p.TopK(p.Exactly(1)))


@preset(
    source="Nie et al., Large Language Diffusion Models (arXiv:2502.09992), generate.py with block_length",
    defaults='Default blocks: 8, "we set the number of blocks to 8 for all tasks" (Uncode, App. A). Default steps: '
    "None, one position a step. Default cache: none, as published.",
    cost="one forward a token, or `steps`; no memory, with a cache the keys and values of the span.",
)
def semi_ar(*, blocks: int = 8, steps: int | None = None, **shared: Unpack[Shared]) -> p.Policy:
    """Blocks from left to right, the most probable proposal first inside each."""
    return p.Policy(p.Confidence(), p.TopK(p.Even(steps)), p.Blocks(count=blocks))


@preset(
    source="Nie et al., Large Language Diffusion Models (arXiv:2502.09992), generate.py and Appendix B.4",
    defaults="Defaults: steps=128, block_length=128, temperature=0., remasking='low_confidence', logits_eos_inf=False,"
    " confidence_eos_eot_inf=False: the signature of generate.",
    cost="`steps` forwards; no memory.",
    block_length=128,
)
def llada(
    *,
    steps: int | None = 128,
    remasking: Remasking = "low_confidence",
    logits_eos_inf: bool = False,
    confidence_eos_eot_inf: bool = False,
    **shared: Unpack[Shared],
) -> p.Sampler:
    """LLaDA's own generate, with its two switches against early EOS tokens.

    `logits_eos_inf` bans EOS; `confidence_eos_eot_inf` puts positions that propose an EOS token after all
    others (the published line does so only at temperature 0; `legacy.llada_eos` is that line).
    """
    score: p.Score = p.Confidence() if remasking == "low_confidence" else p.Uniform()
    if confidence_eos_eot_inf:
        score = score + p.Defer(("ends",))
    policy = p.Policy(score, p.TopK(p.Even(steps)))
    return p.Sampler(policy, p.Greedy(("eos",) if logits_eos_inf else ()))


@preset(
    source="Ben-Hamu et al., Accelerated Sampling from Masked Diffusion Models via Entropy Bounded Unmasking "
    "(arXiv:2505.24857); Uncode release, generate_with_eb_sampler",
    defaults='Default gamma: 0.01, "we set gamma = 0.01 for all datasets" (Uncode, App. A; the release\'s signature '
    "says 0.1).",
    cost="at most one forward a token, fewer the larger gamma; no memory.",
)
def eb(*, gamma: float = 0.01, **shared: Unpack[Shared]) -> p.Policy:
    """Entropy-bounded: the least entropy first, as many as the error budget allows."""
    return p.Policy(p.NegEntropy(), p.EntropyBudget(gamma))


@preset(
    source='Uncode, App. A, "unmask a fixed number of tokens (tau) at each decoding step"; not tau-leaping in the '
    "sense of continuous-time Markov chains",
    defaults='Default tau: 2, "we set tau = 2" (Uncode, App. A).',
    cost="one forward for every `tau` tokens; no memory.",
)
def tau_leaping(*, tau: int = 2, **shared: Unpack[Shared]) -> p.Policy:
    """A fixed number of tokens a step, the most probable proposals first."""
    return p.Policy(p.Confidence(), p.TopK(p.Exactly(tau)))


@preset(
    source="Wu et al., Fast-dLLM (arXiv:2505.22618), llada/generate.py: generate, generate_with_prefix_cache, "
    "generate_with_dual_cache",
    defaults='Default threshold: 0.9, "we set the confidence threshold to epsilon = 0.9" (Uncode, App. A). Default '
    "block_length: 32, Fast-dLLM's scripts. Default cache: none; prefix and dual are its two caches.",
    cost="at most one forward a token, fewer the lower the threshold; no memory, with a cache the keys and values "
    "of the span.",
    block_length=32,
)
def fast_dllm(*, threshold: float = 0.9, **shared: Unpack[Shared]) -> p.Policy:
    """Blocks, and in each step every position whose confidence reaches a threshold."""
    return p.Policy(p.Confidence(), p.Threshold(threshold))


@preset(
    source="Wu et al., Fast-dLLM (arXiv:2505.22618), factor decoding; Uncode release, get_transfer_index_dynamic, "
    "whose last candidate passes unchecked (`legacy.fast_dllm_factor` is that rule)",
    defaults="Default factor: 1.0, the signature's. Default block_length: 32. Default cache: none, as in that "
    "function; with a cache it is our combination, compared with no published one.",
    cost="at most one forward a token, fewer the larger the factor; no memory, with a cache the keys and values of"
    " the span.",
    block_length=32,
)
def fast_dllm_factor(*, factor: float = 1.0, **shared: Unpack[Shared]) -> p.Policy:
    """Blocks, and in each step as many of the most confident positions as their joint confidence allows."""
    return p.Policy(p.Confidence(), p.Factor(factor))


@preset(
    source="Wang et al., Remasking Discrete Diffusion Models with Inference-Time Scaling (arXiv:2503.00307); "
    "guanghanwang/ReMDM-LLaDA, llada_remdm_sample",
    defaults="Default steps: None, one token a step (its scripts: sampling_steps=32 for 32 tokens). Default "
    'block_length: 32, its scripts. Default count: 1, "remdm_number=1". Default start: 0.875, "block_size / 8'
    ' * 7"; counted in steps here and in tokens there, which is the same at one token a step (with fewer '
    "steps the published loop can take back columns it never wrote). It also ends after a block with an EOS "
    "token: use AfterEos for that. Default temperature: 1.0, tokens are drawn from the softmax.",
    cost="more forwards than tokens, since tokens that are taken back are written again; one number per position.",
    block_length=32,
    temperature=1.0,
)
def remdm(*, steps: int | None = None, count: int = 1, start: float = 0.875, **shared: Unpack[Shared]) -> p.Policy:
    """ReMDM on LLaDA: near the end of a block, the least confident tokens are taken back and written again."""
    return p.Policy(
        p.Confidence(),
        p.TopK(p.LoopQuota(steps, count, start)),
        remask=p.LeastConfident(count, start),
    )


@preset(
    source="Ye et al., Dream 7B (arXiv:2508.15487), generation_utils.py published with the weights",
    defaults='Defaults: alg="origin", steps=512, eps=1e-3, temperature=0.0, top_p, top_k and alg_temp None: its '
    "generation configuration.",
    cost="`steps` forwards; no memory.",
)
def dream(
    *,
    alg: Algorithm = "origin",
    steps: int | None = 512,
    eps: float = 1e-3,
    temperature: float = 0.0,
    top_p: float | None = None,
    top_k: int | None = None,
    alg_temp: float | None = None,
    **placed: Unpack[Placed],
) -> p.Sampler:
    """Dream's own diffusion_generate, with its four algorithms; here temperature changes the ranking, as in Dream."""
    scores: dict[Algorithm, p.Score] = {
        "origin": p.Confidence(),
        "maskgit_plus": p.Confidence(),
        "topk_margin": p.Margin(),
        "entropy": p.NegEntropy(),
    }
    score = scores[alg]
    if alg_temp:
        score = (p.NegEntropy() if alg == "entropy" else p.Exp(score)) + p.Gumbel(alg_temp)
    select: p.Selector = p.TauLeap(p.Decay(steps, eps)) if alg == "origin" else p.TopK(p.Decay(steps, eps))
    plain = temperature == 0 and top_p is None and top_k is None
    propose: p.Proposal = p.Greedy() if plain else p.Sample((), temperature, top_k, top_p, "drawn")
    return p.Sampler(p.Policy(score, select), propose)


@preset(
    source="Empirical Analysis of Decoding Biases in Masked Diffusion Models (Uncode), ACL 2026, Sec. 4; its score "
    "exp(-lambda i) * min(-log p(token), alpha) * F is added up as logarithms here. `legacy.uncode_release` "
    "is the released code, which clips the product of S and F",
    defaults='Default steps: None, "equal to the sequence length". Default rate: 0.25, "lambda = 0.25 for the '
    'remaining tasks" (0 for Sudoku, 0.5 for Countdown). Default clip: 10, "we fix the clipping threshold to '
    'alpha = 10". Default proxy: confidence, "we use prediction confidence as the base uncertainty proxy". '
    "Default special: unseen, what the released tables imply: EOS tokens do not occur in them.",
    cost="one forward a token, or `steps`; a frequency table, one number per token of the vocabulary.",
    rest=calibrated,
)
def uncode(*, steps: int | None = None, **calibration: Unpack[Calibration]) -> p.Policy:
    """Uncode: uncertainty calibrated by a positional prior and by how informative the proposed token is.

    `rate=0` is informativeness alone, `informativeness=False` position alone (no table needed). Without `frequency`,
    the model's own table is used.
    """
    return p.Policy(calibrated(**calibration), p.TopK(p.Even(steps)))


@preset(
    source='Uncode, App. A, "positions to unmask are selected according to the calibrated score"',
    defaults='Default tau: 2, "we set tau = 2". The rest as in uncode.',
    cost="one forward for every `tau` tokens; a frequency table, as uncode.",
    rest=calibrated,
)
def uncode_tau(*, tau: int = 2, **calibration: Unpack[Calibration]) -> p.Policy:
    """Uncode's order, a fixed number of tokens a step."""
    return p.Policy(calibrated(**calibration), p.TopK(p.Exactly(tau)))


@preset(
    source='Uncode, App. A, "we replace the entropy-based priority with our calibrated score"',
    defaults='Default gamma: 0.01, "we set the error tolerance parameter to gamma = 0.01". The rest as in uncode.',
    cost="at most one forward a token, fewer the larger gamma; a frequency table, as uncode.",
    rest=calibrated,
)
def uncode_eb(*, gamma: float = 0.01, **calibration: Unpack[Calibration]) -> p.Policy:
    """Uncode's order, as many tokens a step as the entropy budget allows along it."""
    return p.Policy(calibrated(**calibration), p.EntropyBudget(gamma))


@preset(
    source='Uncode, App. A, "we apply the unmasking threshold to the calibrated score"',
    defaults='Default threshold: 0.6, "we set the threshold to epsilon = 0.6". Default block_length: 32, as in Fast-'
    'dLLM. Default cache: auto, which is prefix, "we adopt the prefix KV cache mechanism", where the model '
    "has a KV cache, and none elsewhere, with a warning. The rest as in uncode.",
    cost="at most one forward a token, fewer the lower the threshold; a frequency table, as uncode, and with a "
    "cache the keys and values of the span.",
    rest=calibrated,
    ranges={"threshold": ABOVE_0},
    block_length=32,
    cache="auto",
)
def uncode_fast_dllm(*, threshold: float = 0.6, **calibration: Unpack[Calibration]) -> p.Policy:
    """Blocks, and in each step every position whose calibrated score reaches a threshold.

    The positional prior counts from the start of the block: from the start of the answer, nothing past offset 11
    could reach 0.6 at rate 0.25. The score is no probability: informativeness multiplies it by up to ten. So at low
    rates improbable tokens pass, and programs fail (docs/leaderboard.md). `certain_first_fast` admits by probability.
    """
    score = calibrated(**calibration, origin="block")
    return p.Policy(score, p.Threshold(threshold, of="score"))
