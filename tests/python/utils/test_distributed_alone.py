"""distributed without a process group; nn.parallel runs modules as they are."""

import inspect
import json

import facula
import facula.distributed as dist
import pytest
from facula import nn


def test_questions_are_answered():
    assert dist.is_available() and dist.is_gloo_available() and not dist.is_initialized()
    assert dist.rpc.is_available()
    assert dist.is_nccl_available() == dist.is_backend_available("nccl")
    assert not dist.is_ucc_available() and not dist.is_torchelastic_launched()
    assert dist.get_node_local_rank(3) == 3 and dist.get_debug_level() is dist.DebugLevel.OFF
    assert dist.Backend("GLOO") == dist.Backend.GLOO == "gloo"
    assert dist.ReduceOp(dist.ReduceOp.SUM) == dist.ReduceOp.SUM != dist.ReduceOp.MAX
    assert dist.group.WORLD is None and isinstance(dist.ProcessGroup, type)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: dist.get_rank(), ValueError, "init_process_group"),
        (lambda: dist.get_world_size(), ValueError, "init_process_group"),
        (lambda: dist.all_reduce(facula.ones(1)), ValueError, "init_process_group"),
        (lambda: dist.all_reduce(), TypeError, "tensor"),
        (lambda: dist.barrier(), ValueError, "init_process_group"),
        (lambda: dist.init_process_group("gloo", store=1), ValueError, "world_size"),
        (lambda: dist.init_device_mesh("cpu", (1,)), ValueError, "RANK"),
        (lambda: dist.destroy_process_group(), AssertionError, "cannot be None"),
        (lambda: dist.get_node_local_rank(), RuntimeError, "LOCAL_RANK"),
        (lambda: dist.nothing_of_that_name, AttributeError, "nothing_of_that_name"),
        (lambda: dist.tensor.zeros(1), RuntimeError, "device mesh"),
        (lambda: dist._tensor.distribute_tensor(facula.ones(1)), RuntimeError, "mesh"),
        (lambda: dist.nn.all_gather(facula.ones(1)), ValueError, "init_process_group"),
        (
            lambda: dist.optim.ZeroRedundancyOptimizer([facula.ones(1)], facula.optim.SGD),
            ValueError,
            "init_process_group",
        ),
        (lambda: dist.fsdp.fully_shard(nn.Linear(1, 1)), ValueError, "init_process_group"),
        (lambda: dist.fsdp.FullyShardedDataParallel(nn.ReLU()), ValueError, "init_process_group"),
        (lambda: facula.onnx.register_custom_op_symbolic("a", None, 1), RuntimeError, "namespace"),
        (lambda: facula.onnx.export(nn.Linear(1, 1)), NotImplementedError, "no ONNX exporter"),
        (lambda: nn.parallel.DistributedDataParallel(nn.Linear(1, 1)), ValueError, "initialized"),
        (lambda: facula.utils.data.DistributedSampler([1]), ValueError, "not been initialized"),
        (lambda: nn.parallel.replicate(nn.Linear(1, 1), [0]), AssertionError, "Broadcast"),
        (lambda: nn.parallel.gather([facula.ones(1)], "cpu"), AssertionError, "Gather"),
        (lambda: nn.parallel.data_parallel(nn.Linear(1, 1), facula.ones(1)), RuntimeError, "type"),
    ],
)
def test_what_needs_processes_or_devices_says_so(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_module_that_nobody_has_is_missing():
    with pytest.raises(ModuleNotFoundError):
        import facula.distributed.telepathy  # noqa: F401


def test_signatures_are_shown():
    assert list(inspect.signature(dist.broadcast).parameters)[:2] == ["tensor", "src"]
    assert dist.distributed_c10d.all_gather is dist.all_gather


def test_data_parallel_is_the_module_under_one_more_name():
    model = nn.Linear(2, 1)
    parallel = nn.DataParallel(model, device_ids=[0, 1])
    x = facula.ones(3, 2)
    assert facula.equal(parallel(x), model(x)) and parallel.module is model
    assert list(parallel.state_dict()) == ["module.weight", "module.bias"]
    assert parallel.device_ids == []


def test_parallel_apply_raises_a_modules_error():
    with pytest.raises(RuntimeError):
        nn.parallel.parallel_apply([nn.Linear(1, 1)] * 2, [facula.ones(1), facula.ones(3)])
    with facula.no_grad():
        out = nn.parallel.parallel_apply([nn.Linear(1, 1)], [facula.ones(1)])[0]
    assert not out.requires_grad


def test_errors_of_recorded_programs_are_written(tmp_path, monkeypatch):
    from facula.distributed.elastic.multiprocessing.errors import record

    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))

    @record
    def main():
        raise KeyError("lost")

    with pytest.raises(KeyError):
        main()
    assert "KeyError" in json.loads((tmp_path / "error.json").read_text())["message"]["message"]


def test_functions_for_onnx_are_noted_and_models_are_in_no_export():
    from facula.onnx.symbolic_helper import parse_args

    @parse_args("v", "i")
    def symbolic(g, x):
        return x

    assert symbolic(None, 3) == 3 and symbolic._arg_descriptors == ["v", "i"]
    facula.onnx.register_custom_op_symbolic("mine::op", symbolic, 11)
    facula.onnx.unregister_custom_op_symbolic("mine::op", 11)
    assert not facula.onnx.is_in_onnx_export()


def test_borders_of_quantization_let_floats_pass():
    wrapped = facula.ao.quantization.QuantWrapper(nn.Linear(2, 2).eval())
    x = facula.ones(1, 2)
    assert facula.equal(wrapped(x), wrapped.module(x)) and not wrapped.quant.training
    assert [name for name, _ in wrapped.named_children()] == ["quant", "dequant", "module"]
