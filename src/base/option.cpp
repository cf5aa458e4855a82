#include "tessera/base/option.h"

#include <cmath>

#include "tessera/base/error.h"

namespace tessera {

std::string_view type_name(const OptionValue& value) {
  constexpr std::string_view kNames[] = {"true or false",  "a whole number",          "a number",
                                         "text",           "a list of whole numbers", "a list of numbers",
                                         "a list of texts"};
  static_assert(std::size(kNames) == std::variant_size_v<OptionValue>);
  return kNames[value.index()];
}

bool Limits::holds(double value) const {
  return std::isfinite(value) && (low_open ? value > low : value >= low) &&
         (high_open ? value < high : value <= high);
}

std::string Limits::describe() const {
  const bool has_low = std::isfinite(low);
  const bool has_high = std::isfinite(high);
  if (has_low && has_high && !low_open && !high_open)
    return fmt::format("from {:.15g} to {:.15g}", low, high);
  std::string text = has_low ? fmt::format("{} {:.15g}", low_open ? "above" : "at least", low) : "";
  if (has_high) {
    text += fmt::format("{}{} {:.15g}", text.empty() ? "" : " and ", high_open ? "below" : "at most", high);
  }
  return text;
}

const OptionValue* Options::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void Options::missing(std::string_view key) {
  fail(ErrorCode::internal, "the setting '{}' has no value of the type that is asked for", key);
}

Options Options::section(std::string_view name) const {
  const std::string prefix = std::string(name) + ".";
  Options result;
  for (const auto& [key, value] : values_) {
    if (key.starts_with(prefix)) result.set(key.substr(prefix.size()), value);
  }
  return result;
}

}  // namespace tessera
