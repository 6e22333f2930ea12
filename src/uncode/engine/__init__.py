"""Continuous batching: requests join a running batch between forwards, and leave it when they finish."""

from .engine import Engine
from .request import FinishedRow, Request, Result
from .row_step import RowStep

__all__ = ["Engine", "FinishedRow", "Request", "Result", "RowStep"]
