"""The named tuples that operators with several results return."""
