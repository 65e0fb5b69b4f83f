"""Questions about packages and what would go into one."""

from .find_first_use_of_broken_modules import find_first_use_of_broken_modules
from .is_from_package import is_from_package
from .trace_dependencies import trace_dependencies

__all__ = ["find_first_use_of_broken_modules", "is_from_package", "trace_dependencies"]
