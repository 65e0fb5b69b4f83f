"""Datasets, samplers and the loader; each is imported when it is first used."""

from __future__ import annotations

from facula import _missing

_NAMES = {
    "dataset": "ChainDataset ConcatDataset Dataset IterableDataset StackDataset Subset "
    "TensorDataset random_split",
    "sampler": "BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler "
    "WeightedRandomSampler",
    "dataloader": "DataLoader _DatasetKind",
    "_utils.worker": "get_worker_info",
    "_utils": "default_collate default_convert",
    "distributed": "DistributedSampler",
    "datapipes.datapipe": "DFIterDataPipe DataChunk IterDataPipe MapDataPipe",
    "datapipes._decorator": "argument_validation functional_datapipe "
    "guaranteed_datapipes_determinism non_deterministic runtime_validation "
    "runtime_validation_disabled",
}
_FILE_OF = {name: file for file, names in _NAMES.items() for name in names.split()}
_MODULES = ("backward_compatibility", "datapipes", "graph", "graph_settings")
__all__ = sorted(name for name in _FILE_OF if not name.startswith("_"))


def __getattr__(name):
    from importlib import import_module

    if name in _FILE_OF:
        value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in _NAMES or name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise _missing.attribute(__name__, name)


def __dir__():
    return sorted({*globals(), *_FILE_OF, *_NAMES, *_MODULES})
