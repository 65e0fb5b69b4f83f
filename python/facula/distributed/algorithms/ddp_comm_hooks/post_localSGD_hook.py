"""Algorithms over groups: names that packages import; what they do is to come."""
