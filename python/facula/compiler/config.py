"""Settings of `compile` for everybody. They are kept, and nothing reads them yet."""

from facula.utils._config_module import install_config_module

install_config_module(
    __name__,
    {
        "accumulated_recompile_limit": 256,
        "allow_unspec_int_on_nn_module": False,
        "assume_static_by_default": True,
        "automatic_dynamic_shapes": True,
        "cache_key_tag": "",
        "capture_dynamic_output_shape_ops": False,
        "capture_scalar_outputs": False,
        "compile_on_one_rank": False,
        "dynamic_shapes": True,
        "dynamic_sources": "",
        "dynamic_values": "",
        "enable_cpp_symbolic_shape_guards": False,
        "fail_on_recompile_limit_hit": False,
        "force_cudagraph_gc": None,
        "force_disable_caches": False,
        "job_id": None,
        "log_file_name": None,
        "pgo_extra_read_key": None,
        "pgo_extra_write_key": None,
        "recompile_limit": 8,
        "reorderable_logging_functions": set(),
        "skip_tensor_guards_with_matching_dict_tags": True,
        "static_sources": "",
        "unbacked_sources": "",
        "verbose": False,
        "wrap_top_frame": False,
    },
)
