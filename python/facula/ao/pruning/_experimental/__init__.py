"""Pruning of whole channels, of tensors outside models, and of activations."""
