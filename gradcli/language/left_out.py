"""What PyTorch has and gradcli leaves out, by the reason: programs that name it are told so."""

from __future__ import annotations

LEFT_OUT = {
    "there are no sparse tensors": """
        sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
        sparse_compressed_tensor to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr
        to_sparse_bsc to_dense to_mkldnn is_sparse is_sparse_csr sparse_dim dense_dim sparse_mask
        sparse_resize_ sparse_resize_and_clear_ resize_as_sparse_ coalesce is_coalesced indices
        values crow_indices col_indices ccol_indices row_indices smm spmm hspmm hsmm dsmm saddmm
        sspaddmm""",
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
        DataParallel SyncBatchNorm fork wait Future""",
    "programs are run as they are, not compiled or cast by themselves": """
        compile while_loop autocast is_autocast_enabled set_autocast_enabled GradScaler
        get_autocast_dtype set_autocast_dtype SymInt SymFloat SymBool sym_int sym_float sym_max
        sym_min sym_not ScriptModule ScriptFunction""",
    "memory is out of a program's reach": """
        data_ptr const_data_ptr storage untyped_storage UntypedStorage TypedStorage FloatStorage
        set_ resize_ resize_as_ resize_as empty_strided new_empty_strided empty_permuted
        memory_format from_file frombuffer from_dlpack to_dlpack as_subclass""",
    "files are read with `NAME=@FILE`": "load save from_numpy",
    "there are no threads to set": """
        set_num_threads get_num_threads set_num_interop_threads get_num_interop_threads
        set_flush_denormal use_deterministic_algorithms are_deterministic_algorithms_enabled
        set_float32_matmul_precision get_float32_matmul_precision""",
    "sizes are known from the start, so nothing is lazy": """
        LazyLinear LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d
        LazyConvTranspose3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyInstanceNorm1d
        LazyInstanceNorm2d LazyInstanceNorm3d UninitializedParameter UninitializedBuffer""",
    "whole transformers are left out; `nn.MultiheadAttention` is there": """
        Transformer TransformerEncoder TransformerEncoderLayer TransformerDecoder
        TransformerDecoderLayer multi_head_attention_forward""",
    "it is for PyTorch's own kernels": """
        cudnn_convolution cudnn_batch_norm miopen_convolution miopen_batch_norm mkldnn_convolution
        native_batch_norm native_layer_norm native_group_norm native_dropout native_norm lstm gru
        rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
        alias_copy as_strided_copy detach_copy diagonal_copy expand_copy narrow_copy permute_copy
        select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy
        unbind_copy unfold_copy unsqueeze_copy view_copy view_as_complex_copy view_as_real_copy
        values_copy indices_copy""",
    "complex numbers of half precision are left out": "chalf complex32",
    "it is not in the catalogue": """
        binomial poisson cauchy_ geometric_ log_normal_ histogram histogramdd segment_reduce
        lobpcg svd_lowrank pca_lowrank geqrf ldl_factor ldl_factor_ex ldl_solve
        linear_cross_entropy triplet_margin_with_distance_loss AdaptiveLogSoftmaxWithLoss
        CrossMapLRN2d LinearCrossEntropyLoss TripletMarginWithDistanceLoss upsample_bilinear
        upsample_nearest nonzero_static hash_tensor conv_tbc apply_ map_""",
}
"""The names that are left out, by the reason."""

_REASONS = {name: reason for reason, names in LEFT_OUT.items() for name in names.split()}


def reason_left_out(name: str) -> str | None:
    """Why a name of PyTorch is left out; None for a name that is not."""
    return _REASONS.get(name)
