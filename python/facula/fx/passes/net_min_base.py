"""Errors of the search for the steps that a back end computes wrongly."""

from __future__ import annotations

__all__ = [
    "FxNetMinimizerBadModuleError",
    "FxNetMinimizerResultMismatchError",
    "FxNetMinimizerRunFuncError",
]


class FxNetMinimizerBadModuleError(Exception):
    """A part of the module could not be made."""


class FxNetMinimizerRunFuncError(Exception):
    """A part of the module failed when it ran."""


class FxNetMinimizerResultMismatchError(Exception):
    """A part of the module gave other results than it should."""
