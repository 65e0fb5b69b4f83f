"""jit, compiler, _dynamo and compile: programs go on as they are; what needs a compiler raises."""

import copy
import pickle

import facula
import pytest
from facula import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.scale = 2

    def forward(self, x):
        return self.linear(x) * self.scale

    @facula.jit.export
    def other(self, x):
        return x + self.scale


def scripted(model):
    return facula.jit.script(model)


def traced(model):
    return facula.jit.trace(model, facula.ones(1, 2))


@pytest.mark.parametrize("made", [scripted, traced])
def test_modules_of_torchscript_share_all_with_the_module(made):
    model = Model()
    module, x = made(model), facula.ones(4, 2)
    assert isinstance(module, facula.jit.ScriptModule)
    assert facula.equal(module(x), model(x)) and facula.equal(module.other(x), model.other(x))
    assert list(module.state_dict()) == list(model.state_dict())
    module.scale = 5
    assert model.scale == 5 and not module.eval().training and not model.training
    module.load_state_dict(Model().state_dict())
    module(x).sum().backward()
    assert model.linear.weight.grad is not None
    assert repr(module).startswith(("RecursiveScriptModule(", "Model(")) and "Model" in repr(module)
    assert facula.jit.freeze(module) is module
    twin = copy.deepcopy(module)
    with facula.no_grad():
        twin.linear.weight.zero_()
    assert not facula.equal(twin.linear.weight, model.linear.weight)


def test_functions_are_passed_on_with_their_class():
    def double(x, *, by=2):
        return x * by

    function = facula.jit.script(double)
    assert isinstance(function, facula.jit.ScriptFunction) and function(3, by=3) == 9
    assert function.name == "double" and facula.jit.script(function) is function
    seen = []
    facula.jit.trace(lambda x: seen.append(facula.jit.is_tracing()), facula.ones(1))
    assert seen == [True] and not facula.jit.is_tracing()


@pytest.mark.parametrize(
    "need",
    [
        lambda m: m.graph,
        lambda m: m.code,
        lambda m: m.save("model.pt"),
        lambda m: facula.jit.save(m, "model.pt"),
        lambda m: m.save_to_buffer(),
        lambda m: facula.jit.load(__file__),
        lambda m: facula.jit.CompilationUnit("def f(): pass"),
        lambda m: facula.jit.export_opnames(m),
        lambda m: pickle.dumps(m),
    ],
)
def test_what_needs_a_compiler_says_so_when_called(need):
    with pytest.raises(NotImplementedError, match="compiler"):
        need(scripted(Model()))


@pytest.mark.parametrize(
    "wrong, error",
    [
        (lambda: facula.jit.script(nn.Linear), RuntimeError),
        (lambda: facula.jit.script(3), TypeError),
        (lambda: facula.jit.freeze(Model()), RuntimeError),
        (lambda: facula.jit.freeze(scripted(Model())), RuntimeError),
        (lambda: facula.jit.load("/no/such/file"), ValueError),
        (lambda: facula.jit.isinstance([1], list), RuntimeError),
        (lambda: facula.jit.trace(len), RuntimeError),
        (lambda: facula.compile(len, backend="nope"), RuntimeError),
        (lambda: facula.compile(len, mode="nope"), RuntimeError),
        (lambda: facula.compile(len, mode="default", options={"debug": True}), RuntimeError),
        (lambda: facula.compile(len, options={"nope": True}), RuntimeError),
        (lambda: facula.compile(3), AssertionError),
        (lambda: facula._dynamo.config.nope, AttributeError),
        (lambda: setattr(facula._dynamo.config, "nope", 1), AttributeError),
        (lambda: facula.compiler.set_default_backend("nope"), RuntimeError),
    ],
)
def test_wrong_calls_raise(wrong, error):
    with pytest.raises(error):
        wrong()


def test_compiled_modules_are_the_module_under_one_more_name():
    model = Model()
    compiled = facula.compile(model, mode="reduce-overhead", dynamic=True)
    x = facula.ones(1, 2)
    assert facula.equal(compiled(x), model(x)) and compiled._orig_mod is model
    assert list(compiled.state_dict()) == ["_orig_mod.linear.weight", "_orig_mod.linear.bias"]
    compiled.scale = 7
    assert model.scale == 7 and facula.equal(compiled.other(x), x + 7)
    compiled.eval()
    assert not model.training and not compiled.training
    assert facula.equal(pickle.loads(pickle.dumps(compiled))(x), model(x))
    model.compile()
    assert facula.equal(model(x), compiled(x))
    assert facula.compile(model, disable=True) is model


def test_settings_are_kept_patched_and_put_back():
    config = facula._dynamo.config
    with config.patch(cache_size_limit=3, verbose=True):
        assert config.recompile_limit == 3 and config.verbose
        saved = config.save_config()
    assert config.cache_size_limit == 8 and not config.verbose
    config.load_config(saved)
    assert config.recompile_limit == 3
    del config.recompile_limit, config.verbose
    assert config.recompile_limit == 8

    @config.patch("suppress_errors", True)
    def inside():
        return config.suppress_errors

    assert inside() and not config.suppress_errors
    assert facula._inductor.config.triton.cudagraphs is False


def test_deterministic_switches_agree_with_each_other():
    try:
        facula.use_deterministic_algorithms(True, warn_only=True)
        assert facula.is_deterministic_algorithms_warn_only_enabled()
        assert facula.get_deterministic_debug_mode() == 1
        facula.set_deterministic_debug_mode("error")
        assert facula.are_deterministic_algorithms_enabled()
        assert not facula.is_deterministic_algorithms_warn_only_enabled()
        with pytest.raises(RuntimeError):
            facula.set_deterministic_debug_mode("loud")
    finally:
        facula.use_deterministic_algorithms(False)
    assert facula.get_deterministic_debug_mode() == 0


def test_futures_hold_values_errors_and_what_follows():
    import threading

    Future = facula.futures.Future
    first, second = Future(), Future()
    both = facula.futures.collect_all([first, second])
    after = first.then(lambda f: f.value() + 1)
    failing = first.then(lambda f: 1 / 0)
    threading.Timer(0.01, lambda: first.set_result(1)).start()
    assert after.wait() == 2 and not both.done()
    with pytest.raises(ZeroDivisionError):
        failing.wait()
    second.set_exception(KeyError("gone"))
    assert both.done() and first.value() == 1
    with pytest.raises(KeyError):
        facula.futures.wait_all([first, second])
    with pytest.raises(RuntimeError):
        first.set_result(2)
    with pytest.raises(RuntimeError):
        Future().value()
    with pytest.raises(AssertionError):
        Future().set_exception("text")
