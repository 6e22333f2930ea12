"""Training-free samplers of 2025 and 2026, each as one expression.

Each names its source, quotes each default, and says what the sampler costs beside the model's own forwards.
"""

from __future__ import annotations

from typing import Unpack

from ...core.errors import UncodeError
from .. import pieces as p
from ..options import ABOVE_0, Delimiter
from ..preset import Shared, preset

DELIMITERS: dict[Delimiter, str] = {"newline": "\n", "period": ".", "comma": ","}


@preset(
    source="hao-ai-lab/d3LLM utils/utils_LLaDA/generate.py, get_transfer_index_entropy; d3LLM adds blocks that are "
    "decoded at the same time, and a distilled model",
    defaults='Default threshold: 0.5, "threshold=0.5" (d3llm_llada_generate_util.py). Default block_length: 32, its '
    "scripts. Default cache: none; prefix and dual are those of Fast-dLLM.",
    cost="at most one forward a token, fewer the larger the threshold; no memory.",
    ranges={"threshold": ABOVE_0},
    block_length=32,
)
def entropy_threshold(*, threshold: float = 0.5, **shared: Unpack[Shared]) -> p.Policy:
    """Blocks, and in each step every position whose entropy is at most a threshold."""
    return p.Policy(p.NegEntropy(), p.EntropyThreshold(threshold))


@preset(
    source="Ma et al., dInfer (arXiv:2510.08666); inclusionAI/dInfer parallel_strategy.py, "
    "get_transfer_index_hierarchy_fast_v2 and HierarchyDecoder",
    defaults="Default threshold: 0.9. Default low: 0.3. Default block_length: 64. All three are those of its "
    "benchmark_dataset.py. Default cache: none.",
    cost="at most one forward a token; runs of masks are halved, so a block can take log2 of its length; no memory.",
    block_length=64,
)
def hierarchy(*, threshold: float = 0.9, low: float = 0.3, **shared: Unpack[Shared]) -> p.Policy:
    """Hierarchical decoding: the best position of each run of masks, and every position above a threshold."""
    return p.Policy(p.Confidence(), p.BestOfRuns(threshold, low))


@preset(
    source="Kong et al., LocalLeap (arXiv:2510.07081); iOptimizeThings/dlmserve sampler.py, commit_with_local_leap",
    defaults="Default steps: None, one position a step and its neighbours. Default anchor: 0.9, default neighbour: "
    "0.75 and default radius: 4, the paper's kappa, tau and W for LLaDA-8B-Instruct (Sec. 4.1). Default "
    "block_length: 32. Default cache: none.",
    cost="at most `steps` forwards; no memory.",
    block_length=32,
)
def local_leap(
    *, steps: int | None = None, anchor: float = 0.9, neighbour: float = 0.75, radius: int = 4, **shared: Unpack[Shared]
) -> p.Policy:
    """LocalLeap: around positions that the model is sure of, neighbours are committed at a lower bar."""
    select = p.AroundAnchors(p.Even(steps), anchor, neighbour, radius)
    return p.Policy(p.Confidence(), select)


@preset(
    source="Cheng et al., SDAR (arXiv:2510.06303); JetAstra/SDAR generate.py, low_confidence_dynamic; the same rule "
    "in LLaDA2 and in diffusers",
    defaults='Default threshold: 0.85, "--confidence_threshold". Default steps: None, one position a step (SDAR: as '
    'many steps as a block has tokens). Default block_length: 4, "--block_length". Default cache: none. '
    "SDAR's own temperature is 1.0.",
    cost="at most `steps` forwards; no memory.",
    block_length=4,
)
def dynamic(*, threshold: float = 0.85, steps: int | None = None, **shared: Unpack[Shared]) -> p.Policy:
    """Every position above a threshold, if these are as many as an even schedule asks for; else the schedule."""
    return p.Policy(p.Confidence(), p.ThresholdOrQuota(p.Even(steps), threshold))


@preset(
    source="He et al., RPD, 2026, the gate on the summed entropy of earlier masks; no public code, so the equation "
    "is checked by hand",
    defaults="Default budget: 1.0 nat, ours (the paper's beta). Default threshold: None, the most probable open "
    "position alone; a number commits every open position that reaches it, as RPD does. Default steps: None, "
    "one position a step; without a threshold.",
    cost="one forward a token, with a threshold fewer; no memory.",
)
def entropy_gate(
    *, budget: float = 1.0, threshold: float | None = None, steps: int | None = None, **shared: Unpack[Shared]
) -> p.Policy:
    """Cumulative-entropy gate: a position is open while the masks before it have little entropy in all."""
    select: p.Selector = p.TopK(p.Even(steps)) if threshold is None else p.Threshold(threshold)
    if threshold is not None and steps is not None:
        raise UncodeError("a threshold decides how many positions a step commits: leave out steps or threshold.")
    return p.Policy(p.Confidence() + p.EntropyGate(budget), select)


@preset(
    source="Jiang et al., d2Cache (arXiv:2509.23094), Eq. 3; Kamichanw/d2Cache src/utils/common.py, certainty_density",
    defaults='Default sigma: 10.0, "sigma = 10.0" (configs/gen_args.py). Default steps: None, one position a step. '
    "Default block_length: 32. Default cache: none; its own cache is not here.",
    cost="one forward a token; no memory.",
    block_length=32,
)
def certainty_density(*, sigma: float = 10.0, steps: int | None = None, **shared: Unpack[Shared]) -> p.Policy:
    """Confidence times the share of known tokens nearby: tokens are written beside those that stand."""
    return p.Policy(p.Confidence() + p.CertaintyDensity(sigma), p.TopK(p.Even(steps)))


@preset(
    source="Kim et al., KLASS, NeurIPS 2025 (arXiv:2511.05664); shkim0116/KLASS src/model/llada_klass.py, "
    'stable_confident_decode (alg="klass"). There the history of a position starts before its block opens; '
    "here with the block, so that the last distribution is kept for the open block alone",
    defaults='Default steps: None, one position a step. Default threshold: 0.9, "conf_threshold=0.9". Default drift: '
    '0.01, "kl_threshold=0.01". Default history: 2, "kl_history_length=2". Default block_length: 64, its '
    "scripts, which set threshold and drift by task: for LLaDA 0.9 and 0.01 for HumanEval, 0.6 and 0.015 for GSM8K, "
    "0.6 and 0.01 for MATH, 0.7 and 0.01 for MBPP. lizhuo-luo/DAWN llada/eval_instruct.sh measures it with the same.",
    cost="at most `steps` forwards; memory for one more distribution over the open block, `[B, W, V]` in float32.",
    block_length=64,
)
def klass(
    *, steps: int | None = None, threshold: float = 0.9, drift: float = 0.01, history: int = 2, **shared: Unpack[Shared]
) -> p.Policy:
    """KLASS: every position that is confident and whose distribution has been stable; else an even schedule."""
    select = p.StableOrQuota(p.Even(steps), threshold, drift, history)
    return p.Policy(p.Confidence(), select)


@preset(
    source="Yang et al., Taming Masked Diffusion Language Models via Consistency Trajectory Reinforcement Learning "
    "with Fewer Decoding Step (arXiv:2509.23924); yjyddq/EOSER-ASS-RL eval/generate.py, eoser_generate. Its eval.py "
    "asks for one block; with several, its factor starts again in each and stays far below 1, ours reaches 1 in each",
    defaults='Default steps: None, one position a step. Default eos_factor: 0.4, "eos_min_gamma=0.4". Default '
    "block_length: None, one block.",
    cost="one forward a token, or `steps`; no memory.",
)
def eoser(*, steps: int | None = None, eos_factor: float = 0.4, **shared: Unpack[Shared]) -> p.Policy:
    """EOS early rejection: the confidence of EOS is lowered at first, and less with each step."""
    return p.Policy(p.Confidence() + p.EarlyDiscount(("eos",), eos_factor), p.TopK(p.Even(steps)))


@preset(
    source="Wang et al., CreditDecoding (arXiv:2510.06133); inclusionAI/dInfer parallel_strategy.py, "
    "CreditThresholdParallelDecoder",
    defaults='Default threshold: 0.9, that of its benchmarks. Default strength: 0.7, "credit_alpha=0.7". Default '
    'decay: 0.8, "decay_beta=0.8". Default boost: 0.2, "boost_gamma=0.2". Default block_length: 64, its '
    "benchmarks'. Default cache: none.",
    cost="at most one forward a token; memory for the credits of the open block, `[B, W, V]` in float32.",
    block_length=64,
)
def credit(
    *, threshold: float = 0.9, strength: float = 0.7, decay: float = 0.8, boost: float = 0.2, **shared: Unpack[Shared]
) -> p.Sampler:
    """CreditDecoding: tokens that were the most likely one in earlier steps gain logits; then a threshold."""
    policy = p.Policy(p.Confidence(), p.Threshold(threshold))
    return p.Sampler(policy, p.Credit((), strength, decay, boost))


@preset(
    source="Dong et al., Saber, ACL 2026 (arXiv:2510.18165); zhaoyMa/Saber decoding.py, generate_with_saber. With "
    "several blocks, its first step after a block opens compares with a confidence of -inf; here with 0, as "
    "in the first block",
    defaults='Default count: 2, "n = 2". Default block_length: None, one block, "block_length=256" for 256 tokens. '
    "Later blocks may reopen earlier ones.",
    cost="fewer forwards than tokens, as long as steps commit more than they take back; three numbers a position.",
)
def saber(*, count: int = 2, **shared: Unpack[Shared]) -> p.Policy:
    """Saber: every position above the row's mean confidence, and the largest losers of confidence are taken back."""
    return p.Policy(p.Confidence(), p.AboveMeanAtCommit(count), p.GrowingBlocks(), p.LargestDrops(count))


@preset(
    source="Li et al., Diffusion Language Models Know the Answer Before Decoding (arXiv:2508.19982); "
    "pixeli99/Prophet generate_earlyexit.py, generate",
    defaults="Default answer_start: None, the gap is averaged over the masks that propose text, not EOS (ours: the "
    'published code needs the answer\'s place). Default answer_length: 5, "answer_length = 5". Default early: '
    "7.5, default middle: 5.0 and default late: 2.5, \"{'early': 7.5, 'mid': 5.0, 'late': 2.5}\". Default "
    "steps: None, one position a step. Default block_length: 32, its example.",
    cost="at most `steps` forwards; logits of the whole span at every step, so no dual cache, and with "
    "answer_start none at all; two numbers per row.",
    block_length=32,
)
def prophet(
    *,
    answer_start: int | None = None,
    answer_length: int = 5,
    early: float = 7.5,
    middle: float = 5.0,
    late: float = 2.5,
    steps: int | None = None,
    **shared: Unpack[Shared],
) -> p.Policy:
    """Prophet: once the model is clear about the answer, everything that is left is written at once."""
    stop = p.WhenAnswerIsClear(answer_start, answer_length, early, middle, late, steps)
    return p.Policy(p.Confidence(), p.TopK(p.Even(steps)), stop=stop)


@preset(
    source="Lu et al., AdaBlock-dLLM, ICLR 2026 (arXiv:2509.26432); lgxi24/AdaBlock-dLLM llada/generate_adablock.py,"
    " compute_block_length, generate_adablock and the same with its two caches",
    defaults='Default threshold: 0.9, "THRESHOLD=0.9". Default delimiter: newline, "delimiter_ids=[198]"; a model that'
    ' has no token for it is refused. Default delimiter_threshold: 0.3, "DELIMITER_THRESHOLD=0.3" for LLaDA '
    '(0.5 for Dream). Default block_length: 32, "INIT_BLOCK_LENGTH=32", where no delimiter is near. Default '
    "cache: none.",
    cost="at most one forward a token; the first step of a block needs logits of a quarter of the span; no memory.",
    block_length=32,
)
def adablock(
    *,
    threshold: float = 0.9,
    delimiter: Delimiter = "newline",
    delimiter_threshold: float = 0.3,
    **shared: Unpack[Shared],
) -> p.Policy:
    """AdaBlock: a block ends where the model expects a line to end; in it every position above a threshold."""
    blocks = p.DelimitedBlocks((DELIMITERS[delimiter],), delimiter_threshold)
    return p.Policy(p.Confidence(), p.Threshold(threshold), blocks)


@preset(
    source="Yang et al., Improving Sampling for Masked Diffusion Models via Information Gain, ICML 2026 "
    "(arXiv:2602.18176); yks23/Information-Gain-Sampler src/samplers/info_gain.py, InfoGainSampler. There "
    "each candidate draws tokens too, and the winner's probe is the next step's forward; here all propose the"
    " same tokens",
    defaults='Default candidates: 8, "candidate_number: 8". Default position_temperature: 0.2, "position_temperature: '
    '0.2". Default threshold: 0.8, "threshold: 0.8": where all masks of the block reach it, they are '
    'committed at once. Default block_length: 32, "block_size=32".',
    cost="at most one forward a token, and at most `candidates` probes with it; logits of the whole span for each "
    "probe, and its own session without a KV cache.",
    block_length=32,
)
def info_gain(
    *, candidates: int = 8, position_temperature: float = 0.2, threshold: float = 0.8, **shared: Unpack[Shared]
) -> p.Policy:
    """Info-Gain: of several candidates, the position that is certain now and leaves least uncertainty behind."""
    select = p.LeastUncertainNext(candidates, position_temperature, threshold)
    return p.Policy(p.Exp(p.Confidence()), select)


@preset(
    source="LookUM, ICML 2026 (arXiv:2511.05563), in the form of yks23/Information-Gain-Sampler "
    'src/samplers/info_gain.py, variant="lookum"; the paper\'s paths of several steps and its resampling have '
    "no public code",
    defaults='Default candidates: 8, "CANDIDATE_NUMBER=8". Default position_temperature: 0.1, '
    '"POSITION_TEMPERATURE=0.1" (eval_lookum.sbatch). Default threshold: 0.8, "THRESHOLD=0.8". Default '
    'block_length: 32, "block_size=32".',
    cost="as info_gain.",
    block_length=32,
)
def lookum(
    *, candidates: int = 8, position_temperature: float = 0.1, threshold: float = 0.8, **shared: Unpack[Shared]
) -> p.Policy:
    """LookUM's verifier: of several candidates, the position that leaves least uncertainty behind."""
    select = p.LeastUncertainNext(candidates, position_temperature, threshold, immediate=False)
    return p.Policy(p.Exp(p.Confidence()), select)


@preset(
    source="LLaDA2.1's joint threshold; sgl-project/sglang dllm/algorithm/joint_threshold.py, JointThreshold.step, "
    "without its repetition penalty, which is 0 by default. It is made for models that were trained to "
    "correct visible tokens; others may overwrite right ones",
    defaults='Default threshold: 0.5, default edit_threshold: 0 and default rounds: 16, "threshold", "edit_threshold" '
    'and "max_post_edit_steps" of JointThreshold. Default block_length: 32. Default cache: none.',
    cost="at most one forward a token, and at most `rounds` more a block, at least one; one number per row.",
    block_length=32,
)
def edit(
    *, threshold: float = 0.5, edit_threshold: float = 0.0, rounds: int = 16, **shared: Unpack[Shared]
) -> p.Policy:
    """Token editing: every position above a threshold, and standing tokens that the model would now write otherwise."""
    return p.Policy(p.Confidence(), p.Threshold(threshold), edit=p.Overwrite(edit_threshold, rounds))


@preset(
    source="Luo et al., DSB (arXiv:2602.05992); lizhuo-luo/DSB llada/generate.py, generate_dsb; with cache=window "
    "generate_dsb_cache",
    defaults='Default threshold: 0.9, "threshold=0.9". Default window: 32, "block_length=32". Default window_columns: '
    'None, "max_block_length=-1"; its form of constant length has 32. Default cache: none; its own is window.',
    cost="at most one forward a token, and a host sync after each; no memory.",
    window=32,
)
def dsb(*, threshold: float = 0.9, window_columns: int | None = None, **shared: Unpack[Shared]) -> p.Policy:
    """DSB: every position above a threshold in a window that slides with the first mask."""
    return p.Policy(p.Confidence(), p.Threshold(threshold), p.SlidingWindow(columns=window_columns))


@preset(
    source="Shu et al., Deferred Commitment Decoding (arXiv:2601.02076); shuyingte/DCD decode_algorithm.py, "
    "window_bidirectional_decode",
    defaults='Default threshold: 0.9, "decode_param: 0.9". Default window: 32, "initial_window_length: 32". Default '
    'window_columns: None, "max_window_length: 1000000000". Default cache: none.',
    cost="at most one forward a token, and a host sync after each; no memory.",
    window=32,
)
def dcd(*, threshold: float = 0.9, window_columns: int | None = None, **shared: Unpack[Shared]) -> p.Policy:
    """DCD: the same window as DSB's, and everything behind an EOS token is EOS at once."""
    window = p.SlidingWindow(columns=window_columns)
    return p.Policy(p.Confidence(), p.Threshold(threshold), window, stop=p.FromFirstEos())


@preset(
    source="Zhai et al., CORE: Context-Robust Remasking for Diffusion Language Models, ICML 2026 (arXiv:2602.04096); "
    'UCF-CRCV/core generate.py, remasking="core". As there, a token that is taken back is written again in the same '
    "step, from the probe; blocks of at most 16 tokens are never revised, because their last 16 are protected",
    defaults='Default steps: None, one position a step. Default candidates: 32, "CANDIDATE_M". Default every: 8, '
    '"REVISE_EVERY". Default count: 1, "remask_k=1". Default edit_threshold: 0.3, "repl_conf_ok". Default '
    'block_length: None, one block, "block_length=512" for 512 tokens.',
    cost="one forward a token, or `steps`; in the middle half of them one probe at every `every`-th, with its own "
    "session without a KV cache; no memory.",
)
def core(
    *,
    steps: int | None = None,
    candidates: int = 32,
    every: int = 8,
    count: int = 1,
    edit_threshold: float = 0.3,
    **shared: Unpack[Shared],
) -> p.Policy:
    """CORE: tokens that the model would not write again without their neighbours are revised."""
    revise = p.OverwriteBrittle(candidates, every, count, edit_threshold)
    return p.Policy(p.Confidence(), p.TopK(p.Even(steps)), edit=revise)


@preset(
    source="Xu et al., LoPA (arXiv:2512.16229); zhijie-group/LoPA lopa_dist_nv/generate_branch_parallel.py, "
    "DreamLoRA._generate_enhanced_speculative. There several blocks are open at a time, as D2F's models want it, and "
    "the winner's probe is the next step's forward; here one block is open",
    defaults='Default candidates: 4, "NUM_BRANCHES=4", the anchor among them. Default threshold: 0.9, one of its '
    "SKIP_THRESHOLDS (0.7 to 0.95). The order by entropy, the mean over all masks and no weight for the further "
    'token\'s own confidence are those of its scripts: "neg_entropy", "BRANCH_TOPPS" 1 and "SELECTION_CONF_ALPHAS" 0. '
    'Default block_length: 32, "BLOCK_SIZES". Default cache: none.',
    cost="at most one forward a token, and at most `candidates` probes with it; logits of the whole span for each "
    "probe, and its own session without a KV cache.",
    block_length=32,
)
def lopa(*, candidates: int = 4, threshold: float = 0.9, **shared: Unpack[Shared]) -> p.Policy:
    """LoPA: every sure position, and perhaps one more: the branch after which the model is least uncertain."""
    return p.Policy(p.NegEntropy(), p.Lookahead(candidates, threshold))
