"""Every piece that presets are made of, each imported when it is first used.

Pieces need torch. The names, options and sources of all presets are listed without it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.pieces.blocks import *  # noqa: F403
    from ..core.pieces.branches import *  # noqa: F403
    from ..core.pieces.cache import *  # noqa: F403
    from ..core.pieces.policy import *  # noqa: F403
    from ..core.pieces.propose import *  # noqa: F403
    from ..core.pieces.remask import *  # noqa: F403
    from ..core.pieces.score import *  # noqa: F403
    from ..core.pieces.select import *  # noqa: F403
    from ..core.pieces.stop import *  # noqa: F403
    from .legacy_pieces import *  # noqa: F403
else:

    def __getattr__(name):
        if not name[0].isupper():  # what Python asks of modules, which needs no torch
            raise AttributeError(f"no piece is named '{name}'.", name=name)
        from ..core.pieces import blocks, branches, cache, policy, propose, remask, score, select, stop
        from . import legacy_pieces

        modules = (blocks, branches, cache, policy, propose, remask, score, select, stop, legacy_pieces)
        found = next((vars(module)[name] for module in modules if name in vars(module)), None)
        if found is None:
            raise AttributeError(f"no piece is named '{name}'.", name=name)
        globals()[name] = found
        return found
