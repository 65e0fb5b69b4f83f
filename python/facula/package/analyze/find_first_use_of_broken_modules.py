"""How broken modules came into a package."""

from ..package_exporter import PackagingError


def find_first_use_of_broken_modules(exc: PackagingError) -> dict:
    """A way to each broken module from what was saved.

    Args:
        exc (PackagingError): what an exporter raised.

    Returns:
        dict from the name of a broken module to the list of names that lead to it.
    """
    if not isinstance(exc, PackagingError):
        raise TypeError(f"expected a PackagingError; got {type(exc).__name__}")
    graph = exc.dependency_graph
    return {name: graph.first_path(name) for name, a in graph.nodes.items() if a.get("error")}
