"""Text of a model in HTML: no character is invisible, and none changes the order of others."""

from __future__ import annotations

import re
from html import escape

EOS_SIGN, BREAK = "∎", "↵"
"""What stands for an EOS token and for a line break."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Control characters, marks that change the direction of text, line separators and lone surrogates.

`js/text.js` has the same list. The page drops a carriage return before a line feed.
"""


def visible(text: str) -> str:
    r"""The text with such characters written as escapes (`\u202e`). Line feeds and tabs stay."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\r\n", "\n"))


def html(text: str) -> str:
    """The visible text, safe in elements and attributes."""
    return escape(visible(text), quote=True)
