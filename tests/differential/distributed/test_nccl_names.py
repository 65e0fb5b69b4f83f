"""Names and defaults of groups over NCCL, and of backends by device, against PyTorch's."""

import facula.distributed as dist
import pytest
import torch
import torch.distributed as torch_dist

BACKENDS = ["gloo", "nccl", "NCCL", "cpu:gloo", "cuda:nccl", "cpu:gloo,cuda:nccl"]


@pytest.mark.parametrize("text", BACKENDS)
def test_backends_of_devices(text):
    def by_device(module):
        return module.BackendConfig(module.Backend(text)).get_device_backend_map()

    # PyTorch lists more kinds of devices, which are not here.
    theirs = {k: v for k, v in by_device(torch_dist).items() if k in ("cpu", "cuda")}
    assert by_device(dist) == theirs


@pytest.mark.skipif(not torch_dist.is_nccl_available(), reason="this PyTorch has no NCCL")
def test_options_and_their_defaults():
    ours, theirs = (m.ProcessGroupNCCL.Options() for m in (dist, torch_dist))
    for mine, other in ((ours, theirs), (ours.config, theirs.config)):
        for name in dir(other):
            value = getattr(other, name)
            if name.startswith("_py") or name.startswith("__") or callable(value):
                continue
            if name != "config":
                assert getattr(mine, name) == value, name


@pytest.mark.skipif(not torch_dist.is_nccl_available(), reason="this PyTorch has no NCCL")
@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl"])
def test_without_a_device_both_refuse(backend):
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    for module in (dist, torch_dist):
        with pytest.raises(RuntimeError, match="requires at least one"):
            module.init_process_group(backend, store=module.HashStore(), rank=0, world_size=1)
        if module.is_initialized():
            module.destroy_process_group()
