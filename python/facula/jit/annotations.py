"""Types for the annotations of functions that `jit` is given."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035

from facula.futures import Future  # noqa: F401


class _BroadcastingList:
    """The type of a list of some length that may be given as one number: `BroadcastingList2[int]`.

    Subscripting it gives None, as it says nothing when the program runs.
    """

    def __getitem__(self, types):
        return None


BroadcastingList1 = _BroadcastingList()
BroadcastingList2 = _BroadcastingList()
BroadcastingList3 = _BroadcastingList()
