"""The live page at `/`. It is one file with the viewer's component in it, and asks the API for all it shows."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from ...util.template import rendered
from ...version import __version__
from ...view.script import FOLDER as VIEW
from ...view.script import LOCKED, hash_of, script

FOLDER = Path(__file__).parent


def page_routes() -> APIRouter:
    """The page holds nothing of the model, so it needs no key: it asks its reader for one."""
    routes = APIRouter()

    @routes.get("/", include_in_schema=False)
    async def page() -> Response:
        text, policy = live_page()
        headers = {
            "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
        }
        return HTMLResponse(text, headers=headers)

    return routes


@cache
def live_page() -> tuple[str, str]:
    """The page as HTML, and its content security policy: its own script and style, and this server's API."""
    style = "\n".join(file.read_text(encoding="utf-8") for file in (VIEW / "page.css", FOLDER / "live.css"))
    code = script(FOLDER / "js" / "live.js")
    policy = f"{LOCKED}; connect-src 'self'; img-src data:; style-src {hash_of(style)}; script-src {hash_of(code)}"
    page = rendered(__package__, "live.html", policy=policy, style=style, script=code, version=__version__)
    return page, policy
