"""Broken promises: collected from all checks, and raised as one error."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from ..core.errors import UncodeError


class BrokenPromise(Exception):
    """A broken promise, as one sentence that names the culprit."""


class ContractError(UncodeError, AssertionError):
    """A piece or a denoiser breaks its contract. `faults` has a sentence for every broken promise."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


Check = Callable[[], None]
"""Raises :class:`BrokenPromise` where a promise is broken."""


def expect(condition: bool, sentence: str) -> None:
    """Raise :class:`BrokenPromise` with `sentence` unless `condition` holds."""
    if not condition:
        raise BrokenPromise(sentence)


def run_checks(checks: Iterable[tuple[str, Check]]) -> None:
    """Run the checks of each culprit, also after one has failed, and raise if a promise is broken."""
    faults = [_fault_of(culprit, check) for culprit, check in checks]
    found = tuple(dict.fromkeys(fault for fault in faults if fault))
    if found:
        raise ContractError(found)


def _fault_of(culprit: str, check: Check) -> str:
    """The broken promise as a sentence; empty where the promise holds."""
    try:
        check()
    except BrokenPromise as fault:
        return str(fault)
    except UncodeError as error:
        return f"{culprit} cannot be used: {error}"
    except Exception as error:  # whatever the code under test raises is its fault
        frame = traceback.extract_tb(error.__traceback__)[-1]
        first = (str(error).splitlines() or ["no message"])[0].rstrip(".")
        where = f"{frame.name}, {Path(frame.filename).name} line {frame.lineno}"
        return f"{culprit} raised {type(error).__name__} in {where}: {first}."
    return ""
