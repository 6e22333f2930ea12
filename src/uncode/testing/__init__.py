"""Checks for authors of pieces and denoisers: every promise of the contract, one sentence per broken one."""

from .contract import ContractError
from .denoisers import check_denoiser
from .pieces import check_piece

__all__ = ["ContractError", "check_denoiser", "check_piece"]
