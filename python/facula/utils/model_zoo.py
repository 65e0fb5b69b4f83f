"""Weights from the network, by the name that `hub` had before."""

from facula.hub import load_state_dict_from_url as load_url
from facula.hub import tqdm

__all__ = ["load_url", "tqdm"]
