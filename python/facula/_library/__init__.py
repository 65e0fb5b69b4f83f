"""What `facula.library` is made of."""
