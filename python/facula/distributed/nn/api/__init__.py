"""Modules that other workers hold."""
