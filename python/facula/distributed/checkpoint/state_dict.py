"""Sharded checkpoints: names that packages import; what they do is to come."""

from facula.distributed._planned import planned

planned(
    globals(),
    "StateDictOptions get_model_state_dict get_optimizer_state_dict "
    "set_model_state_dict set_optimizer_state_dict",
)
