"""Weak references and dictionaries that know their keys by identity.

Tensors compare elementwise, so a dictionary that asks `==` cannot have them as keys.
"""

from __future__ import annotations

import copy as _copying
import weakref
from collections.abc import Mapping, MutableMapping
from weakref import ref

__all__ = ["TensorWeakRef", "WeakIdRef", "WeakIdKeyDictionary", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to those of the same object, whatever its `==` says.

    Args:
        key: the object.
        callback: called with the reference when the object has died.
    """

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        mine = self()
        if mine is None or not isinstance(other, weakref.ref):
            return self is other
        return mine is other()

    def __ne__(self, other):
        return not self == other


class _WeakHashRef(weakref.ref):
    """A weak reference that compares its object by `==`, and outlives it with the same hash."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = hash(key)

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        mine, theirs = self(), other() if isinstance(other, weakref.ref) else None
        if mine is None or theirs is None:
            return self is other
        return mine == theirs


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary whose keys are known by identity, and which does not keep them alive.

    Args:
        dict (mapping): what is in it at first.
        ref_type (type): the class of the references.

    Example:
        >>> notes = WeakIdKeyDictionary()
        >>> x = facula.ones(2)
        >>> notes[x] = "ones"
        >>> notes[x], len(notes)
        ('ones', 1)
        >>> del x
        >>> len(notes)
        0
    """

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.data = {}
        self.ref_type = ref_type

        owner_reference = ref(self)

        def remove(reference):
            owner = owner_reference()
            if owner is not None:
                owner.data.pop(reference, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def _living(self):
        """Pairs of living key and value. A copy: keys may die while a program goes through it."""
        pairs = ((reference(), value) for reference, value in list(self.data.items()))
        return [(key, value) for key, value in pairs if key is not None]

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value):
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key):
        del self.data[self.ref_type(key)]

    def __len__(self):
        return len(self._living())

    def __contains__(self, key):
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # what cannot be referred to weakly is not in here
            return False

    def __iter__(self):
        return iter([key for key, _ in self._living()])

    def __repr__(self):
        return f"<{type(self).__name__} at {id(self):#x}>"

    def items(self):
        """Pairs of key and value."""
        return iter(self._living())

    def keys(self):
        """The keys that live."""
        return iter(self)

    def values(self):
        """The values of keys that live."""
        return iter([value for _, value in self._living()])

    def keyrefs(self):
        """The references to the keys, as a list; some may be dead by the time they are used."""
        return list(self.data)

    def get(self, key, default=None):
        """The value of a key, or `default`."""
        return self.data.get(self.ref_type(key), default)

    def pop(self, key, *args):
        """Take a key out and return its value, or the default given."""
        return self.data.pop(self.ref_type(key), *args)

    def popitem(self):
        """Take some pair of key and value out and return it."""
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def setdefault(self, key, default=None):
        """The value of a key, which is `default` from now on if there was none."""
        return self.data.setdefault(self.ref_type(key, self._remove), default)

    def update(self, dict=None, **kwargs):
        """Take the pairs of a mapping, or of an iterable of pairs, over."""
        if dict is not None:
            pairs = dict.items() if hasattr(dict, "items") else dict
            for key, value in pairs:
                self[key] = value
        if kwargs:
            self.update(kwargs)

    def copy(self):
        """A dictionary of the same class, keys and values."""
        new = type(self)(ref_type=self.ref_type)
        new.update(self)
        return new

    __copy__ = copy

    def __deepcopy__(self, memo):
        new = type(self)(ref_type=self.ref_type)
        for key, value in self._living():
            new[key] = _copying.deepcopy(value, memo)
        return new

    def __ior__(self, other):
        self.update(other)
        return self

    def __or__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        new = self.copy()
        new.update(other)
        return new

    def __ror__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        new = type(self)(other, ref_type=self.ref_type)
        new.update(self)
        return new

    def __eq__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        mine = {id(key): value for key, value in self.items()}
        return mine == {id(key): value for key, value in other.items()}

    __hash__ = None


WeakTensorRefKey = WeakIdRef
WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor.

    Args:
        tensor (Tensor): what it refers to.

    Example:
        >>> x = facula.ones(2)
        >>> reference = TensorWeakRef(x)
        >>> reference() is x
        True
    """

    __slots__ = ("ref",)

    def __init__(self, tensor):
        import facula

        if not isinstance(tensor, facula.Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self):
        return self.ref()
