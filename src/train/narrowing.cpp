#include "train/narrowing.h"

#include "tessera/ops/functions.h"

namespace tessera::train {
namespace {

constexpr int64_t kSmallBytes = 64 << 10;

}  // namespace

Narrowing::Narrowing(const StepOptions& options, Value* loss_scale)
    : type_(options.ranks.count > 1 ? options.reduce_type : DataType::fp32), loss_scale_(loss_scale) {
  const auto batch = options.sizes.find("batch");
  if (batch != options.sizes.end())
    rows_ = static_cast<double>(batch->second) * static_cast<double>(options.ranks.count);
}

bool Narrowing::narrows(const nn::Variable& variable) const {
  const int64_t bytes = element_count(variable.shape) * static_cast<int64_t>(sizeof(float));
  return type_ != DataType::fp32 && variable.data_type == DataType::fp32 && bytes >= kSmallBytes;
}

Value* Narrowing::narrowed(const nn::Variable& variable, Value* gradient) const {
  if (!narrows(variable)) return gradient;
  Value* scaled = loss_scale_ == nullptr ? ops::multiply(gradient, 1 / rows_)
                                         : ops::multiply(gradient, ops::multiply(loss_scale_, 1 / rows_));
  return ops::cast(scaled, type_);
}

Value* Narrowing::widened(const nn::Variable& variable, Value* sum) const {
  if (!narrows(variable)) return sum;
  Value* wide = ops::cast(sum, DataType::fp32);
  return loss_scale_ == nullptr ? ops::multiply(wide, rows_)
                                : ops::multiply(wide, ops::multiply(ops::reciprocal(loss_scale_), rows_));
}

}  // namespace tessera::train
