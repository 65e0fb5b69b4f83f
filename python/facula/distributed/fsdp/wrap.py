"""Sharded data parallel: names that packages import; what they do is to come."""

from facula.distributed._planned import planned

planned(
    globals(),
    "ModuleWrapPolicy _or_policy enable_wrap lambda_auto_wrap_policy "
    "size_based_auto_wrap_policy transformer_auto_wrap_policy",
)
