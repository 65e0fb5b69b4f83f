"""What `with` statements have switched on, in each thread: ranks may be threads."""

from __future__ import annotations

import threading


class _Settings(threading.local):
    replicates = False  # plain tensors beside DTensors are the same at all ranks
    loss_parallel = False  # losses take scores whose classes are cut


settings = _Settings()
