"""Sharded checkpoints: names that packages import; what they do is to come."""

from facula.distributed._planned import planned

planned(
    globals(),
    "FileSystemReader FileSystemWriter Metadata StorageReader StorageWriter "
    "async_save load load_state_dict save save_state_dict",
)
