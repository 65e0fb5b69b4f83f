"""Lists and dicts of a node's arguments, which only the node itself may replace."""

from __future__ import annotations

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self, *args, **kwargs):
    raise NotImplementedError(
        f"{type(self).__name__}: the arguments of a node are replaced whole: node.args = ..."
    )


class immutable_list(list):
    """A list that cannot be changed and can be hashed."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dict that cannot be changed and can be hashed."""

    clear = pop = popitem = setdefault = update = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __hash__(self):
        return hash(tuple(self.items()))

    def __reduce__(self):
        return immutable_dict, (tuple(self.items()),)
