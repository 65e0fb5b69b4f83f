"""The classes of nested tensors and what operators do with them."""
