"""The same work on facula and on its peers, side by side in one process: `python -m bench`."""
