"""Tensors spread over processes: names that packages import; what they do is to come."""

from facula.distributed._planned import planned

planned(globals(), "compute_local_shape_and_global_offset")
