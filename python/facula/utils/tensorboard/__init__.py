"""Files that TensorBoard reads: SummaryWriter, and the writer of records under it.

The messages are encoded here, so that no package is needed to write them.
"""

from facula.utils.tensorboard.writer import FileWriter, RecordWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
