"""Averages of models that were trained apart."""
