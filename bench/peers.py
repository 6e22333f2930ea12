"""Published decoding loops beside ours: tokens per second on the same random weights, prompt and quota, in one run.

FOLDER is a clone of github.com/lizhuo-luo/DSB, which holds DSB's functions and Fast-dLLM's, or of
github.com/NVlabs/Fast-dLLM. This command runs the code of that folder, so name one that you trust. Nothing of it is
part of this repository. The network is that of bench/gpu.py, and the published model class shares its weights. Needs a
CUDA GPU with 80 GB, and transformers.

    python bench/peers.py ../DSB                                   # three minutes on an H200
    python bench/peers.py ../DSB --weights bf16 --quotas 4 --check # fails below 8 times the fastest of theirs
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import throughput
import torch
import workload
from workload import WEIGHTS, between, denoiser, network, prompts

from uncode.backbones.dialects.llada import LLADA, config_of
from uncode.backbones.transformer.network import Transformer
from uncode.util.write import write_whole

PLACES = (".", "llada", "v1/llada")
"""Where in a clone the file generate.py is looked for."""
MARGIN = 24
"""DSB's default: so many columns to the left of the first mask are computed again."""
CACHES = ("dual", "window-never")
CHECKED_QUOTA, MIN_SPEEDUP = 4, 8.0


@dataclass
class Peer:
    """One published function with its settings."""

    name: str
    function: str
    settings: dict[str, Any] = field(default_factory=dict)


def peers() -> tuple[Peer, ...]:
    constant = {"prefix_window": MARGIN, "max_block_length": workload.BLOCK}
    return (
        Peer("generate, no cache", "generate"),
        Peer("generate_with_dual_cache", "generate_with_dual_cache"),
        Peer("generate_dsb_cache, growing", "generate_dsb_cache", {"prefix_window": MARGIN}),
        Peer("generate_dsb_cache, constant", "generate_dsb_cache", constant),
    )


@dataclass
class Line:
    """One line of the table, by tokens a forward."""

    name: str
    rates: throughput.Rates = field(default_factory=dict)
    forwards: dict[int, int] = field(default_factory=dict)
    speedups: throughput.Rates = field(default_factory=dict)
    """How many times as fast as the fastest published function; only of our lines."""

    def __str__(self) -> str:
        rates = "".join(f"{rate:9.1f}" for rate in self.rates.values())
        forwards = "".join(f"{count:6}" for count in self.forwards.values())
        return f"{self.name:30}{rates}  |{forwards}  |" + "".join(f"{each:7.1f}" for each in self.speedups.values())


def published_code(folder: Path) -> ModuleType:
    """Import generate.py from a clone. Its own imports are found beside it."""
    place = next((folder / part for part in PLACES if (folder / part / "generate.py").is_file()), None)
    if place is None:
        sys.exit(f"'{folder}' has no generate.py, nor has its folder llada: name a clone of DSB or Fast-dLLM.")
    print(f"running the code in {place.resolve()}, which is not part of uncode", flush=True)
    sys.path.insert(0, str(place.resolve()))
    code = importlib.import_module("generate")
    if not hasattr(code, "LLaDAModelLM"):
        sys.exit(f"{place / 'generate.py'} imports no LLaDAModelLM: name a clone of DSB or Fast-dLLM.")
    return code


def published_model(code: ModuleType, made: Transformer) -> Any:
    """The published class with the parameters of our network, not copies of them."""
    kind = code.LLaDAModelLM
    file = sys.modules[kind.__module__]
    config = kind.config_class(**config_of(made.shape))
    config.use_cache = False  # the class reads it; transformers 5 no longer sets it
    settings = file.create_model_config_from_pretrained_config(config)
    settings.init_device = "meta"
    model = kind(config, model=file.LLaDAModel(settings, init_params=False))
    model.load_state_dict({LLADA.published(name): p for name, p in made.named_parameters()}, assign=True)
    return model.eval()


def theirs(code: ModuleType, model: Any, peer: Peer, quotas: Sequence[int]) -> Line:
    """Measure one published function: the better of two decodes for each number of tokens a forward."""
    line, prompt = Line(peer.name), prompts(1).to(workload.DEVICE)
    sizes = {"gen_length": workload.LENGTH, "block_length": workload.BLOCK, "mask_id": workload.MASK}
    decode: Callable[..., Any] = partial(getattr(code, peer.function), model, prompt, **sizes, **peer.settings)

    def once(quota: int) -> torch.Tensor:
        tokens: torch.Tensor
        tokens, line.forwards[quota] = decode(steps=workload.LENGTH // quota)
        if (tokens == workload.MASK).any() or not torch.equal(tokens[:, : workload.PROMPT], prompt):
            sys.exit(f"{peer.function} left masks, or changed the prompt.")
        return tokens

    with redirect_stdout(io.StringIO()):  # they print the number of their forwards
        once(max(quotas))  # compiles and allocates
        line.forwards.clear()
        for quota in quotas:
            line.rates[quota] = 1e3 * workload.LENGTH / min(between(once(quota) for _ in range(2)))
    return line


def ours(layers: int, weights: str, quotas: Sequence[int], best: throughput.Rates, prior: float) -> Iterator[Line]:
    model = denoiser(network(layers, weights))
    for cache in CACHES:
        row = throughput.measure(model, throughput.Row(weights, cache, 1), quotas, prior)
        speedups = {quota: rate / best[quota] for quota, rate in row.rates.items()}
        yield Line(f"ours, {weights}, {cache}", row.rates, row.forwards, speedups)


def measured(folder: Path, layers: int, formats: Sequence[str], quotas: Sequence[int], prior: float) -> Iterator[Line]:
    """Print and yield all lines, the published functions first."""
    code = published_code(folder)
    titles = "".join(f"{quota:9}" for quota in quotas), "".join(f"{quota:6}" for quota in quotas)
    print("tokens/s by tokens a forward  |  forwards  |  times the fastest published function")
    print(f"{'':30}{titles[0]}  |{titles[1]}  |{''.join(f'{quota:7}' for quota in quotas)}", flush=True)
    best = dict.fromkeys(quotas, 0.0)
    model = published_model(code, network(layers))
    for peer in peers():
        if hasattr(code, peer.function):
            line = theirs(code, model, peer, quotas)
            best = {quota: max(rate, line.rates[quota]) for quota, rate in best.items()}
            print(line, flush=True)
            yield line
    del model
    gc.collect()
    torch.backends.cuda.enable_mem_efficient_sdp(True)  # their model class turns it off for the whole process
    for weights in formats:
        for line in ours(layers, weights, quotas, best, prior):
            print(line, flush=True)
            yield line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a clone of DSB or Fast-dLLM, whose code is run")
    parser.add_argument("--weights", nargs="+", default=("bf16", "fp8"), choices=WEIGHTS)
    parser.add_argument("--quotas", type=int, nargs="+", default=throughput.QUOTAS, help="tokens a forward")
    parser.add_argument("--prior", type=float, default=workload.PRIOR, help="rate of the positional prior in windows")
    parser.add_argument("--layers", type=int, default=workload.SHAPE.layers)
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    parser.add_argument(
        "--check", action="store_true", help=f"fail below {MIN_SPEEDUP:.0f} times at 4 tokens a forward"
    )
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA GPU.")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    lines = list(measured(chosen.folder, chosen.layers, chosen.weights, chosen.quotas, chosen.prior))
    if chosen.out:
        write_whole(chosen.out, json.dumps([asdict(line) for line in lines], indent=1) + "\n")
    speedup = max(line.speedups.get(CHECKED_QUOTA, 0.0) for line in lines)
    return int(chosen.check and speedup < MIN_SPEEDUP)


if __name__ == "__main__":
    sys.exit(main())
