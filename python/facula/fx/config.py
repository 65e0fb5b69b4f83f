"""Settings of fx."""

# Whether passes print no progress, and whether they print more.
disable_progress = True
verbose_progress = False
# Whether nodes keep no places where they were recorded.
do_not_emit_stack_traces = False
