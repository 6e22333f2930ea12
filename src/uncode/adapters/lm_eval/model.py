"""A denoiser as a model of lm-eval: generation on the engine, log-likelihoods by our estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import lm_eval.models  # noqa: F401  # lm-eval does not import its own models once ours is registered
import torch
import torch.distributed as dist
from jinja2.exceptions import TemplateError
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.utils import simple_parse_args_string
from rich.console import Console
from rich.progress import track
from torch import Tensor

from ...backbones.guidance import Guided
from ...backbones.loading.load import check_exists, load
from ...core.denoiser import Denoiser
from ...core.errors import UncodeError, require, suggest
from ...evals.run.config import SamplerEntry
from ...evals.run.models.diffusion import DiffusionModel
from ...evals.run.models.model import PreparedSampler, Question
from ...evals.run.processes import ProcessPlace
from ...evals.run.sample import sample_key
from ...evals.task import Example, TaskSettings
from ...generation.likelihood import MAX_EXACT_TOKENS, log_likelihood
from ...generation.prompt import encode
from ...models import sampler_files
from ...samplers.catalog import catalog, find, is_file, read_options, read_shared
from ...samplers.options import DEFAULT_SAMPLER
from ...samplers.resolve import require_table, resolve
from ...version import __version__
from .journal import AnswerJournal, Row
from .requests import DEFAULT_LENGTH, NO_CACHE, read_generations, warn_once

AUTO_BATCH = 32
"""Rows of a batch for `--batch_size auto`; the engine lets fewer join where memory is short."""
DEFAULT_CONTEXT = 2048
"""Tokens of a window of `loglikelihood_rolling`, for models that do not say how many they were trained on."""
ARGUMENTS = (
    *("pretrained", "sampler", "length", "seed", "journal", "frequency", "guidance", "stop_at_eos"),
    *("likelihood_samples", "likelihood_batch", "check_greedy"),
    *("device", "dtype", "weights", "device_map", "revision", "batch_size"),
)
"""The names in --model_args that are not options of the sampler."""
LM_EVAL_DEVICE = "cuda:0"
"""What lm-eval asks for if the user names no device, on a machine without a GPU too."""
Pair = tuple[tuple[int, ...], tuple[int, ...]]
"""The ids of a context and of its continuation."""
T = TypeVar("T")


@register_model("uncode")
class UncodeLM(TemplateLM):  # type: ignore[misc]  # lm-eval has no types
    """A masked diffusion model with a sampler. Arguments that are not named here are options of the sampler.

    `length` is the number of tokens to generate; a task's `max_gen_toks` is its upper limit, and its value where
    `length` is not given. `journal` is a folder for the answers, from which a stopped run is resumed.
    """

    def __init__(
        self,
        pretrained: str | Denoiser = "tiny",
        sampler: str = DEFAULT_SAMPLER,
        *,
        length: int | None = None,
        seed: int = 0,
        journal: str | Path | None = None,
        frequency: str | None = None,
        guidance: float = 0.0,
        stop_at_eos: bool = True,
        likelihood_samples: int = 128,
        likelihood_batch: int = 16,
        check_greedy: bool = True,
        device: str | None = None,
        dtype: str | None = None,
        weights: str | None = None,
        device_map: str | None = None,
        revision: str | None = None,
        batch_size: int | str = 1,
        max_batch_size: int | None = None,
        trust_remote_code: bool = False,  # set by an option of lm-eval's; no code of a checkpoint is ever run
        **options: Any,
    ) -> None:
        super().__init__()
        self.place = ProcessPlace.from_environment()
        self._rank, self._world_size = self.place.process, self.place.processes
        if self.world_size > 1 and not dist.is_initialized():
            dist.init_process_group("gloo")  # for texts and grades; no tensor leaves its GPU
        self.length = None if length is None else _whole(length, "length", 1)
        self.seed, self.check_greedy = _whole(seed, "seed"), _boolean(check_greedy, "check_greedy")
        self.likelihood_samples = _whole(likelihood_samples, "likelihood_samples", 1)
        self.likelihood_batch = _whole(likelihood_batch, "likelihood_batch", 1)
        is_auto = str(batch_size).startswith("auto")
        self.batch = max_batch_size or AUTO_BATCH if is_auto else _whole(batch_size, "batch_size", 1)
        given = options if frequency is None else options | {"frequency": frequency}
        files = pretrained.samplers if isinstance(pretrained, Denoiser) else sampler_files(pretrained)
        preset = _check_sampler(sampler, given, files)
        self.journal = AnswerJournal(None if journal is None else Path(str(journal)), self.rank)
        if isinstance(pretrained, Denoiser):
            name, denoiser = str(pretrained.about.get("model", type(pretrained).__name__)), pretrained
        else:
            name = pretrained
            own = check_exists(name, None if revision is None else str(revision), self.length or 0)
            made = resolve(preset, None, None, given, own=own.table)  # a wrong one is found before weights are read
            require_table(made, own.released)
            denoiser = self._load(name, device, device_map, dtype, weights, revision)
        denoiser = Guided(denoiser, float(guidance)) if guidance else denoiser
        self.model = DiffusionModel(name, denoiser, allows_fallback=True)  # the results hold the sampler that ran
        self.denoiser, self.tokenizer = self.model.denoiser, self.model.denoiser.tokenizer
        entry = SamplerEntry(preset, sampler, given, stop_at_eos=_boolean(stop_at_eos, "stop_at_eos"))
        self.sampler, self._filling = (self._prepare(one) for one in (entry, replace(entry, stop_at_eos=False)))

    @classmethod
    def create_from_arg_obj(cls, arg_dict: Row, additional_config: Row | None = None) -> UncodeLM:
        """Build the model from --model_args. They win over lm-eval's options, which have defaults (cuda:0, batch 1)."""
        others = {name: value for name, value in (additional_config or {}).items() if value is not None}
        return cls(**{**others, **arg_dict})

    @classmethod
    def create_from_arg_string(cls, arg_string: str, additional_config: Row | None = None) -> UncodeLM:
        """The same, from one text."""
        return cls.create_from_arg_obj(simple_parse_args_string(arg_string), additional_config)

    def _load(
        self,
        name: str,
        device: str | None,
        device_map: str | None,
        dtype: str | None,
        weights: str | None,
        revision: object,
    ) -> Denoiser:
        if name == "toy":
            return load(name)  # it takes no options, and lm-eval always names a device
        wanted = None if device == LM_EVAL_DEVICE else device
        place = self.place.device(wanted) if device_map is None else None
        text = None if revision is None else str(revision)  # lm-eval reads digits as a number
        return load(name, device=place, dtype=dtype, weights=weights, device_map=device_map, revision=text)

    def _prepare(self, entry: SamplerEntry) -> PreparedSampler:
        length = self.length or DEFAULT_LENGTH
        return self.model.prepare(
            entry, TaskSettings(shots=0, length=length, rate=0, chat=False, block_length=length), {}
        )

    # -- what lm-eval asks about the model --------------------------------------------------------

    @property
    def eot_token_id(self) -> int:
        require(len(self.denoiser.eos_ids) > 0, "this model has no EOS token, which lm-eval asks for.")
        return self.denoiser.eos_ids[0]

    @property
    def max_length(self) -> int:
        return self.denoiser.context or DEFAULT_CONTEXT

    @property
    def tokenizer_name(self) -> str:
        """For lm-eval's cache of prompts: the name of the model, and the fingerprint of its tokenizer."""
        return f"{self.model.name}-{self.denoiser.about.get('tokenizer', '')}".replace("/", "__")

    def get_model_info(self) -> dict[str, object]:
        """For the results' config: everything that decides an answer."""
        about = {"version": __version__, "model": self.model.name, "seed": self.seed, "length": self.length}
        likelihood = {"samples": self.likelihood_samples, "batch": self.likelihood_batch}
        return {
            "model_num_parameters": self.denoiser.parameters,
            "model_dtype": str(self.denoiser.dtype),
            "model_weights": str(self.denoiser.about.get("weights", "")),
            "model_revision": str(self.denoiser.about.get("revision", "")),
            "model_sha": self.model.fingerprint,
            "sampler": dict(self.sampler.definition),
            "uncode": about | {"sampler": self.sampler.entry.label, "likelihood": likelihood},
        }

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: object) -> list[int]:
        """The token ids of a text. The template of a chat has written all special tokens; no others are added."""
        return encode(self.denoiser, string)

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """Messages as a prompt. Without a generation prompt the last message is an answer to be continued."""
        known = getattr(self.tokenizer, "chat_template", None)
        require(bool(known), f"'{self.model.name}' has no chat template: leave --apply_chat_template out.")

        def render(messages: list[dict[str, str]]) -> str:
            options = {"continue_final_message": not add_generation_prompt, "tokenize": False}
            found = self.tokenizer.apply_chat_template(messages, add_generation_prompt=add_generation_prompt, **options)
            return str(found)

        try:
            return render(chat_history)
        except TemplateError as error:
            if not any(one["role"] == "system" for one in chat_history):
                raise UncodeError(f"the chat template of '{self.model.name}' fails: {error}.") from error
        warn_once("the chat template takes no system message: it is put before the first user message.")
        return render(_without_system(chat_history))

    # -- data parallel ----------------------------------------------------------------------------

    def all_gather(self, tensor: Tensor) -> Tensor:
        """The tensors of all processes, one after the other."""
        mine = tensor.detach().cpu().reshape(-1)
        found = [torch.empty_like(mine) for _ in range(self.world_size)]
        dist.all_gather(found, mine)
        return torch.cat(found)

    def gather_object(self, obj: object, dst: int = 0) -> list[object] | None:
        """The objects of all processes, on process `dst`; None on the others."""
        found: list[object] | None = [None] * self.world_size if self.rank == dst else None
        dist.gather_object(obj, found, dst=dst)
        return found

    def barrier(self) -> None:
        dist.barrier()

    def set_cache_hook(self, cache_hook: object) -> None:
        """lm-eval calls this for `--use_cache` only."""
        raise UncodeError(NO_CACHE)

    # -- generation -------------------------------------------------------------------------------

    def generate_until(self, requests: Sequence[Instance], disable_tqdm: bool = False) -> list[str]:
        """The answers, up to their first stop string. They are cut after decoding, which has no left-to-right order."""
        asked = list(read_generations(requests, self.length, self.seed))
        questions = [
            Question(Example(one.id), self.model.encode(one.context, chat=False), one.length, one.seed) for one in asked
        ]
        rows = self._decode(questions, self.sampler, "generate_until", disable_tqdm)
        return [one.cut(row["text"]) for one, row in zip(asked, rows, strict=True)]

    def _decode(self, questions: Sequence[Question], sampler: PreparedSampler, what: str, is_quiet: bool) -> list[Row]:
        """The journal's lines of the questions. Those that it does not hold are decoded first."""
        weights, definition = self.model.fingerprint, sampler.definition
        keys = [
            sample_key({"prompt": one.prompt_sha256, "length": one.length}, weights, definition, one.seed)
            for one in questions
        ]
        missing = {key: one for key, one in zip(keys, questions, strict=True) if key not in self.journal}
        key_of = {one: key for key, one in missing.items()}
        longest = max((len(one.prompt_ids) + one.length for one in questions), default=0)
        if longest > self.max_length and self.denoiser.context is not None:
            warn_once(
                f"prompts and answers have up to {longest} tokens, but the model was trained on {self.max_length}."
            )
        answers = self.model.answers(sampler, list(missing.values()), self.batch)
        with self.journal.writing() as add:
            for question, answer in self._progress(answers, len(missing), what, is_quiet):
                add(
                    {
                        "key": key_of[question],
                        "id": question.example.id,
                        "sampler": sampler.entry.label,
                        "prompt_sha256": question.prompt_sha256,
                        "length": question.length,
                        "seed": question.seed,
                        "text": answer.text,
                        "token_ids": list(answer.token_ids),
                        "forwards": answer.forwards,
                        "tokens": answer.tokens,
                        "seconds": round(answer.seconds, 6),
                    }
                )
        return [self.journal[key] for key in keys]

    def _progress(self, work: Iterable[T], total: int, what: str, is_quiet: bool) -> Iterable[T]:
        is_quiet = is_quiet or self.rank > 0 or not total
        return track(work, f"uncode {what}", total, console=Console(stderr=True), disable=is_quiet)

    # -- log-likelihoods --------------------------------------------------------------------------

    def loglikelihood(self, requests: Sequence[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """For each context and continuation, the log-likelihood, and whether the sampler writes the continuation."""
        pairs = [(request.args, *self._encode_parts(*request.args)) for request in requests]
        return self._loglikelihood_tokens(pairs, disable_tqdm)

    def _encode_parts(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        """The ids of both, of which only the tokens of the continuation are scored. An empty context is no token."""
        before, answer = self._encode_pair(context, continuation) if context else ([], self.tok_encode(continuation))
        if not answer and continuation:  # the tokenizer has merged it into the last token of the context
            before, answer = self.tok_encode(context), self.tok_encode(continuation)
        return before, answer

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[object, list[int], list[int]]], disable_tqdm: bool = False, **kwargs: object
    ) -> list[tuple[float, bool]]:
        frame = list(self.denoiser.frame[0])
        pairs = [(tuple(frame + context), tuple(answer)) for _, context, answer in requests]
        greedy = self._are_greedy(pairs, disable_tqdm) if self.check_greedy else [False] * len(pairs)
        return list(zip(self._scores(pairs, "loglikelihood", disable_tqdm), greedy, strict=True))

    def _scores(self, pairs: Sequence[Pair], what: str, is_quiet: bool) -> list[float]:
        """Log-likelihoods, from the journal or computed now. The same masks are drawn for answers of equal length."""
        settings = {"samples": self.likelihood_samples, "batch": self.likelihood_batch}
        requests = ({"context": context, "answer": answer, "likelihood": settings} for context, answer in pairs)
        keys = [sample_key(request, self.model.fingerprint, {}, self.seed) for request in requests]
        missing = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self.journal}
        with self.journal.writing() as add:
            for key, (context, answer) in self._progress(missing.items(), len(missing), what, is_quiet):
                add({"key": key, "log_likelihood": self._log_likelihood(context, answer)})
        return [float(self.journal[key]["log_likelihood"]) for key in keys]

    def _log_likelihood(self, context: tuple[int, ...], answer: tuple[int, ...]) -> float:
        """Our estimate in nats. Where all ways to mask the answer are fewer than the samples, it is exact."""
        if not answer:
            return 0.0
        few = len(answer) <= MAX_EXACT_TOKENS and 2 ** len(answer) - 1 <= self.likelihood_samples
        return log_likelihood(
            self.denoiser,
            context,
            answer,
            method="exact" if few else "monte carlo",
            samples=self.likelihood_samples,
            batch_size=self.likelihood_batch,
            seed=self.seed,
        )

    def _are_greedy(self, pairs: Sequence[Pair], is_quiet: bool) -> list[bool]:
        """Whether the sampler, given the length of the answer, writes exactly the answer."""
        example, answered = Example("loglikelihood"), [pair for pair in pairs if pair[1]]
        asked = [Question(example, context, len(answer), self.seed) for context, answer in answered]
        rows = iter(self._decode(asked, self._filling, "greedy", is_quiet))
        return [not answer or tuple(next(rows)["token_ids"]) == answer for _, answer in pairs]

    def loglikelihood_rolling(self, requests: Sequence[Instance], disable_tqdm: bool = False) -> list[float]:
        """The log-likelihood of whole texts, in windows of the model's context. A window sees the token before it."""
        frame = tuple(self.denoiser.frame[0])
        windows = [self._windows(tuple(self.tok_encode(request.args[0])), frame) for request in requests]
        scores = self._scores([pair for text in windows for pair in text], "loglikelihood_rolling", disable_tqdm)
        left = iter(scores)
        return [sum(islice(left, len(text))) for text in windows]

    def _windows(self, ids: tuple[int, ...], frame: tuple[int, ...]) -> list[Pair]:
        size = max(1, self.max_length - len(frame) - 1)
        return [(frame + ids[max(0, at - 1) : at], ids[at : at + size]) for at in range(0, len(ids), size)]


def _check_sampler(name: str, options: Mapping[str, Any], own: Mapping[str, Path]) -> str:
    """The preset or sampler file of that name. An unknown name or option is an error, before a model is loaded.

    `own` are the sampler files of the model.
    """
    if is_file(name) or (name in own and name not in catalog()):
        read_shared(name, {key: value for key, value in options.items() if key != "frequency"})
        return str(own.get(name, name))
    known = {option.name: option for option in find(name, own).options}
    takes_table = "frequency" in known or "frequency" not in options
    require(takes_table, f"the sampler '{name}' takes no frequency table: leave frequency out of --model_args.")
    for key in options:
        near = suggest(key, [*ARGUMENTS, *known])
        require(key in known, f"--model_args has no '{key}', and the sampler '{name}' neither: {near}")
    read_options(name, options)
    return name


def _boolean(value: object, name: str) -> bool:
    require(isinstance(value, bool), f"{name} in --model_args must be true or false, not {value!r}.")
    return bool(value)


def _without_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """The messages with the system message at the beginning of the first one of the user."""
    system = "\n\n".join(one["content"] for one in messages if one["role"] == "system")
    others = [dict(one) for one in messages if one["role"] != "system"]
    first = next((one for one in others if one["role"] == "user"), None)
    if first is None:
        return [{"role": "user", "content": system}, *others]
    first["content"] = f"{system}\n\n{first['content']}"
    return others


def _whole(value: Any, name: str, least: int | None = None) -> int:
    """A whole number of --model_args, where lm-eval reads some as floats or texts."""
    try:
        found = int(value)
        fits = found == float(value) and (least is None or found >= least)
    except (TypeError, ValueError, OverflowError):
        fits = False
    limit = "" if least is None else f" of at least {least}"
    require(fits, f"{name} in --model_args must be a whole number{limit}, not {value!r}.")
    return found
