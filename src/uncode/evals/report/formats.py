"""Writers of a report: Markdown, CSV, LaTeX and HTML. Each begins with the mark of a report, see `file_kinds.py`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from html import escape

from ...util.template import rendered
from .records import FIELDS, Record
from .table import Document, Section, TextTable, markdown_escape

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
    return rendered(__package__, "report.html", document=document, long_rows=LONG_ROWS, detailed=_detailed)


def _detailed(cell: str) -> str:
    """A cell in HTML, with its intervals below its estimate."""
    found = _DETAIL.fullmatch(cell)
    if found is None:
        return escape(cell)
    detail = escape(found["detail"]).replace("] (", "]<br>(")
    return f"{escape(found['main'])} <small>{detail}</small>"


def latex_escape(text: str) -> str:
    """Text for LaTeX: signs with a meaning are written out."""
    return "".join(_LATEX.get(sign, sign) for sign in _one_line(text))


def _latex_table(section: Section, table: TextTable) -> str:
    shape = "l" * table.labels + "r" * (len(table.titles) - table.labels)
    rows = [[latex_escape(cell) for cell in row] for row in table.rows]
    for row, column in table.best:
        rows[row][column] = rf"\textbf{{{rows[row][column]}}}"
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


def _one_line(text: str) -> str:
    return " ".join(text.split())
