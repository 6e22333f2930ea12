"""Pages from jinja2 templates that stand beside the code."""

from __future__ import annotations

from html import escape
from typing import Any


def rendered(package: str, name: str, **values: Any) -> str:
    """The template of that name in a package's folder, filled. Nothing is escaped but what the template pipes into
    `e`."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader(package, "."), trim_blocks=True, lstrip_blocks=True)
    environment.filters["e"] = escape
    return environment.get_template(name).render(values) + "\n"
