"""What a program sees under the name torch: modules, classes, texts, versions, missing names."""

import textwrap

import facula
from alias.processes import run, run_code


def test_each_module_is_one_object_under_both_names():
    run_code(
        textwrap.dedent("""
        import torch
        import torch.nn.functional as F
        from torch import nn
        from torch.utils.data import DataLoader
        import facula, facula.nn, facula.utils.data, facula.optim.adam, facula._C._functorch
        import sys
        assert facula is torch and facula.nn is nn and facula.nn.functional is F
        assert facula.utils.data.DataLoader is DataLoader
        assert torch.optim.adam is facula.optim.adam and torch._C is facula._C
        assert torch.optim.Adam is facula.optim.adam.Adam
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "facula":
                assert sys.modules["torch" + name[6:]] is module, name
            if name.partition(".")[0] == "torch" and hasattr(module, "__file__"):
                assert module.__name__ == module.__spec__.name == name, name
        """)
    )


def test_texts_and_classes_begin_with_torch():
    out = run_code(
        textwrap.dedent("""
        import torch
        x = torch.ones(2, dtype=torch.float64)
        print(x.dtype, torch.strided, torch.channels_last, x.shape, type(x), torch.Generator)
        print(x, x.type(), torch.nn.Linear, torch.finfo.__module__, type(x.dtype), type(x.shape))
        print(torch.Tensor.add, torch.add.__module__, torch.ops.aten.add, torch.device("cpu"))
        print(x.max(0).__class__, torch.linalg.LinAlgError, torch.typename(x), x.storage().dtype)
        names = torch.overrides.resolve_name
        print(names(torch.Tensor.add), names(torch.add))
        """)
    )
    assert out.split("\n") == [
        "torch.float64 torch.strided torch.channels_last torch.Size([2]) "
        "<class 'torch.Tensor'> <class 'torch.Generator'>",
        "tensor([1., 1.], dtype=torch.float64) torch.DoubleTensor "
        "<class 'torch.nn.modules.linear.Linear'> torch <class 'torch.dtype'> <class 'torch.Size'>",
        "<method 'add' of 'torch.Tensor' objects> torch aten.add cpu",
        "<class 'torch.return_types.max'> <class 'torch._C._LinAlgError'> torch.DoubleTensor "
        "torch.float64",
        "torch.Tensor.add torch.add",
        "",
    ]


def test_facula_s_own_names_stay_without_the_switch():
    assert repr(facula.float32) == "facula.float32"
    assert repr(facula.ones(2).shape) == "facula.Size([2])"
    assert facula.Tensor.__module__ == facula.add.__module__ == "facula"
    assert facula.__version__ == facula.version.facula == facula.version.__version__


def test_the_version_is_pytorch_s_and_names_facula():
    out = run_code(
        textwrap.dedent("""
        import importlib.metadata, importlib.util, torch
        from torch.torch_version import TorchVersion
        distribution = importlib.metadata.distribution("torch")
        assert isinstance(torch.__version__, TorchVersion)
        assert importlib.metadata.version("torch") == torch.__version__ == torch.version.__version__
        assert importlib.metadata.packages_distributions()["torch"] == ["torch"]
        assert not list(distribution.entry_points)
        assert importlib.util.find_spec("torch").name == "torch"
        assert importlib.util.find_spec("torch.nn").name == "torch.nn"
        assert importlib.util.find_spec("torch.no_such_module") is None
        assert torch.__version__ > "2.9" and torch.__version__ >= (2, 15)
        print(torch.__version__)
        """)
    )
    assert out == f"{facula.version.pytorch}+facula\n"


def test_missing_names_are_named_with_what_is_near():
    out = run_code(
        textwrap.dedent("""
        import torch, torch.nn.parameter
        def attempt(code):
            try:
                exec(code)
            except (AttributeError, ImportError) as error:
                print(type(error).__name__, error)
        assert not hasattr(torch, "no_such_name") and not hasattr(torch.nn.utils, "no_such_name")
        assert getattr(torch.linalg, "no_such_name", 5) == 5
        attempt("torch.sofmax")
        attempt("torch.nn.parameter.Paramter")
        attempt("import torch.no_such_module")
        attempt("import torch.utils.hoks")
        attempt("from torch.nn import Linaer")
        attempt("import facula.no_such_module")
        """)
    )
    lacks = ": facula lacks it"
    assert out.splitlines() == [
        f"AttributeError module 'torch' has no attribute 'sofmax'{lacks}; "
        "near it are softmax, _softmax, fmax",
        f"AttributeError module 'torch.nn.parameter' has no attribute 'Paramter'{lacks}; "
        "near it are Parameter",
        f"ModuleNotFoundError No module named 'torch.no_such_module'{lacks}",
        f"ModuleNotFoundError No module named 'torch.utils.hoks'{lacks}; near it are hooks",
        f"ImportError cannot import name 'Linaer' from 'torch.nn'{lacks}; "
        "near it are Linear, Bilinear",
        f"ModuleNotFoundError No module named 'facula.no_such_module'{lacks}",
    ]


def test_missing_names_of_facula_are_attribute_errors():
    for module in ("", ".nn", ".nn.utils", ".nn.functional", ".optim", ".fft", ".utils", ".cuda"):
        code = f"import facula{module}; facula{module}.no_such_name"
        text = run("-c", code, status=1)
        assert "no attribute 'no_such_name': facula lacks it" in text


def test_what_is_not_touched_is_not_loaded():
    out = run_code("import torch, sys; print(sorted(m for m in sys.modules if m[:6] == 'torch.'))")
    assert eval(out) == [
        *["torch._C", "torch._C._distributed", "torch._C._functorch", "torch._C._nn"],
        *["torch._C._store", "torch._core_names", "torch._missing", "torch._run"],
    ]


def test_cuda_answers_truthfully_without_a_device():
    run_code(
        textwrap.dedent("""
        import torch, torch.cuda.nvtx
        from torch.cuda.amp import autocast
        cuda = torch.cuda
        assert (cuda.is_available(), cuda.device_count(), cuda.memory_allocated()) == (False, 0, 0)
        assert cuda.memory_stats() == {} and cuda.get_rng_state_all() == []
        assert not isinstance(torch.ones(1), cuda.FloatTensor) and not cuda.is_bf16_supported()
        cuda.manual_seed_all(1), cuda.empty_cache(), cuda.set_device(-1)
        with cuda.device(-1), cuda.device_of(torch.ones(1)), cuda.stream(None):
            pass
        for call in (cuda.Stream, cuda.Event, cuda.CUDAGraph, cuda.current_device, cuda.init,
                     cuda.synchronize, cuda.mem_get_info, cuda.get_rng_state, cuda.FloatTensor,
                     cuda.get_device_properties, cuda.device(0).__enter__):
            try:
                call()
            except AssertionError as error:
                assert "not compiled with CUDA" in str(error)
            else:
                raise SystemExit(f"{call} needs no device")
        for name in dir(cuda):
            if name != "amp":
                getattr(cuda, name)
        """)
    )


def test_private_names_that_packages_use():
    run_code(
        textwrap.dedent("""
        import torch
        from torch._C import _TensorMeta, _disabled_torch_function_impl, _is_torch_function_enabled
        C = torch._C
        assert C._nn._parse_to("cpu", torch.float64) == (
            torch.device("cpu"), torch.float64, False, None)
        assert C._is_torch_function_enabled() and not C._is_torch_function_mode_enabled()
        assert C._get_privateuse1_backend_name() == "privateuseone"
        assert C._get_accelerator() == torch.device("cpu") and C._get_default_device() == "cpu"
        assert C._log_api_usage_once("a") is None and C._get_tracing_state() is None
        assert C._jit_set_profiling_executor(False) and not C._jit_set_profiling_executor(True)
        assert C._VariableFunctions.add is torch.add is torch._VF.add
        assert issubclass(torch.Tensor, C._TensorBase) and C._cuda_getDeviceCount() == 0
        assert not hasattr(C, "_no_such_name")
        try:
            C._jit_set_profiling_mod
        except AttributeError as error:
            assert "facula lacks it; near it are _jit_set_profiling_mode" in str(error)
        """)
    )
