"""Composable wrappers: names that packages import; what they do is to come."""
