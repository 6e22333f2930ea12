"""The README of the wheel: an index has none of the files that it links to, so those links become text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"!\[[^\]]*\]\(docs/[^)]*\)\n\n[^\n]*\n\n")
"""A picture of the repository, with the sentence below it."""
PAGES = re.compile(r"## Learn more\n\n.*?(?=\n## )", re.S)
IN_BRACKETS = re.compile(r"\(\[[^\]]*\]\((docs/[^)#]*)[^)]*\)\)")
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")
WHERE = "## Learn more\n\nThe pages named here are in the folder `docs` of the source distribution.\n"


def readme(text: str) -> str:
    text = PAGES.sub(WHERE, PICTURE.sub("", text))
    return LINK.sub(r"\1", IN_BRACKETS.sub(r"(`\1`)", text))


class CustomMetadataHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme(text)}
