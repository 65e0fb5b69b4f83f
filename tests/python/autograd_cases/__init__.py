"""Small programs of autograd that PyTorch and facula must run alike; each takes the library."""

CASES = {}


def case(function):
    """Put a program into the table under its name."""
    CASES[function.__name__] = function
    return function


def leaf(T, *values):
    """A leaf that requires grad."""
    return T.tensor(values or [1.0, 2.0, 3.0], requires_grad=True)


def leaf4(T, *values):
    """A leaf of four elements that requires grad."""
    return T.tensor(values or [1.0, 2.0, 3.0, 4.0], requires_grad=True)


def names(*tensors):
    """The names of the tensors' nodes."""
    return [t.grad_fn.name() if t.grad_fn else None for t in tensors]


def saved(node):
    """What a node shows of the tensors and numbers that it saved."""
    return sorted(a for a in dir(node) if a.startswith(("_saved", "_raw_saved")))


def function_of(T, forward, backward=None, **more):
    """A Function named F of these static methods."""
    members = {"forward": staticmethod(forward)}
    if backward:
        members["backward"] = staticmethod(backward)
    members.update({k: staticmethod(v) if callable(v) else v for k, v in more.items()})
    return type("F", (T.autograd.Function,), members)
