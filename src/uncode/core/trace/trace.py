"""The trace: what was written where, when, and with what belief. One JSON line per row."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...version import __version__
from ..canvas import Canvas
from ..denoiser import Denoiser
from ..errors import UncodeError, require, shown
from ..pieces.policy import Sampler
from ..pieces.tables import FrequencySource, Resolver, resolver_of
from ..support.above import from_above
from ..support.arguments import whole_number
from ..support.json_lines import read_json_lines
from ..support.reprs import counted
from .row_record import FILLED, GIVEN, Event, RowRecord
from .schema import FLOATS, OF_ROW, SCHEMA, SHARED, Damage, read_line
from .texts import token_texts

_NAN = float("nan")


@dataclass(frozen=True, eq=False)
class Trace:
    """The record of a batch's decode: which token was committed where, when and how surely.

    Arrays over offsets are `[B, S]`, arrays over a row's own steps `[B, T]`.
    """

    canvas: Canvas
    """As it was before the first step."""
    tokens: Tensor
    """The whole canvas after the last, `[B, L]`."""
    commit_step: Tensor
    """The row's own forward at which the offset was committed; -1 given, -2 filled by the stop rule."""
    logp: Tensor
    entropy: Tensor
    margin: Tensor
    score: Tensor
    runner_up: Tensor
    """The best offset that was not committed in that step; NaN where none was left."""
    terms: tuple[dict[str, Tensor], ...]
    """Per row, each term of the score at commit, `[S]`."""
    forwards: Tensor
    """Forwards each row took part in, probes included, `[B]`."""
    committed: Tensor
    """Tokens committed per step; -1 after the row has ended."""
    mean_entropy: Tensor
    """Mean entropy of the masked positions per step; NaN where none was masked and after the row has ended."""
    window: Tensor
    """The row's own positions each step recomputed, first and one past the last, `[B, T, 2]`; -1 after its end."""
    samplers: tuple[Sampler, ...]
    constraints: tuple[dict[str, Any] | None, ...]
    """Per row, its constraint as data; None where it had none."""
    seeds: tuple[int, ...]
    header: dict[str, Any]
    """What the model says about itself, dtype, special ids, `observe` and versions."""
    events: tuple[list[Event], ...]
    """Per row, every (step, offset, token) written, -1 for erased; empty unless a remasker ran."""
    drafts: tuple[list[list[int]], ...]
    """Per row, the whole proposal of each step by offset, on request; -1 where the step did not look."""
    probes: tuple[list[int], ...]
    """Per row, the probes of each step; empty unless the sampler has any."""

    @classmethod
    def of(cls, canvas: Canvas, rows: Sequence[RowRecord], header: dict[str, Any]) -> Trace:
        """Assemble from what the stepper recorded of each row."""
        steps = max(row.steps for row in rows)

        def over_steps(values: Iterable[Tensor], fill: float) -> Tensor:
            return torch.stack([_lengthen(of_row.cpu(), steps, fill) for of_row in values])

        return cls(
            canvas=canvas.to("cpu"),
            tokens=_stack(row.tokens for row in rows),
            commit_step=_stack(row.commit_step for row in rows),
            logp=_stack(row.logp for row in rows),
            entropy=_stack(row.entropy for row in rows),
            margin=_stack(row.margin for row in rows),
            score=_stack(row.score for row in rows),
            runner_up=_stack(row.runner_up for row in rows),
            terms=tuple({name: term.cpu() for name, term in row.terms.items()} for row in rows),
            forwards=torch.tensor([row.forwards for row in rows]),
            committed=over_steps((row.committed for row in rows), -1),
            mean_entropy=over_steps((row.mean_entropy for row in rows), _NAN),
            window=over_steps((row.window for row in rows), -1).transpose(1, 2),
            samplers=tuple(row.sampler for row in rows),
            constraints=tuple(row.constraint for row in rows),
            seeds=tuple(row.seed for row in rows),
            header={"schema": SCHEMA} | header,
            events=tuple(row.events for row in rows),
            drafts=tuple(row.drafts for row in rows),
            probes=tuple(row.probes for row in rows),
        )

    def __len__(self) -> int:
        """The most forwards that a row took: without probes, the forwards of the batch."""
        return int(self.forwards.max())

    @property
    def steps(self) -> Tensor:
        """Steps of each row, `[B]`: its forwards without the probes."""
        return self.forwards - torch.tensor([sum(probes) for probes in self.probes])

    @property
    def generated(self) -> Tensor:
        """The generated span, `[B, S]`."""
        return self.tokens[:, self.canvas.start :]

    @property
    def rows(self) -> list[Tensor]:
        """The tokens of each row, prompt and span, without its padding."""
        return [tokens[valid] for tokens, valid in zip(self.tokens, self.canvas.valid, strict=True)]

    def texts(self, tokenizer: Any) -> list[str]:
        """The text of each row's span, without special tokens. An answer ends at the first EOS token that was written;
        a span with given text in it is whole."""
        ends, found = {*self.header["special_ids"]} - {self.canvas.mask_id}, list[str]()
        for row, length in enumerate(self.canvas.lengths.tolist()):
            ids, steps = self.generated[row, :length].tolist(), self.commit_step[row, :length].tolist()
            is_text = [token not in ends for token in ids]
            with_gaps = any(step == GIVEN and text for step, text in zip(steps, is_text, strict=True))
            stop = length if with_gaps or all(is_text) else is_text.index(False)
            found.append(str(tokenizer.decode(ids[:stop], skip_special_tokens=True)))
        return found

    @property
    def sequence_entropy(self) -> Tensor:
        """The paper's H_seq, `[B]`: the mean entropy of all masked positions, averaged over a row's steps."""
        require(
            self.header["observe"] == "span",
            "H_seq needs the entropy of every masked position at every step: decode with observe='span'.",
        )
        return self.mean_entropy.nanmean(-1)

    def replay(self, steps: int | None = None) -> Tensor:
        """The canvas `[B, L]` after each row's first `steps`, rebuilt from the record (None: the end)."""
        tokens = self.canvas.tokens.clone()
        last = len(self) if steps is None else whole_number(steps, "the number of steps to replay")
        span = tokens[:, self.canvas.start :]
        for row, events in enumerate(self.events):
            if events:
                for step, offset, token in events:
                    if step < last:
                        span[row, offset] = token if token >= 0 else self.canvas.mask_id
            else:
                done = (self.commit_step[row] >= 0) & (self.commit_step[row] < last)
                span[row] = torch.where(done, self.generated[row], span[row])
            if last >= int(self.steps[row]):
                span[row] = torch.where(self.commit_step[row] == FILLED, self.generated[row], span[row])
        return tokens

    def to_frame(self, tokenizer: Any = None) -> Any:
        """A pandas data frame with one line per row and offset (extra `frames`). `tokenizer` adds the texts."""
        return from_above("trace_frame")(self, tokenizer)

    def to_html(self, tokenizer: Any = None) -> str:
        """The rows in the viewer, as HTML for notebooks. `tokenizer` gives their texts; without it, ids are shown.

        As the last line of a notebook cell it is drawn. A trace alone is drawn with ids. Where scripts may not run, the
        tokens are shaded by commit time.
        """
        html: str = from_above("trace_html")(self, tokenizer)
        return html

    def _repr_html_(self) -> str:
        return self.to_html()

    # -- JSON ------------------------------------------------------------------------------------

    def row(self, row: int, tokenizer: Any = None, **notes: Any) -> dict[str, Any]:
        """One row as plain data. `tokenizer` adds the texts, whole and token by token; `notes` are kept as they are.

        Notes that the viewer and the figures read: `answer_span`, where in the generated text the answer stands, in
        characters; `correct`, whether the answer is right.
        """
        rows = len(self.tokens)
        known = isinstance(row, int) and not isinstance(row, bool) and -rows <= row < rows
        require(known, f"this trace has rows 0 to {rows - 1}, not {shown(row)}: choose one of them.")
        valid, start, steps = self.canvas.valid[row], self.canvas.start, int(self.steps[row])
        prompt, length = self.canvas.tokens[row, :start][valid[:start]], int(self.canvas.lengths[row])
        ids = self.generated[row, :length]
        data: dict[str, Any] = self.header | {
            "sampler": self.samplers[row].to_dict(),
            "seed": self.seeds[row],
            "mask_id": self.canvas.mask_id,
            "prompt_ids": prompt.tolist(),
            "canvas_ids": self.canvas.tokens[row, start : start + length].tolist(),
            "generated_ids": ids.tolist(),
            "commit_step": self.commit_step[row, :length].tolist(),
            **{name: _numbers(getattr(self, name)[row, :length]) for name in FLOATS},
            "terms": {name: _numbers(term[:length]) for name, term in self.terms[row].items()},
            "forwards": int(self.forwards[row]),
            "committed": self.committed[row, :steps].tolist(),
            "mean_entropy": _numbers(self.mean_entropy[row, :steps]),
            "window": self.window[row, :steps].tolist(),
        }
        if self.constraints[row] is not None:
            data["constraint"] = self.constraints[row]
        if self.events[row]:
            data["events"] = [list(event) for event in self.events[row]]
        if self.drafts[row]:
            data["drafts"] = [draft[:length] for draft in self.drafts[row]]
        if self.probes[row]:
            data["probes"] = self.probes[row]
        if tokenizer is not None:
            data["prompt_text"], data["generated_text"] = tokenizer.decode(prompt), tokenizer.decode(ids)
            data["generated_texts"] = token_texts(tokenizer, ids.tolist())
            if self.events[row]:
                written = [[token] if token >= 0 else [] for _, _, token in self.events[row]]
                data["event_texts"] = [tokenizer.decode(token) for token in written]
            if self.drafts[row]:
                tokens = {token for draft in data["drafts"] for token in draft if token >= 0}
                data["draft_texts"] = {str(token): tokenizer.decode([token]) for token in sorted(tokens)}
        return data | notes

    def to_json(self, tokenizer: Any = None) -> str:
        """JSON lines, one self-contained line per row."""
        return "".join(json.dumps(self.row(r, tokenizer), allow_nan=False) + "\n" for r in range(len(self.tokens)))

    @classmethod
    def from_json(cls, text: str, *, frequency: FrequencySource | None = None) -> Trace:
        """The trace that :meth:`to_json` wrote.

        `frequency` is the table that its samplers name, or a function of a name and a sha256 that finds the tables.
        """
        require(isinstance(text, str), f"a trace is read from text, not from {shown(text)}: use Trace.load for a file.")
        return cls._read(text, "this text", resolver_of(frequency))

    @classmethod
    def load(cls, path: str | Path, *, frequency: FrequencySource | None = None) -> Trace:
        """The trace in a file that :meth:`save` wrote; `frequency` is as in :meth:`from_json`."""
        require(isinstance(path, str | Path), f"a trace is loaded from a path, not from {shown(path)}.")
        text = from_above("load_text")(path, "trace")
        return cls._read(text, f"'{path}'", resolver_of(frequency))

    @classmethod
    def _read(cls, text: str, source: str, tables: Resolver | None) -> Trace:
        """Lines are read one after the other: of the parsed JSON only arrays and the header stay in memory."""
        rows, samplers = list[dict[str, Any]](), dict[str, Sampler]()
        header: dict[str, Any] = {}
        for number, data in read_json_lines(text, source):
            try:
                row = read_line(data)
                header = _common(header, data) if rows else {k: v for k, v in data.items() if k not in OF_ROW}
                if rows and row["mask_id"] != rows[0]["mask_id"]:
                    raise Damage("mask_id", "differs from the first line's, and a trace is of one model")
                row["sampler"] = _sampler_of(row, tables, samplers)
            except Damage as damage:
                raise UncodeError(f"line {number} of {source} cannot be read: {damage}") from None
            rows.append(row)
        require(len(rows) > 0, f"{source} holds no trace: it is empty.")
        prompts, spans = ([torch.from_numpy(row[name]) for row in rows] for name in ("prompt_ids", "canvas_ids"))
        canvas = Canvas._assemble(prompts, spans, rows[0]["mask_id"], None)
        return cls.of(canvas, [_recorded(row, canvas, at) for at, row in enumerate(rows)], header)

    def __repr__(self) -> str:
        rows, span = self.commit_step.shape
        names = list(dict.fromkeys(sampler.name for sampler in self.samplers))
        shape = f"{counted(rows, 'row')} of {counted(span, 'token')}, {counted(len(self), 'forward')}"
        return f"Trace({shape}, {names[0] if len(names) == 1 else counted(len(names), 'sampler')})"

    def save(self, path: str | Path, tokenizer: Any = None, *, force: bool = False) -> None:
        """Write the JSON lines to a file, whole or not at all. A file that is no trace is replaced with `force` alone;
        links stay links."""
        from_above("save_text")(path, self.to_json(tokenizer), "trace", force)


def header_of(denoiser: Denoiser, observe: str) -> dict[str, Any]:
    """What a trace says about the model and what was recorded."""
    versions = {"uncode": __version__, "torch": str(torch.__version__), "python": platform.python_version()}
    return dict(denoiser.about) | {
        "dtype": str(denoiser.dtype).removeprefix("torch."),
        "special_ids": sorted({denoiser.mask_id, *denoiser.eos_ids}),
        "observe": observe,
        "versions": versions,
    }


def _common(header: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """The header of all lines so far. A note that differs between lines is not the batch's, and is left out."""
    for name in SHARED:
        if data.get(name) != header.get(name):
            raise Damage(name, "differs from the first line's, and a trace is of one model", "load them one by one")
    return {k: v for k, v in header.items() if k == "versions" or (k in data and data[k] == v)}


def _sampler_of(row: dict[str, Any], tables: Resolver | None, known: dict[str, Sampler]) -> Sampler:
    """The sampler of a line. Lines often share one: it is read, and its table found, once."""
    key = json.dumps(row["sampler"])
    if key not in known:
        try:
            known[key] = Sampler.from_dict(row["sampler"], frequency=tables)
        except UncodeError as error:
            advice = "correct it, and pass frequency= where it names a frequency table"
            raise Damage("sampler", f"is no sampler ({str(error).rstrip('.')})", advice) from None
    names = known[key].policy.score.term_names
    terms = row["terms"]
    if set(names) != set(terms):
        raise Damage("terms", f"must be those of the sampler, {', '.join(names)}, not {', '.join(terms) or 'none'}")
    row["terms"] = {name: terms[name] for name in names}
    return known[key]


def _recorded(row: dict[str, Any], canvas: Canvas, at: int) -> RowRecord:
    """One line in the form the stepper records it."""
    tokens, span = canvas.tokens[at].clone(), canvas.span
    tokens[canvas.start : canvas.start + len(row["generated_ids"])] = torch.from_numpy(row["generated_ids"])

    def over_offsets(values: NDArray[np.float64]) -> Tensor:
        return _lengthen(torch.from_numpy(values), span, _NAN)

    return RowRecord(
        tokens=tokens,
        sampler=row["sampler"],
        constraint=row.get("constraint"),
        seed=row["seed"],
        steps=row["steps"],
        probes=row["probes"].tolist() if "probes" in row else [],
        commit_step=_lengthen(torch.from_numpy(row["commit_step"]), span, GIVEN),
        **{name: over_offsets(row[name]) for name in FLOATS},
        terms={name: over_offsets(values) for name, values in row["terms"].items()},
        committed=torch.from_numpy(row["committed"]),
        mean_entropy=torch.from_numpy(row["mean_entropy"]),
        window=torch.from_numpy(row["window"]).T,
        events=[tuple(event) for event in row["events"].tolist()] if "events" in row else [],
        drafts=_lengthen(torch.from_numpy(row["drafts"]), span, -1).tolist() if "drafts" in row else [],
    )


def _stack(rows: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(rows)).cpu()


def _lengthen(values: Tensor, length: int, fill: float) -> Tensor:
    return torch.nn.functional.pad(values, (0, length - values.shape[-1]), value=fill)


def _numbers(values: Tensor) -> list[float | None]:
    """Numbers for JSON, which has no NaN and no infinity; those become null (scores of a commit are finite)."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
