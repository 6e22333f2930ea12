"""Continuous batching: requests join a running batch between forwards, and leave it when they finish."""

from .engine import Engine
from .request import Request, Result

__all__ = ["Engine", "Request", "Result"]
