"""An example for every op, as a program would write it. `gradcli help OP` runs it and shows what it
gives; the tests run them all.
"""

from __future__ import annotations

from functools import cache

_V, _W, _SIGNED = "tensor([0.5, 1., 2.])", "tensor([2., 1., 3.])", "tensor([-1.5, 0., 2.5])"
_M, _N = "tensor([[2., 1.], [1., 3.]])", "tensor([[1., 0.], [2., 1.]])"
_INTS, _BOOLS = "tensor([3, 1, 2])", "tensor([True, False, True])"
_SEQUENCE, _IMAGE = "arange(6.).reshape(1, 1, 6)", "arange(16.).reshape(1, 1, 4, 4)"
_VOLUME = "arange(8.).reshape(1, 1, 2, 2, 2)"
_BATCH = "arange(8.).reshape(2, 2, 2)"
_PARAMETER = "tensor(1., requires_grad=True)"
_SGD = "torch.optim.SGD([tensor(1.)], lr=0.1)"

_GROUPS: dict[str, str] = {
    # --- one tensor, two tensors ----------------------------------------------------------------
    f"torch.{{}}({_V})": """
        exp log log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh sigmoid exp2 expm1 log1p reciprocal
        asinh arcsinh atan arctan deg2rad rad2deg square erf erfc sinc lgamma digamma special.expit
        special.gammaln special.psi logit clone detach ravel flatten squeeze atleast_1d atleast_2d
        atleast_3d sum mean prod nansum nanmean std var std_mean var_mean median nanmedian max min
        amax amin aminmax argmax argmin norm numel is_tensor is_floating_point is_complex
        zeros_like ones_like empty_like rand_like randn_like msort diff positive trapezoid trapz
        cumulative_trapezoid cov corrcoef linalg.vector_norm nn.utils.get_total_norm
        nn.utils.parameters_to_vector nn.init.ones_ nn.init.zeros_ nn.init.uniform_ nn.init.normal_
        nn.init.trunc_normal_ block_diag diag_embed diagflat""",
    "torch.{}(tensor([-0.5, 0., 0.5]))": "asin arcsin acos arccos atanh arctanh erfinv",
    "torch.{}(tensor([1., 2.]))": "acosh arccosh",
    f"torch.{{}}({_SIGNED})": """
        neg negative abs absolute sign sgn floor ceil trunc fix frac round relu relu_ selu celu
        rrelu hardshrink signbit logical_not isfinite F.silu F.mish F.gelu F.elu F.selu F.celu
        F.softplus F.logsigmoid F.softsign F.tanhshrink F.leaky_relu F.hardtanh F.relu6
        F.hardsigmoid F.hardswish F.hardshrink F.softshrink F.rrelu""",
    "torch.{}(tensor([1., inf, nan]))": "isnan isinf isposinf isneginf nan_to_num",
    f"torch.{{}}({_V}, {_W})": """
        add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow
        float_power rsub eq ne not_equal lt less le less_equal gt greater ge greater_equal equal
        isclose allclose maximum minimum fmax fmin atan2 arctan2 hypot copysign logaddexp logaddexp2
        xlogy heaviside dot vdot inner outer ger dist result_type F.mse_loss F.l1_loss
        F.smooth_l1_loss F.huber_loss F.poisson_nll_loss F.kl_div linalg.vecdot
        cartesian_prod meshgrid broadcast_tensors kron logical_and logical_or logical_xor""",
    f"torch.{{}}({_SIGNED}, tensor([1., -1., 1.]))": """
        F.soft_margin_loss F.hinge_embedding_loss""",
    f"torch.{{}}({_INTS}, tensor([1, 2, 3]))": """
        bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift""",
    "torch.{}(tensor([1, 5]), (2, 3))": "unravel_index",
    f"torch.{{}}({_INTS})": "bitwise_not bincount F.one_hot",
    f"torch.{{}}({_BOOLS})": "any all count_nonzero nonzero argwhere",
    f"torch.{{}}({_BOOLS}, {_V}, {_W})": "where",
    f"torch.{{}}({_V}, {_V}, {_W})": "addcmul addcdiv F.gaussian_nll_loss F.triplet_margin_loss",
    f"torch.{{}}({_V}, {_W}, tensor([1., -1., 1.]))": "F.margin_ranking_loss",
    f"torch.{{}}({_V}, {_W}, 0.5)": "lerp",
    f"torch.{{}}({_SIGNED}, -1., 1.)": "clamp clip",
    f"torch.{{}}({_SIGNED}, 0.)": "clamp_min clamp_max",
    f"torch.{{}}({_SIGNED}, 1., 0.)": "threshold F.threshold",
    f"torch.{{}}({_SIGNED}, tensor(0.25))": "prelu F.prelu",
    f"torch.{{}}(1, {_V})": "polygamma",
    "torch.{}(tensor([0.2, 0.7]), tensor([0., 1.]))": """
        F.binary_cross_entropy F.binary_cross_entropy_with_logits
        binary_cross_entropy_with_logits""",
    # --- shapes, parts, order -------------------------------------------------------------------
    f"torch.{{}}({_M})": """
        t adjoint diagonal fliplr flipud tril triu diag trace rot90 det slogdet logdet inverse
        pinverse matrix_exp qr svd cholesky cholesky_inverse lu linalg.cholesky linalg.cholesky_ex
        linalg.qr linalg.eigh linalg.eigvalsh linalg.svd linalg.svdvals linalg.matrix_norm
        linalg.norm linalg.inv linalg.inv_ex linalg.det linalg.slogdet linalg.lu linalg.lu_factor
        linalg.lu_factor_ex linalg.cond linalg.pinv linalg.matrix_rank linalg.matrix_exp
        linalg.diagonal nn.init.eye_ nn.init.orthogonal_ nn.init.xavier_uniform_
        nn.init.xavier_normal_ nn.init.glorot_uniform_ nn.init.kaiming_uniform_
        nn.init.kaiming_normal_ F.normalize F.glu unique unique_consecutive""",
    f"torch.{{}}({_M}, 0)": """
        softmax log_softmax F.softmax F.log_softmax F.softmin special.softmax special.log_softmax
        cumsum cumprod cummax cummin logcumsumexp logsumexp special.logsumexp sort argsort flip
        unbind unsqueeze mode""",
    f"torch.{{}}({_M}, 0, 1)": "transpose swapaxes swapdims permute movedim moveaxis",
    f"torch.{{}}({_M}, (4,))": "reshape",
    f"torch.{{}}({_M}, 0, (1, 2))": "unflatten",
    f"torch.{{}}({_M}, (1, 2))": "sum_to_size",
    f"torch.{{}}({_M}, 1)": """
        roll chunk unsafe_chunk split unsafe_split tensor_split vsplit hsplit group_norm
        F.group_norm""",
    f"torch.{{}}({_M}, (1, 1))": "split_with_sizes",
    f"torch.{{}}({_BATCH}, 2)": "dsplit",
    f"torch.{{}}({_V}, 2)": "topk kthvalue tile repeat_interleave",
    f"torch.{{}}({_V}, (2, 3))": "broadcast_to",
    f"torch.{{}}({_V}, 4)": "histc",
    f"torch.{{}}({_V}, 0, 1)": "select",
    f"torch.{{}}({_V}, 0, 1, 2)": "narrow",
    f"torch.{{}}({_V}, (2, 2), (1, 1))": "as_strided",
    f"torch.{{}}([{_V}, {_W}])": """
        cat concat concatenate stack hstack vstack row_stack dstack column_stack""",
    "torch.{}(tensor([1, 2, 3]))": "combinations vander linalg.vander",
    # --- indexing -------------------------------------------------------------------------------
    f"torch.{{}}({_M}, 1, tensor([[0, 1], [1, 0]]))": "gather",
    f"torch.{{}}({_M}, tensor([[0], [1]]), 1)": "take_along_dim",
    f"torch.{{}}({_M}, tensor([0, 3]))": "take",
    f"torch.{{}}({_M}, tensor([0, 3]), tensor([7., 8.]))": "put",
    f"torch.{{}}({_M}, 1, tensor([[0, 0], [1, 0]]), {_N})": "scatter scatter_add",
    f"torch.{{}}({_M}, 1, tensor([[0, 0], [1, 0]]), {_N}, 'amax')": "scatter_reduce",
    f"torch.{{}}({_M}, 0, tensor([1]))": "index_select",
    f"torch.{{}}({_M}, 0, tensor([1]), ones(1, 2))": "index_add index_copy",
    f"torch.{{}}({_M}, 0, tensor([1]), 0.)": "index_fill",
    f"torch.{{}}({_M}, 0, tensor([1]), ones(1, 2), 'mean')": "index_reduce",
    f"torch.{{}}({_M}, (tensor([0]), tensor([1])), tensor([5.]))": "index_put",
    f"torch.{{}}({_M}, ones(2), 0, 1)": "select_scatter",
    f"torch.{{}}({_M}, ones(1, 2), 0, 0, 1)": "slice_scatter",
    f"torch.{{}}({_M}, zeros(2))": "diagonal_scatter",
    f"torch.{{}}({_V}, {_BOOLS}, 0.)": "masked_fill",
    f"torch.{{}}({_V}, {_BOOLS})": "masked_select",
    f"torch.{{}}({_V}, {_BOOLS}, {_W})": "masked_scatter",
    "torch.{}(tensor([1., 2., 3.]), tensor([2.5]))": "searchsorted",
    "torch.{}(tensor([2.5]), tensor([1., 2., 3.]))": "bucketize",
    f"torch.{{}}(tensor([1, 0]), {_M})": "F.embedding",
    f"torch.{{}}({_M}, tensor([1, 0]))": "embedding",
    f"torch.{{}}(tensor([1, 0]), {_M}, tensor([0]))": "F.embedding_bag",
    # --- matrices -------------------------------------------------------------------------------
    f"torch.{{}}({_M}, {_N})": """
        mm matmul linalg.matmul chain_matmul cdist F.linear cosine_similarity F.cosine_similarity
        pairwise_distance F.pairwise_distance triangular_solve cholesky_solve linalg.solve
        linalg.solve_ex linalg.lstsq""",
    f"torch.{{}}({_M}, {_N}, dims=1)": "tensordot",
    f"torch.{{}}({_M}, {_N}, upper=False)": "linalg.solve_triangular",
    f"torch.{{}}([{_M}, {_N}])": "linalg.multi_dot",
    f"torch.{{}}({_M}, tensor([1., 2.]))": "mv linalg.tensorsolve",
    f"torch.{{}}({_M}, ind=1)": "linalg.tensorinv",
    f"torch.{{}}({_M}, 3)": "matrix_power linalg.matrix_power",
    f"torch.{{}}(*torch.linalg.lu_factor({_M}))": "lu_unpack",
    f"torch.{{}}(tensor([[1.], [2.]]), *torch.linalg.lu_factor({_M}))": "lu_solve",
    f"torch.{{}}(*torch.linalg.lu_factor({_M}), tensor([[1.], [2.]]))": "linalg.lu_solve",
    "torch.{}(tensor([1., 0., 0.]), tensor([0., 1., 0.]))": "cross linalg.cross",
    f"torch.{{}}({_BATCH}, {_BATCH})": "bmm",
    f"torch.{{}}(tensor([1., 1.]), {_M}, tensor([1., 2.]))": "addmv",
    f"torch.{{}}({_M}, tensor([1., 2.]), tensor([3., 4.]))": "addr",
    f"torch.{{}}(zeros(2, 2), {_BATCH}, {_BATCH})": "baddbmm addbmm",
    f"torch.{{}}('ij,jk->ik', {_M}, {_N})": "einsum",
    f"torch.{{}}({_M}, {_N}, ones(3, 2, 2))": "F.bilinear",
    # --- networks -------------------------------------------------------------------------------
    f"torch.{{}}({_SEQUENCE}, 2)": """
        F.avg_pool1d F.max_pool1d F.adaptive_avg_pool1d F.adaptive_max_pool1d avg_pool1d max_pool1d
        adaptive_avg_pool1d adaptive_max_pool1d F.local_response_norm""",
    f"torch.{{}}({_IMAGE}, 2)": """
        F.avg_pool2d F.max_pool2d F.adaptive_avg_pool2d F.adaptive_max_pool2d max_pool2d F.unfold
        pixel_unshuffle F.pixel_unshuffle F.interpolate F.upsample""",
    f"torch.{{}}({_VOLUME}, 2)": """
        F.avg_pool3d F.max_pool3d F.adaptive_avg_pool3d F.adaptive_max_pool3d max_pool3d""",
    f"torch.{{}}({_SEQUENCE}, 2, 2)": "F.lp_pool1d",
    f"torch.{{}}({_IMAGE}, 2, 2)": "F.lp_pool2d",
    f"torch.{{}}({_VOLUME}, 2, 2)": "F.lp_pool3d",
    "torch.{}(ones(1, 4, 4), (3, 3), 2)": "F.fold",
    "torch.{}(arange(4.).reshape(1, 4, 1, 1), 2)": """
        pixel_shuffle channel_shuffle F.pixel_shuffle F.channel_shuffle""",
    f"torch.{{}}({_SEQUENCE}, ones(1, 1, 2))": """
        conv1d conv_transpose1d F.conv1d F.conv_transpose1d""",
    f"torch.{{}}({_IMAGE}, ones(1, 1, 2, 2))": """
        conv2d conv_transpose2d F.conv2d F.conv_transpose2d""",
    f"torch.{{}}({_VOLUME}, ones(1, 1, 2, 2, 2))": """
        conv3d conv_transpose3d F.conv3d F.conv_transpose3d""",
    f"torch.{{}}({_M}, (2,))": "layer_norm F.layer_norm rms_norm F.rms_norm",
    f"torch.{{}}({_M}, zeros(2), ones(2))": "F.batch_norm",
    f"torch.{{}}({_SEQUENCE})": "F.instance_norm",
    f"torch.{{}}({_M}, None, None, zeros(2), ones(2), False, 0.1, 1e-5, False)": "batch_norm",
    f"torch.{{}}({_SEQUENCE}, None, None, None, None, True, 0.1, 1e-5, False)": "instance_norm",
    f"torch.{{}}({_V}, 0.5, True)": "dropout",
    f"torch.{{}}({_V}, 0.5)": "quantile nanquantile F.dropout",
    f"torch.{{}}({_M}, {_M}, {_N})": "addmm F.scaled_dot_product_attention",
    f"torch.{{}}({_V}, (1, 1))": "F.pad",
    f"torch.{{}}({_M}, tensor([0, 1]))": "F.cross_entropy F.nll_loss",
    f"torch.{{}}({_M}, tensor([[0., 1.], [1., 0.]]))": "F.multilabel_soft_margin_loss",
    f"torch.{{}}({_M}, {_N}, tensor([1, -1]))": "F.cosine_embedding_loss",
    # --- new tensors, settings ------------------------------------------------------------------
    "torch.{}(2, 3)": "zeros ones empty rand randn tril_indices triu_indices",
    "torch.{}((2, 3), 7.)": "full",
    f"torch.{{}}({_V}, 7)": "full_like randint_like fill_",
    f"torch.{{}}({_V}) ": "zero_",
    "torch.{}(3)": "eye arange randperm manual_seed scalar_tensor",
    "torch.{}()": """
        initial_seed seed no_grad enable_grad is_grad_enabled inference_mode
        is_inference_mode_enabled is_anomaly_enabled is_anomaly_check_nan_enabled
        get_default_dtype get_default_device Generator autograd.detect_anomaly""",
    "torch.{}(0, 10, (3,))": "randint",
    "torch.{}(0, 1, 5)": "linspace",
    "torch.{}(0, 2, 3)": "logspace",
    "torch.{}(0., tensor([1., 2.]))": "normal",
    "torch.{}(tensor([0.2, 0.8]))": "bernoulli",
    "torch.{}(tensor([0.2, 0.8]), 1)": "multinomial",
    "torch.{}([1., 2.])": "tensor as_tensor asarray FloatTensor DoubleTensor HalfTensor Tensor",
    "torch.{}([1, 0])": """
        LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor Size""",
    "torch.{}(torch.float32)": "set_default_dtype finfo",
    "torch.{}(torch.int32)": "iinfo",
    "torch.{}('cpu')": "device set_default_device",
    "torch.{}(precision=2)": "set_printoptions",
    f"torch.{{}}({_V})  ": "is_inference autograd.Variable",
    "torch.{}(True)": "set_grad_enabled autograd.set_detect_anomaly",
    "torch.{}(torch.int64, torch.float32)": "promote_types can_cast",
    "nn.{}(tensor([0., 0.]), 1.)": "init.constant_",
    "nn.{}(zeros(2, 2), 0.5)": "init.sparse_",
    "nn.{}(zeros(2, 2, 3))": "init.dirac_",
    "nn.{}('relu')": "init.calculate_gain",
    f"nn.{{}}({_PARAMETER}, 1.)": "utils.clip_grad_norm_ utils.clip_grad_value_",
    f"nn.{{}}({_V}, [tensor([0., 0., 0.])])": "utils.vector_to_parameters",
    # --- special functions, complex numbers, transforms -----------------------------------------
    "torch.{}(tensor([0.5, 1., 2.5]))": """
        i0 special.i0 special.i0e special.i1 special.i1e special.airy_ai special.bessel_j0
        special.bessel_j1 special.bessel_y0 special.bessel_y1 special.modified_bessel_i0
        special.modified_bessel_i1 special.modified_bessel_k0 special.modified_bessel_k1
        special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1
        special.spherical_bessel_j0 special.ndtr special.log_ndtr special.erfcx special.entr
        real conj conj_physical resolve_conj resolve_neg is_conj is_neg angle frexp gradient
        alpha_dropout alpha_dropout_ F.alpha_dropout F.alpha_dropout_ F.gumbel_softmax
        fft.fft fft.ifft fft.rfft fft.ihfft fft.fftn fft.ifftn fft.rfftn fft.ihfftn fft.fftshift
        fft.ifftshift fft.irfft fft.hfft fft.irfftn fft.hfftn""",
    f"torch.{{}}({_M}) ": """
        view_as_complex pdist F.pdist fft.fft2 fft.ifft2 fft.rfft2 fft.ihfft2 fft.irfft2 fft.hfft2
        linalg.eig linalg.eigvals feature_dropout feature_dropout_ feature_alpha_dropout
        feature_alpha_dropout_ F.feature_alpha_dropout F.feature_alpha_dropout_""",
    "torch.{}(tensor([1.+2.j, 3.j]))": "view_as_real imag",
    "torch.{}(tensor([0.2, 0.5, 0.9]))": "special.ndtri",
    f"torch.{{}}({_V}, {_W}) ": """
        complex polar ldexp nextafter igamma igammac special.gammainc special.gammaincc
        special.zeta special.xlog1py""",
    f"torch.{{}}({_V}, 3)": """
        special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.hermite_polynomial_h
        special.hermite_polynomial_he special.laguerre_polynomial_l special.legendre_polynomial_p
        special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u""",
    "torch.{}(tensor([2., 3.]), 2)": "mvlgamma special.multigammaln",
    "torch.{}(4)": """
        fft.fftfreq fft.rfftfreq hann_window hamming_window blackman_window bartlett_window
        kaiser_window""",
    f"torch.{{}}({_INTS}, tensor([6, 4, 3]))": "gcd lcm isin is_same_size",
    f"torch.{{}}({_INTS}) ": "isreal is_signed",
    "torch.{}(tensor([2.]))": "is_nonzero",
    "torch.{}((2, 1), (3,))": "broadcast_shapes",
    "torch.{}(arange(8.), 4, return_complex=True)": "stft",
    "torch.{}(torch.stft(arange(8.), 4, return_complex=True), 4)": "istft",
    f"torch.{{}}({_M}, 2, 0, 1.)": "renorm",
    f"torch.{{}}({_M}, tensor([0.5, 1.]))": "linalg.householder_product orgqr",
    f"torch.{{}}({_M}, tensor([0.5, 1.]), {_N})": "ormqr",
    "torch.{}(tensor([[0.1, 0.7], [1.2, 0.4]]), tensor([0, 1]))": "F.multi_margin_loss",
    "torch.{}(tensor([[0.1, 0.7], [1.2, 0.4]]), tensor([[0, -1], [1, -1]]))": """
        F.multilabel_margin_loss""",
    "torch.{}(zeros(4, 1, 3).log_softmax(2), tensor([[1, 2]]), (4,), (2,))": """
        ctc_loss F.ctc_loss""",
    "torch.{}(tensor([[[1., 0., 0.], [0., 1., 0.]]]), (1, 1, 2, 2))": "F.affine_grid",
    f"torch.{{}}({_IMAGE}, zeros(1, 1, 1, 2))": "F.grid_sample",
    "torch.{}(ones(1, 2, 3))": "F.dropout1d",
    f"torch.{{}}({_IMAGE})": "F.dropout2d",
    f"torch.{{}}({_VOLUME})": "F.dropout3d",
    "torch.{}(tensor([[[1., 2.]]]), tensor([[[1, 2]]]), 2)": "F.max_unpool1d",
    "torch.{}(tensor([[[[1.]]]]), tensor([[[[3]]]]), 2)": "F.max_unpool2d",
    "torch.{}(tensor([[[[[1.]]]]]), tensor([[[[[3]]]]]), 2)": "F.max_unpool3d",
    f"torch.{{}}({_IMAGE}, 2, output_size=2)": "F.fractional_max_pool2d",
    f"torch.{{}}({_VOLUME}, 1, output_size=2)": "F.fractional_max_pool3d",
    "ones(2).{}(torch.float64)": "type",
    f"nn.{{}}()({_SEQUENCE})": "Dropout1d",
    "nn.{}()(ones(1, 2, 2, 2))": "Dropout2d",
    f"nn.{{}}()({_VOLUME})": "Dropout3d",
    f"nn.{{}}()({_V}) ": "AlphaDropout",
    f"nn.{{}}()({_M}) ": "FeatureAlphaDropout",
    # --- methods --------------------------------------------------------------------------------
    f"{_V}.{{}}()": """
        float double half bfloat16 long int short bool cfloat cdouble byte char contiguous detach_
        tolist numpy size dim ndimension nelement element_size stride is_contiguous storage_offset
        requires_grad_ uniform_ normal_ exponential_ bernoulli_ random_ squeeze_ cpu cuda
        get_device""",
    f"{_M}.{{}}()": "t_",
    f"{_M}.{{}}(0, 1)": "transpose_ swapaxes_ swapdims_",
    "tensor(2.5).{}()": "item",
    f"{_V}.{{}}(torch.float64)": "to",
    f"{_V}.{{}}({_W})": "type_as copy_ expand_as view_as reshape_as new_tensor",
    f"{_V}.{{}}(2, 3)": "expand new_zeros new_ones new_empty",
    f"{_V}.{{}}((2, 3), 7.)": "new_full",
    f"{_M}.{{}}(4)": "view",
    f"{_M}.{{}}(7.)": "fill_diagonal_",
    f"{_V}.{{}}(0, 2, 1)": "unfold",
    f"{_V}.{{}}(2)": "repeat",
    f"{_V}.{{}}(0)": "unsqueeze_",
    f"{_PARAMETER}.{{}}()": "backward",
    f"({_PARAMETER} * 2).{{}}()": "retain_grad",
    f"{_PARAMETER}.{{}}(lambda grad: grad * 2)": """
        register_hook register_post_accumulate_grad_hook""",
    # --- layers ---------------------------------------------------------------------------------
    f"nn.{{}}()({_SIGNED})": """
        CELU ELU GELU Hardshrink Hardsigmoid Hardswish LeakyReLU LogSigmoid Mish ReLU ReLU6 SELU
        SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink Hardtanh PReLU Identity
        Dropout""",
    f"nn.{{}}().eval()({_SIGNED})": "RReLU",
    f"nn.{{}}(0)({_SIGNED})": "Softmax LogSoftmax Softmin",
    f"nn.{{}}(1., 0.)({_SIGNED})": "Threshold",
    f"nn.{{}}()({_M})": "GLU Flatten",
    f"nn.{{}}()({_IMAGE})": "Softmax2d",
    f"nn.{{}}()({_V}, {_W})": """
        MSELoss L1Loss SmoothL1Loss HuberLoss PoissonNLLLoss KLDivLoss""",
    f"nn.{{}}()({_SIGNED}, tensor([1., -1., 1.]))": "SoftMarginLoss HingeEmbeddingLoss",
    f"nn.{{}}()({_V}, {_V}, {_W})": "GaussianNLLLoss TripletMarginLoss",
    "nn.{}(2, 1)(ones(3, 2), ones(3, 2), ones(3, 2))[0].shape": "MultiheadAttention",
    f"nn.{{}}()({_V}, {_W}, tensor([1., -1., 1.]))": "MarginRankingLoss",
    "nn.{}()(tensor([0.2, 0.7]), tensor([0., 1.]))": "BCELoss BCEWithLogitsLoss",
    f"nn.{{}}()({_M}, tensor([0, 1]))": "CrossEntropyLoss NLLLoss",
    f"nn.{{}}()({_M}, tensor([[0., 1.], [1., 0.]]))": "MultiLabelSoftMarginLoss",
    "nn.{}()(tensor([[0.1, 0.7], [1.2, 0.4]]), tensor([0, 1]))": "MultiMarginLoss",
    "nn.{}()(tensor([[0.1, 0.7], [1.2, 0.4]]), tensor([[0, -1], [1, -1]]))": """
        MultiLabelMarginLoss""",
    "nn.{}()(zeros(4, 1, 3).log_softmax(2), tensor([[1, 2]]), (4,), (2,))": "CTCLoss",
    f"nn.{{}}()({_M}, {_N}, tensor([1, -1]))": "CosineEmbeddingLoss",
    f"nn.{{}}()({_M}, {_N})": "CosineSimilarity PairwiseDistance",
    "nn.{}(nn.Linear(3, 2), nn.ReLU())": "Sequential",
    "nn.{}([nn.Linear(3, 2)])": "ModuleList",
    "nn.{}({'a': nn.Linear(3, 2)})": "ModuleDict",
    "nn.{}([tensor(1.)])": "ParameterList",
    "nn.{}({'a': tensor(1.)})": "ParameterDict",
    "nn.{}()": "Module",
    "nn.{}(tensor([1., 2.]))": "Buffer Parameter",
    "nn.{}(nn.Linear(3, 2))": "utils.spectral_norm utils.weight_norm",
    "nn.{}(nn.utils.spectral_norm(nn.Linear(3, 2)))": "utils.remove_spectral_norm",
    "nn.{}(nn.utils.weight_norm(nn.Linear(3, 2)))": "utils.remove_weight_norm",
    "nn.{}(3, 2)": "Linear Embedding EmbeddingBag",
    "nn.{}(3, 2, 4)": "Bilinear",
    "nn.{}(1, 2, 3)": "Conv1d ConvTranspose1d Conv2d ConvTranspose2d Conv3d ConvTranspose3d",
    "nn.{}(3)": """
        BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm
        RMSNorm LocalResponseNorm""",
    "nn.{}(2, 4)": "GroupNorm RNN LSTM GRU RNNCell LSTMCell GRUCell",
    f"nn.{{}}(2)({_SEQUENCE})": """
        AvgPool1d MaxPool1d AdaptiveAvgPool1d AdaptiveMaxPool1d ReplicationPad1d ReflectionPad1d
        ZeroPad1d CircularPad1d""",
    f"nn.{{}}(2)({_IMAGE})": """
        AvgPool2d MaxPool2d AdaptiveAvgPool2d AdaptiveMaxPool2d Unfold PixelUnshuffle""",
    f"nn.{{}}(1)({_IMAGE})": "ReplicationPad2d ReflectionPad2d ZeroPad2d CircularPad2d",
    f"nn.{{}}(1)({_VOLUME})": "ReplicationPad3d ReflectionPad3d ZeroPad3d CircularPad3d",
    f"nn.{{}}(2, output_size=1)({_IMAGE})": "FractionalMaxPool2d",
    f"nn.{{}}(2, output_size=1)({_VOLUME})": "FractionalMaxPool3d",
    f"nn.{{}}(2)({_VOLUME})": "AvgPool3d MaxPool3d AdaptiveAvgPool3d AdaptiveMaxPool3d",
    "nn.{}(2)(tensor([[[1., 2.]]]), tensor([[[1, 2]]]))": "MaxUnpool1d",
    "nn.{}(2)(tensor([[[[1.]]]]), tensor([[[[3]]]]))": "MaxUnpool2d",
    "nn.{}(2)(tensor([[[[[1.]]]]]), tensor([[[[[3]]]]]))": "MaxUnpool3d",
    f"nn.{{}}(2, 2)({_SEQUENCE})": "LPPool1d",
    f"nn.{{}}(2, 2)({_IMAGE})": "LPPool2d",
    f"nn.{{}}(2, 2)({_VOLUME})": "LPPool3d",
    f"nn.{{}}(1, 7.)({_SEQUENCE})": "ConstantPad1d",
    f"nn.{{}}(1, 7.)({_IMAGE})": "ConstantPad2d",
    f"nn.{{}}(1, 7.)({_VOLUME})": "ConstantPad3d",
    "nn.{}((3, 3), 2)(ones(1, 4, 4))": "Fold",
    f"nn.{{}}(1, (2, 1))({_M})": "Unflatten",
    "nn.{}(2)(arange(4.).reshape(1, 4, 1, 1))": "ChannelShuffle PixelShuffle",
    f"nn.{{}}(scale_factor=2)({_IMAGE})": "Upsample UpsamplingNearest2d UpsamplingBilinear2d",
    # --- training -------------------------------------------------------------------------------
    f"torch.optim.{{}}([{_PARAMETER}], lr=0.1)": """
        Adam AdamW Adamax NAdam RAdam RMSprop Adagrad Adadelta Rprop SGD ASGD LBFGS""",
    f"torch.optim.{{}}({_SGD}, lambda epoch: 0.9)": """
        lr_scheduler.LambdaLR lr_scheduler.MultiplicativeLR""",
    f"torch.optim.{{}}({_SGD}, 2)": """
        lr_scheduler.StepLR lr_scheduler.CosineAnnealingLR
        lr_scheduler.CosineAnnealingWarmRestarts lr_scheduler.PolynomialLR""",
    f"torch.optim.{{}}({_SGD}, [1, 2])": "lr_scheduler.MultiStepLR",
    f"torch.optim.{{}}({_SGD}, 0.9)": """
        lr_scheduler.ExponentialLR lr_scheduler.ConstantLR lr_scheduler.LinearLR""",
    f"torch.optim.{{}}({_SGD}, max_lr=1., total_steps=10)": "lr_scheduler.OneCycleLR",
    f"torch.optim.{{}}({_SGD}, 0.01, 0.1, cycle_momentum=False)": "lr_scheduler.CyclicLR",
    f"s = torch.optim.lr_scheduler.StepLR({_SGD}, 2)\ntorch.optim.{{}}([s])": """
        lr_scheduler.ChainedScheduler""",
    f"s = torch.optim.lr_scheduler.StepLR({_SGD}, 2)\ntorch.optim.{{}}(s.optimizer, [s], [])": """
        lr_scheduler.SequentialLR""",
    f"torch.optim.{{}}({_SGD})": "lr_scheduler.ReduceLROnPlateau",
    f"torch.autograd.{{}}({_PARAMETER} * 2)": "backward",
    f"x = {_PARAMETER}\ntorch.autograd.{{}}(x * x, x)": "grad",
    f"torch.{{}}(sum, in_dims=1)({_M})": "vmap",
    "torch.autograd.{}(lambda x: x * x, tensor(1., dtype=torch.float64, requires_grad=True))": """
        gradcheck gradgradcheck""",
}
"""Names by the example that they share."""


def example(full_name: str) -> str | None:
    """An example of a function, method or class by its full name, as `torch.exp`, `F.relu`,
    `Tensor.add_` or `nn.Linear`; None where there is none.
    """
    known = examples()
    place, _, name = full_name.rpartition(".")
    plain = name if full_name in known else name.removesuffix("_")
    if f"{place}.{plain}" in known:
        return known[f"{place}.{plain}"]
    found = known.get(f"torch.{name}") or known.get(f"torch.{plain}")
    if found is None or place in ("Tensor", "nn"):
        return found
    return f"{full_name}({found.partition('(')[2]}"


@cache
def examples() -> dict[str, str]:
    """Every example by full name."""
    found: dict[str, str] = {}
    for template, names in _GROUPS.items():
        for name in names.split():
            full_name = _full_name(template, name)
            call = template.strip()
            if call.startswith(("torch.{}", "nn.{}")):
                call = full_name + call.partition("{}")[2]
            found[full_name] = call.replace("{}", name)
    return found


def _full_name(template: str, name: str) -> str:
    prefix = template.partition("{}")[0].rpartition("\n")[2]
    if prefix == "torch.":
        return name if name.startswith(("F.", "nn.")) else f"torch.{name}"
    is_place = prefix in ("nn.", "torch.optim.", "torch.autograd.")
    return prefix + name if is_place else f"Tensor.{name}"
