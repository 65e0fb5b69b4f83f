"""Activation checkpoints of modules."""
