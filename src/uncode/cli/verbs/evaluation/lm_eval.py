"""`uncode lm-eval`: lm-evaluation-harness with our models, samplers, tasks and sandbox."""

from __future__ import annotations

import typer

from ....core.errors import require

SUMMARY = "Run lm-evaluation-harness with our models, samplers and tasks."
SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
"""All words are passed on, except a --help that comes first."""


def command(context: typer.Context) -> None:
    """Run lm-evaluation-harness with our models, samplers, tasks and sandbox.

    All arguments are passed on to lm-eval; `uncode lm-eval run --help` prints its own help. The model is
    `--model uncode`. --model_args takes pretrained, sampler and the sampler's options (rate=0.25), length (tokens to
    generate), seed, journal (a folder for the answers, to resume a stopped run), frequency, guidance, stop_at_eos,
    likelihood_samples, check_greedy, dtype, weights and revision.

    Our tasks are uncode_gsm8k, uncode_mbpp, uncode_mini_story, ...; --metadata data=DIR names the folder of the
    benchmarks' files. Generated programs run in our sandbox. --use_cache is refused: use journal=DIR.

    Examples:

      uncode lm-eval --model uncode --model_args pretrained=tiny,length=64 --tasks uncode_mini_story --limit 8
      uncode lm-eval --model uncode --model_args pretrained=GSAI-ML/LLaDA-8B-Base,frequency=llada --tasks gsm8k
      uncode lm-eval --model uncode --model_args sampler=confidence --tasks humaneval --batch_size auto
      uncode lm-eval ls tasks
    """
    require(len(context.args) > 0, "there is nothing to pass on to lm-eval: see `uncode lm-eval --help`.")

    from ....adapters.lm_eval.launch import run

    run(context.args)
