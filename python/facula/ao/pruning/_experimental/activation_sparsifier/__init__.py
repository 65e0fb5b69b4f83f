"""A sparsifier of the inputs of layers."""
