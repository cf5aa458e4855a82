#include "tessera/program/item.h"

#include <fmt/format.h>

namespace tessera::program {

const TextTensor* Item::text() const {
  const auto* held = std::get_if<std::shared_ptr<const TextTensor>>(&value_);
  return held == nullptr ? nullptr : held->get();
}

const Item::Sequence* Item::sequence() const {
  const auto* held = std::get_if<std::shared_ptr<const Sequence>>(&value_);
  return held == nullptr ? nullptr : held->get();
}

std::string to_string(const Item& item) {
  if (const Tensor* tensor = item.tensor())
    return fmt::format("{}{}", to_string(tensor->data_type()), tessera::to_string(tensor->shape()));
  if (const TextTensor* text = item.text()) return fmt::format("text{}", tessera::to_string(text->shape));
  if (const Item::Sequence* items = item.sequence()) return fmt::format("sequence of {}", items->size());
  return "nothing";
}

}  // namespace tessera::program
