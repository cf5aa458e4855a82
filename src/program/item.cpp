#include "tessera/program/item.h"

#include <fmt/format.h>

namespace tessera::program {

const Tensor& DeviceValue::here() const {
  if (!here_.has_value()) here_ = there_.to_host();
  return *here_;
}

const Tensor* Item::tensor() const {
  if (const auto* held = std::get_if<std::shared_ptr<const DeviceValue>>(&value_)) return &(*held)->here();
  return std::get_if<Tensor>(&value_);
}

const DeviceTensor* Item::device_tensor() const {
  const auto* held = std::get_if<std::shared_ptr<const DeviceValue>>(&value_);
  return held == nullptr ? nullptr : &(*held)->there();
}

std::optional<TensorType> Item::tensor_type() const {
  if (const DeviceTensor* there = device_tensor())
    return TensorType{there->data_type(), to_symbolic(there->shape())};
  const auto* here = std::get_if<Tensor>(&value_);
  if (here == nullptr) return std::nullopt;
  return TensorType{here->data_type(), to_symbolic(here->shape())};
}

const TextTensor* Item::text() const {
  const auto* held = std::get_if<std::shared_ptr<const TextTensor>>(&value_);
  return held == nullptr ? nullptr : held->get();
}

const Item::Sequence* Item::sequence() const {
  const auto* held = std::get_if<std::shared_ptr<const Sequence>>(&value_);
  return held == nullptr ? nullptr : held->get();
}

std::string to_string(const Item& item) {
  if (const auto type = item.tensor_type()) return to_string(*type);
  if (const TextTensor* text = item.text()) return fmt::format("text{}", tessera::to_string(text->shape));
  if (const Item::Sequence* items = item.sequence()) return fmt::format("sequence of {}", items->size());
  return "nothing";
}

Item on_host(const Item& item) {
  if (item.device_tensor() != nullptr) return *item.tensor();
  if (item.sequence() == nullptr) return item;
  Item::Sequence items;
  for (const Item& one : *item.sequence()) items.push_back(on_host(one));
  return items;
}

}  // namespace tessera::program
