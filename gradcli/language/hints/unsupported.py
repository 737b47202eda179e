"""Lists what PyTorch has and gradcli does not support, by reason."""

from __future__ import annotations

from gradcli.ops.binding import catalogue

_NO_OP = "it is not in the catalogue"

UNSUPPORTED = {
    "there are no sparse tensors": """
        sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
        sparse_compressed_tensor to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr
        to_sparse_bsc to_dense to_mkldnn is_sparse is_sparse_csr sparse_dim dense_dim sparse_mask
        sparse_resize_ sparse_resize_and_clear_ resize_as_sparse_ coalesce is_coalesced indices
        values crow_indices col_indices ccol_indices row_indices smm spmm hspmm hsmm dsmm saddmm
        sspaddmm
        sparse sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr sparse_support_notes""",
    "there are no quantised tensors": """
        quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize int_repr
        q_scale q_zero_point q_per_channel_scales q_per_channel_zero_points q_per_channel_axis
        qscheme is_quantized empty_quantized fake_quantize_per_tensor_affine
        fake_quantize_per_channel_affine quantized_batch_norm quantized_gru quantized_lstm
        quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d scaled_mm grouped_mm
        scaled_grouped_mm""",
    "there are no nested tensors": "is_nested to_padded_tensor",
    "there are no other processes": """
        is_distributed is_shared share_memory_ is_pinned pin_memory record_stream Stream Event
        SyncBatchNorm fork wait Future""",
    "programs are run as they are, not compiled or cast by themselves": """
        compile while_loop set_autocast_enabled get_autocast_dtype set_autocast_dtype SymInt
        SymFloat SymBool sym_int sym_float sym_max
        sym_min sym_not ScriptModule ScriptFunction""",
    "memory is out of a program's reach": """
        data_ptr const_data_ptr storage untyped_storage UntypedStorage TypedStorage FloatStorage
        set_ resize_ resize_as_ resize_as empty_strided new_empty_strided empty_permuted
        BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage
        DoubleStorage HalfStorage IntStorage is_set_to is_storage LongStorage QInt32Storage
        QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage ShortStorage Storage storage_type
        memory_format from_file frombuffer from_dlpack to_dlpack as_subclass""",
    "there are no threads to set": "set_flush_denormal",
    "it is a function behind `nn.MultiheadAttention`": "multi_head_attention_forward",
    "it is for PyTorch's own kernels": """
        cudnn_convolution cudnn_batch_norm miopen_convolution miopen_batch_norm mkldnn_convolution
        native_batch_norm native_layer_norm native_group_norm native_dropout native_norm lstm gru
        rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
        alias_copy as_strided_copy detach_copy diagonal_copy expand_copy narrow_copy permute_copy
        select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy
        unbind_copy unfold_copy unsqueeze_copy view_copy view_as_complex_copy view_as_real_copy
        values_copy indices_copy""",
    "complex numbers of half precision are left out": "chalf complex32",
    "there are no tensors of that dtype": """
        bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz
        float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int2 int3 int4 int5 int6 int7 qint32 qint8
        quint2x4 quint4x2 quint8 uint1 uint16 uint2 uint3 uint32 uint4 uint5 uint6 uint64 uint7""",
    "it belongs to PyTorch's own machinery": """
        AcceleratorError adaptive_max_pool1d_with_indices
        adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices affine_grid_generator
        AggregationType AliasDb AnyType ao ArgumentSpec as_strided_scatter assert_int_or_pair
        attention autocast_decrement_nesting autocast_increment_nesting AwaitType
        batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt
        batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats
        batch_norm_update_stats BenchmarkConfig BenchmarkExecutionStats BFloat16Tensor
        boolean_dispatch BoolType BroadcastingList1 BroadcastingList2 BroadcastingList3
        BufferDict CallStack Capsule ccol_indices_copy channels_last channels_last_3d
        chebyshev_polynomial_v chebyshev_polynomial_w choose_qparams_optimized classproperty
        ClassType clear_autocast_cache col_indices_copy CompilationUnit compiled_with_cxx11_abi
        compiler CompleteArgumentSpec ComplexType ConcreteModuleType ConcreteModuleTypeBuilder
        constant_pad_nd Container convolution crow_indices_copy cudnn_affine_grid_generator
        cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose
        cudnn_grid_sampler cudnn_is_acceptable DeepCopyMemoTable default_generator
        DeserializationStorageContext DeviceObjType DictType dim_order DisableTorchFunction
        DisableTorchFunctionSubclass DispatchKey DispatchKeySet embedding_renorm_ EnumType
        ErrorReport ExcludeDispatchKeyGuard ExecutionPlan FatalError
        fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
        fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation
        fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix
        FileCheck fill FloatType fractional_max_pool2d_with_indices
        fractional_max_pool3d_with_indices frobenius_norm
        FunctionSchema fused_moving_avg_obs_fake_quant FutureType get_autocast_cpu_dtype
        get_autocast_gpu_dtype get_autocast_ipu_dtype get_autocast_xla_dtype
        get_deterministic_debug_mode get_device_module get_file_path grad_dtype
        GraphExecutorState GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES grid_sampler
        grid_sampler_2d grid_sampler_3d handle_torch_function has_lapack has_mkl has_openmp
        has_spectral has_torch_function has_torch_function_unary has_torch_function_variadic
        import_ir_module import_ir_module_from_buffer InferredType init_num_threads InterfaceType
        intrinsic IntType IODescriptor ipu is_autocast_cache_enabled is_autocast_cpu_enabled
        is_autocast_ipu_enabled is_autocast_xla_enabled is_cpu
        is_deterministic_algorithms_warn_only_enabled is_ipu is_maia is_meta is_mkldnn is_mps
        is_mtia is_vulkan is_vulkan_available is_warn_always_enabled is_xla is_xpu jagged
        JITException legacy_contiguous_format LinearCrossEntropyOptions ListType LiteScriptModule
        LockingLogger LoggerBase map2_ max_pool1d_with_indices max_pool2d_with_indices
        max_pool3d_with_indices miopen_convolution_add_relu miopen_convolution_relu
        miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn
        mkldnn_adaptive_avg_pool2d mkldnn_linear_backward_weights mkldnn_max_pool2d
        mkldnn_max_pool3d mkldnn_rnn_layer module_load mtia multi_dim_common multiprocessing
        native_channel_shuffle nested newaxis NLLLoss2d NoneType NoopLogger norm_except_dim
        nuclear_norm NumberType OperatorInfo OptionalType OutOfMemoryError parse_ir parse_schema
        parse_type_comment per_channel_affine per_channel_affine_float_qparams per_channel_symmetric
        per_tensor_affine per_tensor_symmetric prepare_multiprocessing_environment PRIVATE_OPS
        profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 PyObjectType PyTorchFileReader
        PyTorchFileWriter qat quantizable quantization quantized quantized_gru_cell
        quantized_lstm_cell quantized_rnn_relu_cell quantized_rnn_tanh_cell quasirandom reinforce
        reproducibility_notes return_types RNNBase RNNCellBase row_indices_copy RRefType ScalingType
        ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator
        ScriptList ScriptListIterator ScriptMethod ScriptModuleSerializer ScriptObject
        ScriptObjectProperty serialization SerializationStorageContext set_anomaly_enabled
        set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled
        set_autocast_gpu_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled
        set_autocast_xla_dtype set_autocast_xla_enabled
        set_deterministic_debug_mode set_warn_always shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w slice_inverse StaticModule StorageBase StreamObjType
        StringType SwizzleType sym_constrain_range sym_constrain_range_for_size sym_fresh_size
        sym_ite sym_sqrt sym_sum SymBoolType symeig SymIntType TensorType tf32_notes
        thread_safe_generator ThroughputBenchmark torch_version TracingState TupleType
        unify_type_list UnionType unsafe_split_with_sizes USE_GLOBAL_DEPS
        USE_RTLD_GLOBAL_WITH_LIBTORCH """,
    _NO_OP: """
        cauchy_ geometric_ log_normal_ histogram histogramdd segment_reduce
        lobpcg svd_lowrank pca_lowrank ldl_factor ldl_factor_ex ldl_solve
        linear_cross_entropy AdaptiveLogSoftmaxWithLoss
        CrossMapLRN2d LinearCrossEntropyLoss upsample_bilinear
        upsample_nearest nonzero_static hash_tensor conv_tbc apply_
        map_""",
}
"""The names that are left out, by the reason."""

_REASONS = {name: reason for reason, names in UNSUPPORTED.items() for name in names.split()}


def reason_unsupported(name: str) -> str | None:
    """Why a name of PyTorch is left out; None for a name that is not."""
    reason = _REASONS.get(name)
    return None if reason is _NO_OP and name in catalogue.modules["torch"] else reason
