"""`python -m facula run`: a program with facula under the name torch."""

from __future__ import annotations

import os
import sys
from types import ModuleType

import facula

HOME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_as_torch")


def run(args):
    """Run a program as Python's own command line would, with `import torch` meaning facula.

    Args:
        args (list[str]): `-m MODULE`, `-c CODE` or a script's path, then the program's arguments.

    Returns:
        int: 0, where the program ends by its last line.
    """
    if facula.__name__ != "torch":
        _start_again()
    kind, rest = (args[0], args[1:]) if args[0] in ("-m", "-c") else ("", args)
    if not rest:
        sys.exit(f"facula run: expected {'a module' if kind == '-m' else 'code'} after {kind}")
    if kind == "-m":
        _run_module(rest)
    elif kind == "-c":
        _set_up("-c", rest[1:], "")
        _run_code(rest[0], "<string>")
    else:
        _run_script(rest)
    return 0


def _start_again():
    """Run this process's command line anew in an environment that names facula torch.

    Names are given when modules are loaded, and facula has been loaded as facula by now. The new
    start also makes this process just like those that the program may start itself.
    """
    sys.path.insert(0, HOME)
    from facula_as_torch import environment

    changed = environment(os.environ)
    if changed == dict(os.environ):
        sys.exit(
            "facula run: this Python does not read PYTHONPATH or run sitecustomize "
            "(its options -I, -E, -S); run it without them"
        )
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], changed)


def _set_up(name, args, folder):
    sys.argv[:] = [name, *args]
    if not getattr(sys.flags, "safe_path", False):
        # `python -m` has put the working directory there, a console command its own folder.
        sys.path[:1] = [folder]


def _run_module(args):
    import runpy

    _set_up(args[0], args[1:], os.getcwd())
    runpy.run_module(args[0], run_name="__main__", alter_sys=True)


def _run_script(args):
    path = args[0]
    if not os.path.isfile(path):
        if os.path.isdir(path):
            return _run_folder(args)
        sys.exit(f"facula run: can't open file {path!r}: no such file")
    # The folder of the file itself, should the path be a link: as Python does.
    _set_up(path, args[1:], os.path.dirname(os.path.realpath(path)))
    import tokenize

    with tokenize.open(path) as file:
        source = file.read()
    _run_code(source, path, __file__=path)


def _run_folder(args):
    import runpy

    _set_up(args[0], args[1:], args[0])
    runpy.run_path(args[0], run_name="__main__")


def _run_code(source, path, **names):
    """Run source as the module `__main__`, which stays in place when it is done."""
    main = ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]
    main.__annotations__ = {}
    vars(main).update(names)
    sys.modules["__main__"] = main
    exec(compile(source, path, "exec", dont_inherit=True), vars(main))
