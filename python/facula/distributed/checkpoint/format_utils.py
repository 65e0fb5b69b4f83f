"""Checkpoints in folders as single files of save(), and the other way round.

`python -m facula.distributed.checkpoint.format_utils MODE SOURCE TARGET`, where MODE is
`torch_to_dcp` or `dcp_to_torch`.
"""

from __future__ import annotations

import argparse

import facula
from facula.distributed._planned import planned
from facula.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from facula.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from facula.distributed.checkpoint.state_dict_loader import load_state_dict
from facula.distributed.checkpoint.state_dict_saver import save_state_dict

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir, torch_save_path):
    """Write a checkpoint as one file, as save() would.

    Args:
        dcp_checkpoint_dir: the folder of the checkpoint.
        torch_save_path: the file.
    """
    state = {}
    reader, planner = FileSystemReader(dcp_checkpoint_dir), _EmptyStateDictLoadPlanner()
    load_state_dict(state, reader, no_dist=True, planner=planner)
    facula.save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path, dcp_checkpoint_dir):
    """Write what save() wrote as a checkpoint, which any number of ranks can load.

    Args:
        torch_save_path: the file. It is loaded with weights_only=False: it must be trusted.
        dcp_checkpoint_dir: the folder.
    """
    state = facula.load(torch_save_path, weights_only=False)
    save_state_dict(state, FileSystemWriter(dcp_checkpoint_dir), no_dist=True)


planned(globals(), "BroadcastingTorchSaveReader DynamicMetaLoadPlanner")


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["torch_to_dcp", "dcp_to_torch"])
    parser.add_argument("source", help="the file or folder to read")
    parser.add_argument("target", help="the folder or file to write")
    given = parser.parse_args()
    convert = torch_save_to_dcp if given.mode == "torch_to_dcp" else dcp_to_torch_save
    convert(given.source, given.target)


if __name__ == "__main__":
    main()
