"""Settings of `compile`, with PyTorch's names. They are kept, and nothing reads them yet."""

from facula.utils._config_module import install_config_module

_FALSE = (
    "allow_ignore_mark_dynamic allow_rnn allow_unspec_int_on_nn_module caching_precompile "
    "capture_dynamic_output_shape_ops capture_scalar_outputs compiled_autograd cprofile disable "
    "cudagraph_backend_keep_input_mutation cudagraph_backend_support_input_mutation "
    "do_not_emit_runtime_asserts dont_skip_tracing enable_cpp_symbolic_shape_guards "
    "error_on_recompile fail_on_recompile_limit_hit install_free_tensors nested_graph_breaks "
    "only_allow_pt2_compliant_ops optimize_ddp_lazy_compile "
    "prefer_deferred_runtime_asserts_over_guards prepare_freezing replay_record_enabled "
    "repro_forward_only specialize_float specialize_int suppress_errors trace_autograd_ops "
    "use_numpy_random_stream verbose verify_correctness wrap_top_frame"
)
_TRUE = (
    "assume_static_by_default automatic_dynamic_shapes capture_autograd_function "
    "capture_func_transforms capture_sparse_compute dynamic_shapes enable_cpp_guard_manager "
    "error_on_nested_fx_trace error_on_nested_jit_trace fake_tensor_cache_enabled "
    "force_nn_module_property_static_shapes force_parameter_static_shapes guard_nn_modules "
    "inline_inbuilt_nn_modules log_compilation_metrics optimize_ddp raise_on_ctx_manager_usage "
    "report_guard_failures rewrite_assert_with_torch_assert same_two_models_use_fp64 "
    "skip_fsdp_guards skip_nnmodule_hook_guards skip_torchrec trace_numpy use_lazy_graph_module"
)

install_config_module(
    __name__,
    {
        **dict.fromkeys(_FALSE.split(), False),
        **dict.fromkeys(_TRUE.split(), True),
        "recompile_limit": 8,
        "accumulated_recompile_limit": 256,
        "minimum_call_count": 1,
        "repro_level": 2,
        "repro_after": None,
        "repro_tolerance": 1e-3,
        "dead_code_elimination": None,
        "log_file_name": None,
        "numpy_default_float": "float64",
        "numpy_default_complex": "complex128",
        "numpy_default_int": "int64",
        "debug_dir_root": "/tmp/torch_compile_debug",
        "traceable_tensor_subclasses": set(),
        "reorderable_logging_functions": set(),
        "ignore_logging_functions": set(),
    },
    aliases={
        "cache_size_limit": "recompile_limit",
        "accumulated_cache_size_limit": "accumulated_recompile_limit",
    },
)
