"""Frequency tables as text: their provenance, their tokens, and comparisons."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from ..core.support.reprs import counted
from ..frequency import FrequencyTable
from .printing import facts


def as_data(table: FrequencyTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "sha256": table.sha256,
        "vocabulary": len(table),
        "unseen": table.unseen,
        "total": table.array.sum().item(),
        "special_ids": table.special_ids,
        "made": dataclasses.asdict(table.made),
    }


def print_facts(console: Console, table: FrequencyTable) -> None:
    """Print the name, the counts and the provenance of a table. Unknown fields are left out."""
    made, surprisal = table.made, table.surprisal_array()
    below = int((surprisal < 10).sum())
    files = counted(len(made.files), "file") if len(made.files) != 1 else made.files[0]
    documents = counted(made.documents, "document")
    text = [f"{made.bytes:,} bytes of text"] * bool(made.bytes) + [documents] * bool(made.documents)
    by = f"{made.tokenizer}{f' at {made.revision[:12]}' if made.revision else ''}"
    lines = {
        "table": table.name,
        "tokens": f"{table.total:,.0f} over a vocabulary of {len(table):,}, {table.unseen:,} unseen",
        "S": f"{float(surprisal.min()):.2f} to {float(surprisal.max()):.2f}; {below:,} tokens below 10",
        "corpus": made.corpus,
        "from": files if made.files else "",
        "text": ", ".join([*text, f"{made.bad:,} bad records left out"] if made.bad else text),
        "asked": made.settings if made.settings != "{}" else "",
        "tokenizer": " ".join([by, f"(fingerprint {made.fingerprint})"]) if made.fingerprint else by,
        "made": " by ".join(part for part in (made.date, f"uncode {made.version}" if made.version else "") if part),
        "sha256": table.sha256,
    }
    console.print(facts((f"[bold]{key}[/bold]", value) for key, value in lines.items() if value))


def measures(c: Any) -> Grid:
    (ab, ba), (seen_a, seen_b, seen), (below_a, below_b, below) = c.divergence, c.seen, c.below
    lines = {
        "KL(A || B), KL(B || A)": f"{ab:.4f}, {ba:.4f} nats",
        "tokens seen in A, B, both": f"{seen_a:,}, {seen_b:,}, {seen:,}",
        f"tokens with S below {c.clip:g} in A, B, both": f"{below_a:,}, {below_b:,}, {below:,}",
        "mean S of a token of A, by A and by B": f"{c.mean[0]:.3f}, {c.mean[1]:.3f}",
        "mean change of S, reading A, reading B": f"{c.change[0]:.3f}, {c.change[1]:.3f}",
        "rank correlation of S, tokens seen in both": f"{c.correlation:.4f}",
    }
    return facts(lines.items())


def columns(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Grid:
    """A grid of rows under their titles. Tokens are left-aligned, numbers right-aligned. A column of empty tokens, as
    without a tokenizer, is left out."""
    listed = list(rows)
    kept = [n for n, title in enumerate(titles) if title != "token" or any(row[n] for row in listed)]
    grid = Grid(box=None, padding=(0, 2, 0, 0))
    for n in kept:
        grid.add_column(titles[n], justify="left" if titles[n] == "token" else "right")
    for row in listed:
        grid.add_row(*(row[n] for n in kept))
    return grid


def quoted(token: str) -> str:
    """A token in quotes, with visible blanks and line ends, escaped for the console's markup."""
    return escape(json.dumps(token, ensure_ascii=False)) if token else ""
