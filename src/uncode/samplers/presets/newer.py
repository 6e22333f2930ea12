"""Training-free samplers of 2025 and 2026, each as one expression.

Each docstring names its source, quotes each default, and says what the sampler costs beside the model's own forwards.
"""

from __future__ import annotations

from ...core.errors import UncodeError
from ...core.pieces.blocks import Blocks, DelimitedBlocks, GrowingBlocks
from ...core.pieces.policy import Policy, Sampler
from ...core.pieces.propose import Credit
from ...core.pieces.remask import LargestDrops, Overwrite
from ...core.pieces.score import CertaintyDensity, Confidence, EntropyGate, Exp, NegEntropy
from ...core.pieces.select import (
    AboveMeanAtCommit,
    AroundAnchors,
    BestOfRuns,
    EntropyThreshold,
    Even,
    LeastUncertainNext,
    Selector,
    StableOrQuota,
    Threshold,
    ThresholdOrQuota,
    TopK,
)
from ...core.pieces.stop import WhenAnswerIsClear
from ..registry import Cache, Delimiter, cache_named, drawn, preset

DELIMITERS: dict[Delimiter, str] = {"newline": "\n", "period": ".", "comma": ","}


@preset
def entropy_threshold(
    *, threshold: float = 0.5, block_length: int = 32, cache: Cache = "none", temperature: float = 0.0
) -> Sampler:
    """Blocks, and in each step every position whose entropy is at most a threshold.

    Source: hao-ai-lab/d3LLM utils/utils_LLaDA/generate.py, get_transfer_index_entropy; d3LLM adds blocks that are
        decoded at the same time, and a distilled model.
    Default threshold: 0.5, "threshold=0.5" (d3llm_llada_generate_util.py). Default block_length: 32, its scripts.
    Default cache: none; prefix and dual are those of Fast-dLLM.
    Cost: at most one forward a token, fewer the larger the threshold; no memory.
    """
    policy = Policy(NegEntropy(), EntropyThreshold(threshold), Blocks(length=block_length))
    return Sampler(policy, drawn(temperature), cache_named(cache), name="entropy_threshold")


@preset
def hierarchy(
    *,
    threshold: float = 0.9,
    low: float = 0.3,
    block_length: int = 64,
    cache: Cache = "none",
    temperature: float = 0.0,
) -> Sampler:
    """Hierarchical decoding: the best position of each run of masks, and every position above a threshold.

    Source: Ma et al., dInfer (arXiv:2510.08666); inclusionAI/dInfer parallel_strategy.py,
        get_transfer_index_hierarchy_fast_v2 and HierarchyDecoder.
    Default threshold: 0.9. Default low: 0.3. Default block_length: 64. All three are those of its
        benchmark_dataset.py. Default cache: none.
    Cost: at most one forward a token; runs of masks are halved, so a block can take log2 of its length; no memory.
    """
    policy = Policy(Confidence(), BestOfRuns(threshold, low), Blocks(length=block_length))
    return Sampler(policy, drawn(temperature), cache_named(cache), name="hierarchy")


@preset
def local_leap(
    *,
    steps: int | None = None,
    anchor: float = 0.9,
    neighbour: float = 0.75,
    radius: int = 4,
    block_length: int = 32,
    cache: Cache = "none",
    temperature: float = 0.0,
) -> Sampler:
    """LocalLeap: around positions that the model is sure of, neighbours are committed at a lower bar.

    Source: Kong et al., LocalLeap (arXiv:2510.07081); iOptimizeThings/dlmserve sampler.py, commit_with_local_leap.
    Default steps: None, one position a step and its neighbours. Default anchor: 0.9, default neighbour: 0.75 and
        default radius: 4, the paper's kappa, tau and W for LLaDA-8B-Instruct (Sec. 4.1). Default block_length: 32.
        Default cache: none.
    Cost: at most `steps` forwards; no memory.
    """
    select = AroundAnchors(Even(steps), anchor, neighbour, radius)
    policy = Policy(Confidence(), select, Blocks(length=block_length))
    return Sampler(policy, drawn(temperature), cache_named(cache), name="local_leap")


@preset
def dynamic(
    *,
    threshold: float = 0.85,
    steps: int | None = None,
    block_length: int = 4,
    cache: Cache = "none",
    temperature: float = 0.0,
) -> Sampler:
    """Every position above a threshold, if these are as many as an even schedule asks for; else the schedule.

    Source: Cheng et al., SDAR (arXiv:2510.06303); JetAstra/SDAR generate.py, low_confidence_dynamic; the same rule in
        LLaDA2 and in diffusers.
    Default threshold: 0.85, "--confidence_threshold". Default steps: None, one position a step (SDAR: as many steps as
        a block has tokens). Default block_length: 4, "--block_length". Default cache: none. SDAR's own
        temperature is 1.0.
    Cost: at most `steps` forwards; no memory.
    """
    policy = Policy(Confidence(), ThresholdOrQuota(Even(steps), threshold), Blocks(length=block_length))
    return Sampler(policy, drawn(temperature), cache_named(cache), name="dynamic")


@preset
def entropy_gate(
    *, budget: float = 1.0, threshold: float | None = None, steps: int | None = None, temperature: float = 0.0
) -> Sampler:
    """Cumulative-entropy gate: a position is open while the masks before it have little entropy in all.

    Source: He et al., RPD, 2026, the gate on the summed entropy of earlier masks; no public code, so the equation is
        checked by hand.
    Default budget: 1.0 nat, ours (the paper's beta). Default threshold: None, the most
        probable open position alone; a number commits every open position that reaches it, as RPD does. Default
        steps: None, one position a step; without a threshold.
    Cost: one forward a token, with a threshold fewer; no memory.
    """
    select: Selector = TopK(Even(steps)) if threshold is None else Threshold(threshold)
    if threshold is not None and steps is not None:
        raise UncodeError("a threshold decides how many positions a step commits: leave out steps or threshold.")
    policy = Policy(Confidence() + EntropyGate(budget), select)
    return Sampler(policy, drawn(temperature), name="entropy_gate")


@preset
def certainty_density(
    *,
    sigma: float = 10.0,
    steps: int | None = None,
    block_length: int = 32,
    cache: Cache = "none",
    temperature: float = 0.0,
) -> Sampler:
    """Confidence times the share of known tokens nearby: tokens are written beside those that stand.

    Source: Jiang et al., d2Cache (arXiv:2509.23094), Eq. 3; Kamichanw/d2Cache src/utils/common.py, certainty_density.
    Default sigma: 10.0, "sigma = 10.0" (configs/gen_args.py). Default steps: None, one position a step. Default
        block_length: 32. Default cache: none; its own cache is not here.
    Cost: one forward a token; no memory.
    """
    policy = Policy(Confidence() + CertaintyDensity(sigma), TopK(Even(steps)), Blocks(length=block_length))
    return Sampler(policy, drawn(temperature), cache_named(cache), name="certainty_density")


@preset
def klass(
    *,
    steps: int | None = None,
    threshold: float = 0.9,
    drift: float = 0.01,
    history: int = 2,
    block_length: int = 64,
    temperature: float = 0.0,
) -> Sampler:
    """KLASS: every position that is confident and whose distribution has been stable; else an even schedule.

    Source: Kim et al., KLASS, NeurIPS 2025 (arXiv:2511.05664); shkim0116/KLASS src/model/llada_klass.py,
        stable_confident_decode (alg="klass"). There the history of a position starts before its block opens; here with
        the block, so that the last distribution is kept for the open block alone.
    Default steps: None, one position a step. Default threshold: 0.9, "conf_threshold=0.9". Default drift: 0.01,
        "kl_threshold=0.01". Default history: 2, "kl_history_length=2". Default block_length: 64, its scripts.
    Cost: at most `steps` forwards; memory for one more distribution over the open block, `[B, W, V]` in float32.
    """
    select = StableOrQuota(Even(steps), threshold, drift, history)
    policy = Policy(Confidence(), select, Blocks(length=block_length))
    return Sampler(policy, drawn(temperature), name="klass")


@preset
def credit(
    *,
    threshold: float = 0.9,
    strength: float = 0.7,
    decay: float = 0.8,
    boost: float = 0.2,
    block_length: int = 64,
    cache: Cache = "none",
) -> Sampler:
    """CreditDecoding: tokens that were the most likely one in earlier steps gain logits; then a threshold.

    Source: Wang et al., CreditDecoding (arXiv:2510.06133); inclusionAI/dInfer parallel_strategy.py,
        CreditThresholdParallelDecoder.
    Default threshold: 0.9, that of its benchmarks. Default strength: 0.7, "credit_alpha=0.7". Default decay: 0.8,
        "decay_beta=0.8". Default boost: 0.2, "boost_gamma=0.2". Default block_length: 64, its benchmarks'. Default
        cache: none.
    Cost: at most one forward a token; memory for the credits of the open block, `[B, W, V]` in float32.
    """
    policy = Policy(Confidence(), Threshold(threshold), Blocks(length=block_length))
    return Sampler(policy, Credit((), strength, decay, boost), cache_named(cache), name="credit")


@preset
def saber(*, count: int = 2, block_length: int | None = None, temperature: float = 0.0) -> Sampler:
    """Saber: every position above the row's mean confidence, and the largest losers of confidence are taken back.

    Source: Dong et al., Saber, ACL 2026 (arXiv:2510.18165); zhaoyMa/Saber decoding.py, generate_with_saber. With
        several blocks, its first step after a block opens compares with a confidence of -inf; here with 0, as in the
        first block.
    Default count: 2, "n = 2". Default block_length: None, one block, "block_length=256" for 256 tokens. Later
        blocks may reopen earlier ones.
    Cost: fewer forwards than tokens, as long as steps commit more than they take back; three numbers a position.
    """
    policy = Policy(Confidence(), AboveMeanAtCommit(count), GrowingBlocks(length=block_length), LargestDrops(count))
    return Sampler(policy, drawn(temperature), name="saber")


@preset
def prophet(
    *,
    answer_start: int | None = None,
    answer_length: int = 5,
    early: float = 7.5,
    middle: float = 5.0,
    late: float = 2.5,
    steps: int | None = None,
    block_length: int = 32,
    temperature: float = 0.0,
) -> Sampler:
    """Prophet: once the model is clear about the answer, everything that is left is written at once.

    Source: Li et al., Diffusion Language Models Know the Answer Before Decoding (arXiv:2508.19982); pixeli99/Prophet
        generate_earlyexit.py, generate.
    Default answer_start: None, the gap is averaged over the masks that propose text, not EOS (ours: the published code
        needs the answer's place).
        Default answer_length: 5, "answer_length = 5". Default early: 7.5, default middle: 5.0 and default late: 2.5,
        "{'early': 7.5, 'mid': 5.0, 'late': 2.5}". Default steps: None, one position a step. Default block_length: 32,
        its example.
    Cost: at most `steps` forwards; logits of the whole span at every step, so no dual cache, and with answer_start none
        at all; two numbers per row.
    """
    stop = WhenAnswerIsClear(answer_start, answer_length, early, middle, late, steps)
    policy = Policy(Confidence(), TopK(Even(steps)), Blocks(length=block_length), stop=stop)
    return Sampler(policy, drawn(temperature), name="prophet")


@preset
def adablock(
    *,
    threshold: float = 0.9,
    delimiter: Delimiter = "newline",
    delimiter_threshold: float = 0.3,
    block_length: int = 32,
    cache: Cache = "none",
    temperature: float = 0.0,
) -> Sampler:
    """AdaBlock: a block ends where the model expects a line to end; in it every position above a threshold.

    Source: Lu et al., AdaBlock-dLLM, ICLR 2026 (arXiv:2509.26432); lgxi24/AdaBlock-dLLM llada/generate_adablock.py,
        compute_block_length, generate_adablock and the same with its two caches.
    Default threshold: 0.9, "THRESHOLD=0.9". Default delimiter: newline, "delimiter_ids=[198]"; a model that has no
        token for it is refused. Default delimiter_threshold: 0.3, "DELIMITER_THRESHOLD=0.3" for LLaDA (0.5 for Dream).
        Default block_length: 32, "INIT_BLOCK_LENGTH=32", where no delimiter is near. Default cache: none.
    Cost: at most one forward a token; the first step of a block needs logits of a quarter of the span; no memory.
    """
    blocks = DelimitedBlocks((DELIMITERS[delimiter],), delimiter_threshold, block_length)
    policy = Policy(Confidence(), Threshold(threshold), blocks)
    return Sampler(policy, drawn(temperature), cache_named(cache), name="adablock")


@preset
def info_gain(
    *,
    candidates: int = 8,
    position_temperature: float = 0.2,
    threshold: float = 0.8,
    block_length: int = 32,
    temperature: float = 0.0,
) -> Sampler:
    """Info-Gain: of several candidates, the position that is certain now and leaves least uncertainty behind.

    Source: Yang et al., Improving Sampling for Masked Diffusion Models via Information Gain, ICML 2026
        (arXiv:2602.18176); yks23/Information-Gain-Sampler src/samplers/info_gain.py, InfoGainSampler. There each
        candidate draws tokens too, and the winner's probe is the next step's forward; here all propose the same tokens.
    Default candidates: 8, "candidate_number: 8". Default position_temperature: 0.2, "position_temperature: 0.2".
        Default threshold: 0.8, "threshold: 0.8": where all masks of the block reach it, they are committed at once.
        Default block_length: 32, "block_size=32".
    Cost: at most one forward a token, and at most `candidates` probes with it; logits of the whole span for each probe,
        and its own session without a KV cache.
    """
    select = LeastUncertainNext(candidates, position_temperature, threshold)
    policy = Policy(Exp(Confidence()), select, Blocks(length=block_length))
    return Sampler(policy, drawn(temperature), name="info_gain")


@preset
def lookum(
    *,
    candidates: int = 8,
    position_temperature: float = 0.1,
    threshold: float = 0.8,
    block_length: int = 32,
    temperature: float = 0.0,
) -> Sampler:
    """LookUM's verifier: of several candidates, the position that leaves least uncertainty behind.

    Source: LookUM, ICML 2026 (arXiv:2511.05563), in the form of yks23/Information-Gain-Sampler
        src/samplers/info_gain.py, variant="lookum"; the paper's paths of several steps and its resampling have no
        public code.
    Default candidates: 8, "CANDIDATE_NUMBER=8". Default position_temperature: 0.1, "POSITION_TEMPERATURE=0.1"
        (eval_lookum.sbatch). Default threshold: 0.8, "THRESHOLD=0.8". Default block_length: 32, "block_size=32".
    Cost: as info_gain.
    """
    select = LeastUncertainNext(candidates, position_temperature, threshold, immediate=False)
    policy = Policy(Exp(Confidence()), select, Blocks(length=block_length))
    return Sampler(policy, drawn(temperature), name="lookum")


@preset
def edit(
    *,
    threshold: float = 0.5,
    edit_threshold: float = 0.0,
    rounds: int = 16,
    block_length: int = 32,
    cache: Cache = "none",
) -> Sampler:
    """Token editing: every position above a threshold, and standing tokens that the model would now write otherwise.

    Source: LLaDA2.1's joint threshold; sgl-project/sglang dllm/algorithm/joint_threshold.py, JointThreshold.step,
        without its repetition penalty, which is 0 by default. It is made for models that were trained to correct
        visible tokens; others may overwrite right ones.
    Default threshold: 0.5, default edit_threshold: 0 and default rounds: 16, "threshold", "edit_threshold" and
        "max_post_edit_steps" of JointThreshold. Default block_length: 32. Default cache: none.
    Cost: at most one forward a token, and at most `rounds` more a block, at least one; one number per row.
    """
    policy = Policy(
        Confidence(), Threshold(threshold), Blocks(length=block_length), edit=Overwrite(edit_threshold, rounds)
    )
    return Sampler(policy, cache=cache_named(cache), name="edit")
