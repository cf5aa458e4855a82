// RandomUniform, RandomNormal, RandomUniformLike, RandomNormalLike, Bernoulli, Multinomial,
// Dropout.
#include "tessera/base/random.h"

#include <atomic>
#include <bit>
#include <cmath>

#include "onnx/lowering.h"
#include "onnx/types.h"

namespace tessera::onnx {
namespace {

// With a seed the same numbers at each run; without one others each time.
Random random_of(const HostCall& call) {
  static std::atomic<uint64_t> runs = 0;
  if (!call.has_argument("seed")) return Random(0, ++runs);
  const bool is_whole = call.instruction().operator_name == "Dropout";
  const uint64_t seed =
      is_whole ? static_cast<uint64_t>(call.integer("seed")) : std::bit_cast<uint64_t>(call.real("seed", 0));
  return Random(seed, hash_name("onnx", 4));
}

template <bool normal>
void make(HostCall& call, DataType type, const Shape& shape) {
  const Random random = random_of(call);
  const double shift = call.real(normal ? "mean" : "low", 0);
  const double width = normal ? call.real("scale", 1) : call.real("high", 1) - shift;
  Tensor y(type, shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    const auto index = static_cast<uint64_t>(i);
    y.set(i, shift + width * (normal ? random.normal(index) : random.uniform(index)));
  }
  call.result(0, y);
}

template <bool normal>
void evaluate_of_shape(HostCall& call) {
  make<normal>(call, data_type_of(call.integer("dtype", 1)), call.integers("shape"));
}

template <bool normal>
void evaluate_like(HostCall& call) {
  const Tensor& like = call.tensor(0);
  make<normal>(call, call.has_argument("dtype") ? data_type_of(call.integer("dtype")) : like.data_type(),
               like.shape());
}

void evaluate_bernoulli(HostCall& call) {
  const Tensor& x = call.tensor(0);
  const Random random = random_of(call);
  Tensor y(call.has_argument("dtype") ? data_type_of(call.integer("dtype")) : x.data_type(), x.shape());
  for (int64_t i = 0; i < y.size(); ++i) y.set(i, random.uniform(static_cast<uint64_t>(i)) < x.at(i) ? 1 : 0);
  call.result(0, y);
}

// Classes drawn by logarithms of their probabilities, each row by itself.
void evaluate_multinomial(HostCall& call) {
  const Tensor& x = call.tensor(0);
  call.require(x.shape().size() == 2 && x.shape()[1] > 0, "it takes logarithms [rows, classes]");
  const int64_t count = call.integer("sample_size", 1);
  call.require(count > 0 && count < (int64_t{1} << 31), "its sample_size is to be positive");
  const int64_t classes = x.shape()[1];
  const Random random = random_of(call);
  Tensor y(data_type_of(call.integer("dtype", 6)), {x.shape()[0], count});
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t row = i / count * classes;
    double most = x.at(row);
    for (int64_t k = 1; k < classes; ++k) most = std::max(most, x.at(row + k));
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(x.at(row + k) - most);
    double rest = random.uniform(static_cast<uint64_t>(i)) * sum;
    int64_t drawn = 0;
    while (drawn + 1 < classes && (rest -= std::exp(x.at(row + drawn) - most)) >= 0) ++drawn;
    y.set(i, static_cast<double>(drawn));
  }
  call.result(0, y);
}

// The share of elements that training drops; 0 outside of it. Before opset 12 there was no training.
template <typename AnyCall, typename Contents>
double dropped_share(AnyCall& call, Contents&& contents) {
  if (call.version() < 12 || !call.has(2) || contents(2) == 0) return 0;
  const double share = call.has(1) ? contents(1) : 0.5;
  call.require(share >= 0 && share < 1, "its ratio is to be at least 0 and less than 1");
  return share;
}

// What a network that is trained drops, whether or not the model was written in training: by an operand from
// opset 12 on, by an attribute before.
double trained_share(LowerCall& call) {
  const bool has_operand = call.version() >= 12;
  const double given = has_operand && call.has(1) ? known_number(call, 1) : call.real("ratio", 0.5);
  call.require(given >= 0 && given < 1, "its ratio is to be at least 0 and less than 1");
  return given;
}

void lower_dropout(LowerCall& call) {
  if (program::GraphOwner* trainer = call.trainer()) {
    call.require(!call.wants(1), "the mask of what a network that is trained drops is not given");
    return call.result(0, trainer->dropout(call.operand(0), trained_share(call)));
  }
  if (dropped_share(call, [&](size_t i) { return known_number(call, i); }) > 0)
    call.leave_to_host("random numbers are the host's");
  Value* x = call.operand(0);
  call.result(0, x);
  // Before opset 10 the mask was of the operand's type.
  const DataType mask = call.version() < 10 ? x->data_type() : DataType::boolean;
  if (call.wants(1)) call.result(1, broadcast(number(call.graph(), mask, 1), shape_of(x)));
}

// What stays is scaled up, so that the mean stays.
void evaluate_dropout(HostCall& call) {
  const Tensor& x = call.tensor(0);
  const double share = dropped_share(call, [&](size_t i) { return number_in(call, i); });
  const Random random = random_of(call);
  Tensor y(x.data_type(), x.shape());
  Tensor mask(DataType::boolean, x.shape());
  for (int64_t i = 0; i < x.size(); ++i) {
    const bool stays = random.uniform(static_cast<uint64_t>(i)) >= share;
    mask.set(i, stays ? 1 : 0);
    y.set(i, stays ? x.at(i) / (1 - share) : 0);
  }
  call.result(0, y);
  call.result(1, mask);
}

const RuleRegistrations kRegistration{
    {.name = "Dropout", .lower = lower_dropout, .evaluate = evaluate_dropout, .random = true},
    {.name = "RandomUniform", .evaluate = evaluate_of_shape<false>, .random = true},
    {.name = "RandomNormal", .evaluate = evaluate_of_shape<true>, .random = true},
    {.name = "RandomUniformLike", .evaluate = evaluate_like<false>, .random = true},
    {.name = "RandomNormalLike", .evaluate = evaluate_like<true>, .random = true},
    {.name = "Bernoulli", .evaluate = evaluate_bernoulli, .random = true},
    {.name = "Multinomial", .evaluate = evaluate_multinomial, .random = true},
};

}  // namespace
}  // namespace tessera::onnx
