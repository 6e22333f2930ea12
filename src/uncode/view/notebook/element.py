"""HTML for notebooks: inline styles alone, in colours that suit light and dark pages."""

from __future__ import annotations

from html import escape

DIM = "opacity:.6"


class Html(str):
    """HTML that a notebook draws when it is the last line of a cell."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def element(tag: str, content: str, style: str = "", title: str = "") -> str:
    """An element around `content`, which is HTML already. `style` and `title` are escaped here."""
    shown = {"style": style, "title": title}
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in shown.items() if value)
    return f"<{tag}{attributes}>{content}</{tag}>"
