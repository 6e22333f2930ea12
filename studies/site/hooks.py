"""What mkdocs runs on every page."""

import re
from typing import Any

_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|obj|exc):<code>~?([\w.]+)</code>")


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings name other objects by a role, as `pydoc` readers know it; the page shows the last part of the name."""
    return _ROLE.sub(lambda role: f"<code>{role[1].rpartition('.')[2]}</code>", html)
