#include "dispatch/schema.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"

namespace facula {
namespace {

// As PyTorch 2.15 prints them.
const std::vector<std::string>& samples() {
  static const std::vector<std::string> texts{
      R"(aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor)",
      R"(aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!))",
      R"(aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> )"
      R"(Tensor(a!))",
      R"(aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, )"
      R"(1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor)",
      R"(aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] )"
      R"(padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor)",
      R"(aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? )"
      R"(dtype=None) -> Tensor)",
      R"(aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, )"
      R"(Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices))",
      R"(aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor)",
      R"(aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool )"
      R"(accumulate=False) -> Tensor(a!))",
      R"(aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? )"
      R"(running_mean, Tensor? running_var, bool training, float momentum, float eps) -> )"
      R"((Tensor, Tensor, Tensor))",
      R"(aten::einsum.sublist(Tensor a, ...) -> Tensor)",
      R"(aten::format(str self, ...) -> str)",
      R"(prim::BroadcastMKLDNNTensors(...) -> ...)",
      R"(prim::IfThenElse(bool cond, Any(a) x, Any(b) y) -> Any(b|a))",
      R"(aten::_set_item.str(Dict(str, t)(a!) l, str(b -> *) idx, t(c -> *) v) -> ())",
      R"(aten::get.default_str(Dict(str, t) self, str key, t default_value) -> t(*))",
      R"(aten::cpu(Tensor(a) self) -> Tensor(b|a))",
      R"(aten::local_value(RRef(t) self) -> t(*))",
      R"(aten::owner(RRef(t) self) -> __torch__.torch.classes.dist_rpc.WorkerInfo)",
      R"(aten::quantized_gru.data(Tensor data, Tensor batch_sizes, Tensor hx, )"
      R"(__torch__.torch.classes.rnn.CellParamsBase[] params, bool has_biases, int )"
      R"(num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor))",
      R"(aten::_test_string_default(Tensor dummy, str a="\"\'\\", str b="\"\'\\") -> Tensor)",
      R"(aten::strip(str self, str chars=" \n\t\f\v") -> str)",
      R"(aten::_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ())",
      R"(aten::_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, )"
      R"(Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, )"
      R"(float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, )"
      R"(bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ())",
      R"(aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool )"
      R"(copy=False, MemoryFormat? memory_format=None) -> Tensor(a))",
      R"(aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? )"
      R"(layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? )"
      R"(memory_format=None) -> Tensor)",
      R"(aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? )"
      R"(neginf=None) -> Tensor)",
      R"(aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, )"
      R"(SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool )"
      R"(transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> )"
      R"((Tensor, Tensor, Tensor))",
      R"(aten::lu_unpack.out(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool )"
      R"(unpack_pivots=True, *, Tensor(a!) P, Tensor(b!) L, Tensor(c!) U) -> (Tensor(a!) P, )"
      R"(Tensor(b!) L, Tensor(c!) U))",
      R"(aten::split(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[])",
      R"(aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[])",
      R"(aten::_test_optional_intlist(Tensor values, int[]? addends) -> Tensor)",
      R"(aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? )"
      R"(scale_factors) -> Tensor)",
      R"(aten::stft.center(Tensor self, int n_fft, int? hop_length=None, int? )"
      R"(win_length=None, Tensor? window=None, bool center=True, str pad_mode="reflect", )"
      R"(bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? )"
      R"(align_to_window=None) -> Tensor)",
      R"(aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int )"
      R"(reduction=1, SymInt ignore_index=-100, float label_smoothing=0.) -> Tensor)",
      R"(aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor )"
      R"(U, Tensor S, Tensor Vh))",
      R"(aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool )"
      R"(keepdim=False, *, ScalarType? dtype=None) -> Tensor)",
      R"(aten::fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? )"
      R"(layout=None, Device? device=None, bool? pin_memory=None) -> Tensor)",
      R"(aten::dropout(Tensor input, float p, bool train) -> Tensor)",
      R"(aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? )"
      R"(attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, )"
      R"(bool enable_gqa=False) -> Tensor)",
      R"(aten::_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor)",
      R"(aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float )"
      R"(atol=1e-08, bool equal_nan=False) -> Tensor)",
      R"(prim::unchecked_cast(t x) -> t)",
      R"(aten::items.str(Dict(str, t) self) -> ((str, t)[]))",
      R"(aten::_list_to_tensor(int[] self) -> Tensor)",
      R"(aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ())",
      R"(aten::sort.any(t[](a!) self, bool reverse=False) -> ())",
      R"(aten::wait(Future(t) self) -> t)",
      R"(prim::TupleIndex(Any tup, int i) -> Any)",
      R"(aten::eq.enum(AnyEnumType a, AnyEnumType b) -> bool)",
      R"(prim::AutogradAllZero(...) -> bool)",
      R"(aten::modf(float a) -> (float, float))",
      R"(aten::histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? )"
      R"(weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges))",
      R"(aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool )"
      R"(scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? )"
      R"(per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> )"
      R"((Tensor, Tensor, Tensor, Tensor))",
      R"(aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int )"
      R"(num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> )"
      R"((Tensor, Tensor, Tensor))",
      R"(aten::_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, SymInt[] )"
      R"(stride, SymInt[] padding, SymInt[] dilation, bool transposed, int[] output_padding, )"
      R"(SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled) -> Tensor)",
      R"(aten::resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) )"
      R"(-> Tensor(a!))",
      R"(aten::set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!))",
      R"(aten::random_.from(Tensor(a!) self, int from, int? to, *, Generator? )"
      R"(generator=None) -> Tensor(a!))",
      R"(aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? )"
      R"(generator=None) -> Tensor)",
      R"(cuda::synchronize.device(Device? device) -> ())",
      R"(quantized::linear_prepack(Tensor W, Tensor? B=None) -> )"
      R"(__torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack)",
      R"(aten::pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a))",
      R"(aten::_make_dep_token(*, ScalarType? dtype=None, Layout? layout=None, Device? )"
      R"(device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor)",
      R"(aten::record_stream(Tensor(a!) self, Stream s) -> ())",
      R"(aten::qscheme(Tensor self) -> QScheme)",
      R"(aten::device(str a) -> Device)",
      R"(prim::RaiseException(str msg, str? cls=None) -> ())",
      R"(aten::backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool )"
      R"(create_graph=False) -> ())",
  };
  return texts;
}

std::string message_of(std::string_view text) {
  try {
    parse_schema(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    return e.what();
  }
  return {};
}

// The schema of one argument.
Argument argument(const std::string& text) { return parse_schema("f(" + text + ") -> ()").args[0]; }

std::string reprinted(const std::string& argument_text) {
  const std::string s = parse_schema("f(" + argument_text + ") -> ()").str();
  return s.substr(2, s.size() - 2 - std::string(") -> ()").size());
}

TEST(Schema, PrintsBackWhatItParsed) {
  for (const std::string& text : samples()) EXPECT_EQ(parse_schema(text).str(), text);
}

TEST(Schema, PrintsAsPyTorchDoes) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"int[2] a=[0,1]", "int[2] a=[0, 1]"},
      {"int[2] a=[1,1]", "int[2] a=1"},
      {"int[] a=[5,5]", "int[] a=5"},
      {"int[1] a=[5]", "int[1] a=[5]"},
      {"int[2] a=-1", "int[2] a=-1"},
      {"SymInt[2] a=5", "SymInt[2] a=[5, 5]"},
      {"SymInt[1]? a=5", "SymInt[1]? a=5"},
      {"int[1]? dim=0", "int[1]? dim=0"},
      {"int[]? a=1", "int[]? a=1"},
      {"int[3] a=[]", "int[3] a=[]"},
      {"float[] a=[1.5,2]", "float[] a=[1.5, 2.]"},
      {"float[2] a=1.5", "float[2] a=[1.5, 1.5]"},
      {"bool[2] a=True", "bool[2] a=[True, True]"},
      {"complex[] a=[1j]", "complex[] a=[0.+1.j]"},
      {"complex a=2.5j", "complex a=0.+2.5j"},
      {"float a=1", "float a=1."},
      {"float? a=1", "float? a=1"},
      {"float a=-0.", "float a=0."},
      {"float a=1e10", "float a=10000000000."},
      {"float a=1e20", "float a=1e+20"},
      {"float a=1e-7", "float a=9.9999999999999995e-08"},
      {"float a=3.4028235e38", "float a=3.4028234999999999e+38"},
      {"float a=.5", "float a=0.5"},
      {"int a=-9223372036854775808", "int a=-9223372036854775808"},
      {"int b = - 1", "int b=-1"},
      {"int a=1.5", "int a=1.5"},
      {"Scalar a=True", "Scalar a=True"},
      {"Scalar beta=1.0", "Scalar beta=1."},
      {"int reduction=Mean", "int reduction=1"},
      {"MemoryFormat m=contiguous_format", "MemoryFormat m=0"},
      {"ScalarType? d=long", "ScalarType? d=4"},
      {"ScalarType d=float32", "ScalarType d=6"},
      {"Layout l=strided", "Layout l=0"},
      {"str b='x'", R"(str b="x")"},
      {R"(str c="it's")", R"(str c="it\'s")"},
      {R"(str d='say "x"')", R"(str d="say \"x\"")"},
      {R"(str a="\177")", R"(str a="\177")"},
      {R"(str a="\012")", R"(str a="\n")"},
      {R"(Device a="cpu")", "Device a=cpu"},
      {"Tensor(a! -> a|*) a", "Tensor(a! -> *|a) a"},
      {"Tensor(a|b|c) a", "Tensor(c|b|a) a"},
      {"Tensor(a! -> a) a", "Tensor(a!) a"},
      {"Tensor(alpha!) a, Tensor(B) b", "Tensor(alpha!) a, Tensor(B) b"},
      {"Tensor(b)[](a!) w", "Tensor(b)[](a!) w"},
      {"Tensor(a!)[]? w", "Tensor(a!)[]? w"},
      {"Tensor(a!)? w", "Tensor(a!)? w"},
      {"Tensor(a)?[] q", "Tensor?(a)[] q"},
      {"Tensor?? a", "Tensor? a"},
      {"int[]?[]? c", "int[]?[]? c"},
      {"Tensor[][2] d", "Tensor[][2] d"},
      {"Dict(str, Tensor(a)) x", "Dict(str, Tensor) x"},
      {"(Tensor, int?)[] b", "(Tensor, int?)[] b"},
      {"() x", "() x"},
      {"Union(int, str)? a", "Union(int, str)? a"},
      {"Future(Tensor)? z, RRef(t) r, Await(t) w", "Future(Tensor)? z, RRef(t) r, Await(t) w"},
      {"DeviceIndex a, ConstQuantizerPtr b", "int a, int b"},
      {"None a, Capsule b, Quantizer c", "NoneType a, Capsule b, Quantizer c"},
      {"*, *, Tensor a", "*, Tensor a"},
      {"Tensor a, *, ...", "Tensor a, ..."},
      {"int a=1 # words\n, int\nb", "int a=1, int b"},
  };
  for (const auto& [text, printed] : cases) EXPECT_EQ(reprinted(text), printed) << text;
  for (const auto& [text, printed] : std::vector<std::pair<std::string, std::string>>{
           {"f.x( Tensor   self ,Tensor other )->(Tensor)",
            "f.x(Tensor self, Tensor other) -> Tensor"},
           {"f() -> (int[] a)", "f() -> int[] a"},
           {"f() -> ((int, int))", "f() -> ((int, int))"},
           {"f() -> (...)", "f() -> ..."},
           {"f() -> (Tensor b, ...)", "f() -> (Tensor b, ...)"},
           {"f() -> t(a!)?", "f() -> t(a!)?"}})
    EXPECT_EQ(parse_schema(text).str(), printed);
}

TEST(Schema, Names) {
  const Schema s = parse_schema(
      "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, "
      "Tensor(a!) out) -> Tensor(a!)");
  EXPECT_EQ(s.ns, "aten");
  EXPECT_EQ(s.name, "add");
  EXPECT_EQ(s.overload, "out");
  EXPECT_EQ(s.index_of("self"), 0);
  EXPECT_EQ(s.index_of("out"), 3);
  EXPECT_EQ(s.index_of("absent"), -1);
  EXPECT_EQ(s.index_of(""), -1);
  EXPECT_EQ(s.args[1].name_hash, name_hash("other"));
  EXPECT_FALSE(s.args[1].keyword_only);
  EXPECT_TRUE(s.args[2].keyword_only);
  EXPECT_TRUE(s.args[3].is_written());
  EXPECT_FALSE(s.args[0].is_written());
  EXPECT_EQ(parse_schema("f() -> ()").ns, "");
  static_assert(name_hash("") == 2166136261u && name_hash("a") == 0xe40c292cu);
}

TEST(Schema, TypesAreFlatWhereCommon) {
  const SchemaType tensors = argument("Tensor?[] a").type;
  EXPECT_EQ(tensors.kind, TypeKind::Tensor);
  EXPECT_TRUE(tensors.list && tensors.optional_elements && !tensors.optional);
  EXPECT_EQ(tensors.list_size, -1);
  EXPECT_EQ(tensors.detail, nullptr);
  const SchemaType dim = argument("int[1]? a").type;
  EXPECT_EQ(dim.kind, TypeKind::Int);
  EXPECT_TRUE(dim.list && dim.optional && !dim.optional_elements);
  EXPECT_EQ(dim.list_size, 1);
  const SchemaType nested = argument("int[2][] a").type;
  EXPECT_EQ(nested.kind, TypeKind::List);
  EXPECT_TRUE(nested.list);
  EXPECT_EQ(nested.detail->children[0].list_size, 2);
  const SchemaType dict = argument("Dict(str, Tensor[]) a").type;
  EXPECT_EQ(dict.kind, TypeKind::Dict);
  EXPECT_EQ(dict.detail->children[1].str(), "Tensor[]");
  EXPECT_EQ(argument("tKey a").type.detail->name, "tKey");
  EXPECT_EQ(parse_schema_type("Tensor?[]?").str(), "Tensor?[]?");
  EXPECT_THROW(parse_schema_type("Tensor(a)"), Error);
  EXPECT_THROW(parse_schema_type("Tensor x"), Error);
}

TEST(Schema, AliasSets) {
  const Argument split = argument("Tensor(a -> *) self");
  EXPECT_EQ(split.alias.before, 1u);
  EXPECT_EQ(split.alias.after, 0u);
  EXPECT_TRUE(split.alias.wildcard_after && !split.alias.wildcard_before && !split.alias.write);
  const Argument either = argument("Tensor(a! -> b|c) self");
  EXPECT_EQ(either.alias.before, 1u);
  EXPECT_EQ(either.alias.after, 6u);
  EXPECT_TRUE(either.alias.write);
  const Argument list = argument("t[](a!) self");
  EXPECT_FALSE(static_cast<bool>(list.alias));
  EXPECT_TRUE(list.list_alias.write && list.is_written());
  const Argument elements = argument("Tensor(z!)[] self");
  EXPECT_EQ(elements.alias.before, 1u << 25);
  EXPECT_FALSE(static_cast<bool>(elements.list_alias));
  EXPECT_FALSE(static_cast<bool>(argument("Tensor self").alias));
}

TEST(Schema, Defaults) {
  EXPECT_FALSE(argument("int a").has_default);
  EXPECT_EQ(argument("int a").default_value.kind, Default::Absent);
  EXPECT_EQ(argument("Tensor? a=None").default_value.kind, Default::None);
  const Default eps = argument("float eps=1e-05").default_value;
  EXPECT_EQ(eps.kind, Default::Float);
  EXPECT_EQ(eps.d, 1e-05);
  const Default whole = argument("Scalar alpha=-3").default_value;
  EXPECT_EQ(whole.kind, Default::Int);
  EXPECT_EQ(whole.i, -3);
  EXPECT_EQ(whole.d, -3.0);
  EXPECT_EQ(argument("float a=-inf").default_value.d, -INFINITY);
  EXPECT_TRUE(std::isnan(argument("float a=nan").default_value.d));
  EXPECT_EQ(argument("bool a=True").default_value.i, 1);
  EXPECT_EQ(argument(R"(str a="\\\t\101")").default_value.s, "\\\tA");
  EXPECT_EQ(argument("int[2] a=3").default_value.ints, (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(argument("int[1]? a=3").default_value.ints, (std::vector<int64_t>{3}));
  EXPECT_EQ(argument("bool[2] a=[True,False]").default_value.ints, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(argument("float[] a=[1,2.5]").default_value.floats, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(argument("Tensor[] a=[]").default_value.kind, Default::EmptyList);
  EXPECT_EQ(argument("int[] a=[]").default_value.kind, Default::IntList);
  const Default word = argument("MemoryFormat m=channels_last").default_value;
  EXPECT_EQ(word.kind, Default::Word);
  EXPECT_EQ(word.s, "channels_last");
  EXPECT_EQ(word.i, 2);
}

TEST(Schema, ErrorsShowThePlace) {
  EXPECT_EQ(message_of("f(Tensor a, Wrong b) -> Tensor"),
            "parse_schema(): 'Wrong' is no type at position 12:\n"
            "    f(Tensor a, Wrong b) -> Tensor\n"
            "                ~~~~~ <--- HERE");
  EXPECT_EQ(message_of("f(int a,\n  int) -> ()"),
            "parse_schema(): expected the argument's name; got ')' at position 14:\n"
            "      int) -> ()\n"
            "         ~ <--- HERE");
  EXPECT_EQ(message_of("f(int a)"),
            "parse_schema(): expected '->'; got the end at position 8:\n"
            "    f(int a)\n"
            "            ~ <--- HERE");
}

TEST(Schema, RejectsWhatIsNoSchema) {
  for (const char* text : {
           "",
           "f",
           "f(",
           "f()",
           "f() ->",
           "1f() -> ()",
           "::f() -> ()",
           "a::b::f() -> ()",
           "aten:f() -> ()",
           "f.() -> ()",
           "f.a.b() -> ()",
           "f.default() -> ()",
           "f.__x() -> ()",
           "f(Tensor) -> ()",
           "f(Tensor a,) -> ()",
           "f(Tensor a Tensor b) -> ()",
           "f(Tensor a, ..., Tensor b) -> ()",
           "f(Tensor a) -> () x",
           "f() -> int, int",
           "f() -> (int,)",
           "f(Tensor(a) -> ()",
           "f(Tensor() a) -> ()",
           "f(Tensor(a|) a) -> ()",
           "f(Tensor(a! -> ) a) -> ()",
           "f(Tensor(a -> b -> c) a) -> ()",
           "f(Tensor(a!|b) a) -> ()",
           "f(int[-1] a) -> ()",
           "f(int[1.5] a) -> ()",
           "f(int[ a) -> ()",
           "f(Dict(int) a) -> ()",
           "f(Dict(int, int, int) a) -> ()",
           "f(Future() a) -> ()",
           "f(Future a) -> ()",
           "f(__torch__ a) -> ()",
           "f(__torch__. a) -> ()",
           "f(_x a) -> ()",
           "f(Optional a) -> ()",
           "f(int a=) -> ()",
           "f(int a=+1) -> ()",
           "f(int a=[]) -> ()",
           "f(int[] a=1) -> ()",
           "f(int[] a=[1,]) -> ()",
           "f(int[] a=[1.5]) -> ()",
           "f(Tensor[] a=[1]) -> ()",
           "f(str[] a=['x']) -> ()",
           "f(int a=9223372036854775808) -> ()",
           "f(int a=-9223372036854775809) -> ()",
           "f(int a=0x10) -> ()",
           "f(float a=1e400) -> ()",
           "f(int a=Purple) -> ()",
           "f(str a=\"x) -> ()",
           "f(str a=\"x\ny\") -> ()",
           "f(str a=\"\\q\") -> ()",
           "f(str a=\"\\777\") -> ()",
           "f(str a=\"\\\") -> ()",
           "f(Tensor out!) -> ()",
           "f(Tensor a=...) -> ()",
           "f(complex a=1+2j) -> ()",
           "f(int[99999999999999999999] a) -> ()",
           "f(int[1000000000] a=0) -> ()",
           "f(Tensor(a)[](b)[](c) x) -> ()",
           "f() -> () ;",
           "\xff() -> ()",
           "f(Tensor(AA|BB|CC|DD|EE|FF|GG) a) -> ()",
       })
    EXPECT_NE(message_of(text), "") << text;
  EXPECT_NE(message_of(std::string_view("f()\0 -> ()", 10)), "");
}

TEST(Schema, DeepNestingIsRefused) {
  for (const char* unit : {"(", "Dict(int, ", "Future(", "Union("}) {
    std::string text = "f(";
    for (int i = 0; i < 100'000; ++i) text += unit;
    EXPECT_NE(message_of(text), "") << unit;
  }
  std::string lists = "f(int";
  for (int i = 0; i < 100'000; ++i) lists += "[]";
  EXPECT_NE(message_of(lists + " a) -> ()"), "");
  std::string optional = "f(int";
  for (int i = 0; i < 100'000; ++i) optional += "?";
  EXPECT_EQ(message_of(optional + " a) -> ()"), "") << "an optional optional is an optional";
}

// Whatever a mutation makes of a schema, it is parsed or refused; what is parsed prints stably.
TEST(Schema, MutationsAreParsedOrRefused) {
  std::mt19937 random(20260101);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  const std::string alphabet = "()[]{},.:*!?|=->\"'\\ \n\t#019eEj_abTensorintDict";
  int parsed = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = samples()[below(samples().size())];
    for (size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
      const size_t at = below(text.size());
      switch (below(5)) {
        case 0:
          text.erase(at, 1 + below(6));
          break;
        case 1:
          text.insert(at, 1, alphabet[below(alphabet.size())]);
          break;
        case 2:
          text[at] = alphabet[below(alphabet.size())];
          break;
        case 3:
          text[at] = static_cast<char>(random());
          break;
        default:
          text.insert(at, text.substr(below(text.size()), below(12)));
          break;
      }
    }
    try {
      const std::string printed = parse_schema(text).str();
      ++parsed;
      const std::string again = parse_schema(printed).str();
      EXPECT_EQ(parse_schema(again).str(), again) << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    }
  }
  EXPECT_GT(parsed, 1000);
  EXPECT_LT(parsed, 19'000);
}

}  // namespace
}  // namespace facula
