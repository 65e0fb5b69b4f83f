"""What stands in a package for modules that were mocked: written into it as `_mock.py`."""

_SPECIAL = (
    "abs add and await bool bytes call complex contains delattr delitem delete dir divmod "
    "enter eq exit float floordiv format ge getitem gt hash iadd iand ifloordiv ilshift imod "
    "imul index int invert ior ipow irshift isub iter itruediv ixor le len lshift lt matmul "
    "mod mul ne neg next or pos pow radd rand rfloordiv rlshift rmod rmul ror round rpow "
    "rrshift rshift rsub rtruediv rxor set setitem sub truediv xor"
).split()

MOCK_SOURCE = f'''\
"""Stands for what was left out of this package."""


class MockedObject:
    """Something of a module that was mocked: it can be imported, and not used."""

    def __new__(cls, *args, _suppress_err=False, **kwargs):
        if not _suppress_err:
            raise NotImplementedError(
                f"{{cls._describe(args)}} was mocked out during packaging: it is no base class"
            )
        return super().__new__(cls)

    def __init__(self, name, _suppress_err=False):
        self.__dict__["_name"] = name

    @staticmethod
    def _describe(args):
        return f"Object {{args[0]!r}}" if args else "An object"

    def __repr__(self):
        return f"MockedObject({{self._name}})"


def _refusing(method):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(
            f"Object '{{self._name}}' was mocked out during packaging but it is being used in "
            f"{{method}}"
        )

    return refuse


for _name in {" ".join(_SPECIAL)!r}.split():
    setattr(MockedObject, f"__{{_name}}__", _refusing(f"__{{_name}}__"))
'''

STUB_SOURCE = """\
from _mock import MockedObject


def __getattr__(name):
    return MockedObject(f"{__name__}.{name}", _suppress_err=True)
"""
