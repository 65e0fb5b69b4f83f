"""Programs of many processes that are started again when one fails: marks for them alone."""
