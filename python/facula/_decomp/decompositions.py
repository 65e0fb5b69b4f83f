"""The decompositions by family; importing this module registers them all."""

from __future__ import annotations

from facula._decomp.activations import *  # noqa: F403
from facula._decomp.creation import *  # noqa: F403
from facula._decomp.losses import *  # noqa: F403
from facula._decomp.norms import *  # noqa: F403
from facula._decomp.pointwise import *  # noqa: F403
from facula._decomp.products import *  # noqa: F403
from facula._decomp.reductions import *  # noqa: F403
from facula._decomp.shapes import *  # noqa: F403
