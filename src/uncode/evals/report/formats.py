"""Writers of a report: Markdown, CSV, LaTeX and HTML. Each begins with the mark of a report, see `file_kinds.py`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from .records import FIELDS, Record
from .table import Document, Section, Table, markdown_escape

FORMATS = ("markdown", "csv", "latex", "html")
SUFFIXES = {".md": "markdown", ".markdown": "markdown", ".csv": "csv", ".tex": "latex", ".html": "html", ".htm": "html"}
LONG_ROWS = 40
"""A longer table is folded on the page; a click opens it."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "[": "{[}",  # after \\ a bracket begins an argument
    "]": "{]}",
} | {sign: f"\\{sign}" for sign in "%_&#${}"}
_DETAIL = re.compile(r"(?P<main>[^ ]+) (?P<detail>[\[(].*)")


def markdown(document: Document) -> str:
    """The report in Markdown."""
    parts = [f"<!-- uncode report -->\n# {_one_line(document.title)}"]
    for section in document.sections:
        parts += [f"## {_one_line(section.title)}", *(markdown_escape(note) for note in section.notes)]
        for table in section.tables:
            notes = "\n".join(f"* {note}" for note in table.notes)
            parts += [f"### {_one_line(table.caption)}", table.markdown(), *([notes] if notes else [])]
    return "\n\n".join(parts) + "\n"


def csv_text(records: Sequence[Record]) -> str:
    """The records as CSV. What does not exist is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def latex(document: Document) -> str:
    """The tables in LaTeX, for the input command. They need the packages booktabs and graphicx."""
    begin = ["% uncode report", "% needs \\usepackage{booktabs,graphicx}", f"% {_one_line(document.title)}"]
    parts = ["\n".join(begin)]
    for section in document.sections:
        parts += [rf"\noindent {latex_escape(section.title)}: {latex_escape(note)}" for note in section.notes]
        parts += [_latex_table(section, table) for table in section.tables]
    return "\n\n".join(parts) + "\n"


def html(document: Document) -> str:
    """The report as one HTML page that loads nothing."""
    links = "".join(f'<a href="#m{n}">{escape(one.title)}</a>' for n, one in enumerate(document.sections))
    parts = {
        "title": escape(document.title),
        "models": f"<nav>{links}</nav>" if len(document.sections) > 1 else "",
        "sections": "\n".join(_html_section(n, one) for n, one in enumerate(document.sections)),
    }
    template = (files(__package__) / "report.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def latex_escape(text: str) -> str:
    """Text for LaTeX: signs with a meaning are written out."""
    return "".join(_LATEX.get(sign, sign) for sign in _one_line(text))


def _latex_table(section: Section, table: Table) -> str:
    shape = "l" * table.labels + "r" * (len(table.titles) - table.labels)
    rows = [[_latex_cell(cell, (r, c) in table.best) for c, cell in enumerate(row)] for r, row in enumerate(table.rows)]
    lines = [" & ".join(row) + r" \\" for row in rows]
    notes = " ".join(latex_escape(note) for note in table.notes)
    return "\n".join(
        [
            r"\begin{table*}[t]",
            r"\centering\small",
            r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{shape}}}",
            r"\toprule",
            " & ".join(rf"\textbf{{{latex_escape(title)}}}" for title in table.titles) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}}",
            rf"\caption{{{latex_escape(section.title)}: {latex_escape(table.caption)}. {notes}}}",
            r"\end{table*}",
        ]
    )


def _latex_cell(cell: str, is_best: bool) -> str:
    return rf"\textbf{{{latex_escape(cell)}}}" if is_best else latex_escape(cell)


def _html_section(number: int, section: Section) -> str:
    tables = "\n".join(_html_table(table) for table in section.tables)
    notes = "".join(f"<p>{escape(note)}</p>\n" for note in section.notes)
    return f'<section id="m{number}">\n<h2>{escape(section.title)}</h2>\n{notes}{tables}\n</section>'


def _html_table(table: Table) -> str:
    titles = "".join(f'<th scope="col"{_css(c, table)}>{escape(title)}</th>' for c, title in enumerate(table.titles))
    rows, before = [], ""
    for r, row in enumerate(table.rows):
        begins = "" if row[0] == before else ' class="first"'
        cells = "".join(_html_cell(cell, r, c, table, row[0] == before) for c, cell in enumerate(row))
        rows.append(f"<tr{begins}>{cells}</tr>")
        before = row[0]
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    body = (
        f'<div class="scroll"><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + f"\n</tbody>\n</table></div>\n<ul>{notes}</ul>"
    )
    caption = f"<h3>{escape(table.caption)}</h3>"
    if len(table.rows) <= LONG_ROWS:
        return f"{caption}\n{body}"
    return f"<details>\n<summary>{caption}</summary>\n{body}\n</details>"


def _html_cell(cell: str, row: int, column: int, table: Table, repeats: bool) -> str:
    """A cell. Intervals stand below their estimate; a name that repeats the one above is dimmed."""
    if column == 0:
        dimmed = ' class="again"' if repeats else ""
        return f'<th scope="row"{dimmed}>{escape(cell)}</th>'
    if column < table.labels:
        return f'<td class="label">{escape(cell)}</td>'
    found = _DETAIL.fullmatch(cell)
    text = escape(cell)
    if found:
        detail = escape(found["detail"]).replace("] (", "]<br>(")
        text = f"{escape(found['main'])} <small>{detail}</small>"
    return f"<td>{f'<b>{text}</b>' if (row, column) in table.best else text}</td>"


def _css(column: int, table: Table) -> str:
    return ' class="label"' if column < table.labels else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
