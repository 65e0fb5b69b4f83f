"""Bandwidth of facula's collectives beside that of the engines they go over, without facula."""
