"""Schedulers: the level of sparsity as a function of the epoch."""
