// Settings that users give by name: what they may be, and what they are.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tessera {

using OptionValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                                 std::vector<double>, std::vector<std::string>>;

// "a whole number", "a list of numbers", ...
std::string_view type_name(const OptionValue& value);

// Of a number, or of each in a list.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;  // whether `low` itself is outside
  bool high_open = false;

  static Limits at_least(double low) { return {.low = low}; }
  static Limits above(double low) { return {.low = low, .low_open = true}; }
  static Limits between(double low, double high) { return {.low = low, .high = high}; }
  // [0, 1): a probability or decay that must not be certain.
  static Limits fraction() { return {.low = 0, .high = 1, .high_open = true}; }

  bool holds(double value) const;  // false for NaN and infinities
  std::string describe() const;    // "at least 0 and below 1"; "" without limits
};

// What a setting may be when a run goes on that was begun with another.
enum class Resuming : uint8_t {
  asked,  // different when the user asked for it: it decides what is computed
  free,   // different: the steps to come compute the same
  fixed,  // not different: what a position in the data means depends on it
};

struct Option {
  std::string key;
  OptionValue value;  // the default; its type is the option's
  std::string documentation = {};
  Limits limits = {};
  std::vector<std::string> choices = {};  // of a text; empty: any
  // With which choices of the section's first option this one has an effect; empty: with all.
  std::vector<std::string> used_by = {};
  // What having no value means. Such an option has none unless it is given; nor has an empty list.
  std::string unset = {};
  bool is_path = false;  // names a file or folder, which must be there; "" names none
  Resuming resuming = Resuming::asked;
  bool by_stage = false;  // of every recipe: may be another in each stage of a run
};

// What an option may choose, and the options that come with it.
struct OptionChoice {
  std::string name;
  std::string documentation;           // one line, or ""
  const std::vector<Option>* options;  // outlive the choice
};

// Values by key.
class Options {
 public:
  bool has(std::string_view key) const { return values_.contains(key); }
  // The value. Throws Error(internal) when there is none of that type.
  template <typename T>
  const T& get(std::string_view key) const {
    const T* value = std::get_if<T>(find(key));
    if (value == nullptr) missing(key);
    return *value;
  }
  bool boolean(std::string_view key) const { return get<bool>(key); }
  int64_t integer(std::string_view key) const { return get<int64_t>(key); }
  double real(std::string_view key) const { return get<double>(key); }
  const std::string& text(std::string_view key) const { return get<std::string>(key); }
  // Empty where there is no value.
  std::vector<int64_t> integers(std::string_view key) const { return get_or<std::vector<int64_t>>(key, {}); }
  std::vector<double> reals(std::string_view key) const { return get_or<std::vector<double>>(key, {}); }
  std::vector<std::string> texts(std::string_view key) const {
    return get_or<std::vector<std::string>>(key, {});
  }
  template <typename T>
  T get_or(std::string_view key, T fallback) const {
    return has(key) ? get<T>(key) : std::move(fallback);
  }

  const OptionValue* find(std::string_view key) const;  // null: none
  void set(const std::string& key, OptionValue value) { values_[key] = std::move(value); }
  void erase(const std::string& key) { values_.erase(key); }
  // Those below "optimizer.", by what follows it.
  Options section(std::string_view name) const;

  bool operator==(const Options&) const = default;

 private:
  [[noreturn]] static void missing(std::string_view key);

  std::map<std::string, OptionValue, std::less<>> values_;
};

// Options that cannot go together: the keys whose values are at odds, and what is wrong with them.
struct Contradiction {
  std::vector<std::string> keys;
  std::string message;
};

}  // namespace tessera
