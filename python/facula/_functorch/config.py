"""Settings of `functorch.compile`."""

use_fake_tensor = True
functionalize_rng_ops = False
donated_buffer = False
activation_memory_budget = 1.0
debug_partitioner = False
recompute_views = True
