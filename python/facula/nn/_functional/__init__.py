"""The functions of facula.nn.functional that are more than one operator, by theme."""
