"""Settings of PyTorch's code generator. They are kept, and nothing reads them yet but one of ours.

`skip_python`: whether calls of compiled functions may skip their Python
(docs/internals/skipping_python.md).
"""

from facula.utils._config_module import ConfigGroup, install_config_module

_FALSE = (
    "aggressive_fusion batch_invariant benchmark_fusion benchmark_kernel combo_kernels "
    "coordinate_descent_check_all_directions coordinate_descent_tuning cpp_wrapper debug "
    "debug_fusion deterministic disable_cpp_codegen emulate_precision_casts fallback_random "
    "force_fuse_int_mm_with_mul force_same_precision freezing freezing_discard_parameters "
    "fx_wrapper max_autotune max_autotune_gemm max_autotune_pointwise memory_planning nan_asserts "
    "profile_bandwidth reorder_for_compute_comm_overlap search_autotune_cache skip_python "
    "triton.cudagraphs triton.debug_sync_graph triton.debug_sync_kernel "
    "triton.cudagraph_or_error triton.cudagraph_skip_dynamic_graphs triton.dense_indexing "
    "triton.prefer_nd_tiling triton.skip_cudagraph_warmup triton.unique_user_kernel_names "
    "trace.enabled trace.graph_diagram cpp.enable_kernel_profile use_fast_math"
)
_TRUE = (
    "allow_buffer_reuse allow_max_autotune alignment_asserts assert_indirect_indexing "
    "autotune_in_subproc comprehensive_padding constant_and_index_propagation "
    "conv_1x1_as_mm dce developer_warnings epilogue_fusion fx_graph_cache "
    "implicit_fallbacks inplace_buffers joint_graph_constant_folding keep_output_stride "
    "layout_optimization pattern_matcher permute_fusion pick_loop_orders prologue_fusion "
    "reorder_for_locality reorder_for_peak_memory scalar_asserts shape_padding size_asserts "
    "split_cat_fx_passes split_reductions triton.autotune_pointwise triton.cudagraph_trees "
    "triton.multi_kernel triton.persistent_reductions triton.unique_kernel_names "
    "triton.cudagraph_support_input_mutation cpp.weight_prepack cpp.dynamic_threads"
)
_SETTINGS = {
    **dict.fromkeys(_FALSE.split(), False),
    **dict.fromkeys(_TRUE.split(), True),
    "compile_threads": 1,
    "coordinate_descent_search_radius": 1,
    "cpp.threads": -1,
    "cpp.simdlen": None,
    "max_autotune_gemm_backends": "ATEN,TRITON,CPP",
    "max_autotune_gemm_search_space": "DEFAULT",
    "max_fusion_size": 64,
    "realize_opcount_threshold": 30,
    "realize_reads_threshold": 4,
    "triton.cudagraph_dynamic_shape_warn_limit": 8,
    "unroll_reductions_threshold": 8,
}


def _groups():
    """The settings with a dot in their names, as objects: `config.triton.cudagraphs`."""
    found = {}
    for name, value in _SETTINGS.items():
        group, dot, rest = name.partition(".")
        if dot:
            found.setdefault(group, {})[rest] = value
    return {group: ConfigGroup(**values) for group, values in found.items()}


install_config_module(__name__, {**_SETTINGS, **_groups()})
