"""How ranks of comparisons with PyTorch end."""

# The last lines of a rank's program, whose `dist` is PyTorch's module or facula's. PyTorch's
# threads now and then abort a process that ends by itself, with "terminate called without an
# active exception" and without what it has printed.
LEAVE = """
if dist.__name__.startswith("torch."):
    import os, sys
    sys.stdout.flush()
    dist.barrier()
    os._exit(0)
dist.destroy_process_group()
"""
