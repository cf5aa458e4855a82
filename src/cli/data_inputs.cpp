#include "cli/data_inputs.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/data/image.h"
#include "tessera/data/npy.h"
#include "tessera/data/npz.h"

namespace tessera::cli {
namespace {

using program::Declaration;
using program::Item;
using Json = nlohmann::json;

// Calls take(name, path) for each that is named, and give(name, tensor) for each array of the others.
void for_each_input(const std::vector<std::string>& given,
                    const std::function<void(const std::string& name, const std::string& path)>& take,
                    const std::function<void(const std::string& name, Tensor array)>& give) {
  for (const std::string& input : given) {
    const size_t equals = input.rfind('=');
    if (equals == std::string::npos && input.ends_with(".npz")) {
      for (auto& [name, array] : data::read_npz(input)) give(name, array);
      continue;
    }
    require(equals != std::string::npos && equals > 0, ErrorCode::invalid_argument,
            "--input takes NAME=FILE, such as x=x.npy, or a file of arrays, such as x.npz, not '{}'", input);
    take(input.substr(0, equals), input.substr(equals + 1));
  }
}

// Where the extents of an image stand in the input's, of which it is one.
struct ImageAxes {
  size_t channels = 0;
  size_t height = 0;
  size_t width = 0;
};

ImageAxes axes_of(const TensorType& type, const std::string& path) {
  const SymbolicShape& shape = type.shape;
  const auto has_channels = [&](size_t axis) {
    return shape[axis].is_static() && (shape[axis].value() == 1 || shape[axis].value() == 3);
  };
  const bool fits = shape.size() == 4 && (!shape[0].is_static() || shape[0].value() == 1);
  if (fits && has_channels(1)) return {.channels = 1, .height = 2, .width = 3};
  if (fits && has_channels(3)) return {.channels = 3, .height = 1, .width = 2};
  fail(ErrorCode::invalid_argument, "'{}' is an image, and {} is not one image of 1 or 3 channels", path,
       to_string(type));
}

double of_channel(const std::vector<double>& numbers, int64_t channel) {
  return numbers.size() == 1 ? numbers[0] : numbers.at(static_cast<size_t>(channel));
}

Tensor read_image(const std::string& path, const TensorType& type, const GivenInputs& given) {
  const ImageAxes axes = axes_of(type, path);
  const std::vector<std::byte> bytes = read_file(path);
  data::EncodedImage image(bytes, path);
  const auto extent = [&](size_t axis, int64_t own) {
    return type.shape[axis].is_static() ? type.shape[axis].value() : own;
  };
  const int64_t height = extent(axes.height, image.info().height);
  const int64_t width = extent(axes.width, image.info().width);
  const int64_t channels = type.shape[axes.channels].value();
  for (const auto* numbers : {&given.mean, &given.deviation}) {
    require(numbers->size() == 1 || static_cast<int64_t>(numbers->size()) == channels,
            ErrorCode::invalid_argument, "{} numbers for the {} channels of '{}'", numbers->size(), channels,
            path);
  }
  std::vector<uint8_t> pixels(static_cast<size_t>(height * width * channels));
  image.decode({.height = height, .width = width, .channels = channels}, pixels);

  Shape shape(4, 1);
  shape[axes.channels] = channels;
  shape[axes.height] = height;
  shape[axes.width] = width;
  Tensor result(type.data_type, shape);
  const bool channels_first = axes.channels == 1;
  for (int64_t place = 0; place < height * width; ++place) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      const double pixel = pixels[static_cast<size_t>(place * channels + channel)];
      const double real =
          (pixel / 255 - of_channel(given.mean, channel)) / of_channel(given.deviation, channel);
      result.set(channels_first ? channel * height * width + place : place * channels + channel,
                 is_floating(type.data_type) ? real : pixel);
    }
  }
  return result;
}

// Nested lists, all of a depth as long as each other, and what stands in them.
struct Nested {
  Shape shape;
  std::vector<const Json*> items;  // row-major
};

void read_nested(const Json& json, size_t depth, Nested& nested, const std::string& path) {
  constexpr size_t kMostAxes = 32;
  require(depth <= kMostAxes, ErrorCode::invalid_file, "'{}': its lists are nested more than {} times", path,
          kMostAxes);
  if (!json.is_array()) {
    require(depth == nested.shape.size(), ErrorCode::invalid_file, "'{}': its lists are not nested evenly",
            path);
    nested.items.push_back(&json);
    return;
  }
  const auto count = static_cast<int64_t>(json.size());
  if (depth == nested.shape.size() && nested.items.empty()) nested.shape.push_back(count);
  require(depth < nested.shape.size() && nested.shape[depth] == count, ErrorCode::invalid_file,
          "'{}': its lists are not nested evenly", path);
  for (const Json& item : json) read_nested(item, depth + 1, nested, path);
}

Item read_json(const std::string& path, const Declaration* declared) {
  const Json json = Json::parse(read_text_file(path), nullptr, /*allow_exceptions=*/false);
  require(!json.is_discarded(), ErrorCode::invalid_file, "'{}' is no JSON", path);
  Nested nested;
  read_nested(json, 0, nested, path);
  if (!nested.items.empty() && nested.items[0]->is_string()) {
    program::TextTensor texts{.shape = nested.shape, .values = {}};
    for (const Json* item : nested.items) {
      require(item->is_string(), ErrorCode::invalid_file, "'{}' holds texts and others", path);
      texts.values.push_back(item->get<std::string>());
    }
    return texts;
  }
  const bool is_typed = declared != nullptr && declared->tensor.has_value();
  Tensor tensor(is_typed ? declared->tensor->data_type : DataType::fp32, nested.shape);
  for (size_t i = 0; i < nested.items.size(); ++i) {
    const Json& item = *nested.items[i];
    require(item.is_number() || item.is_boolean(), ErrorCode::invalid_file,
            "'{}' holds what is no number: {}", path, item.dump());
    if (tensor.data_type() == DataType::int64 && item.is_number_integer()) {
      tensor.data<int64_t>()[i] = item.get<int64_t>();  // a double holds 53 bits
    } else {
      tensor.set(static_cast<int64_t>(i), item.is_boolean() ? item.get<bool>() : item.get<double>());
    }
  }
  return tensor;
}

}  // namespace

std::map<std::string, Tensor> read_arrays(const std::vector<std::string>& given) {
  std::map<std::string, Tensor> inputs;
  for_each_input(
      given, [&](const std::string& name, const std::string& path) { inputs[name] = data::read_npy(path); },
      [&](const std::string& name, Tensor array) { inputs[name] = std::move(array); });
  return inputs;
}

void add_inputs(CLI::App& command, GivenInputs& given) {
  command.add_option("--input", given.files,
                     "NAME=FILE: the contents of an input, as a .npy file, an image (JPEG, PNG, WebP), which "
                     "is given the size that the input "
                     "has, or nested lists in a .json file; or a .npz file with arrays called as the inputs; "
                     "without any the inputs are "
                     "listed");
  command
      .add_option("--mean", given.mean,
                  "Of an image for an input of real numbers: (pixel / 255 - mean) / deviation, one number or "
                  "one for each "
                  "channel")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--deviation", given.deviation, "See --mean")->delimiter(',')->capture_default_str();
}

std::map<std::string, Item> read_inputs(const GivenInputs& given, const std::vector<Declaration>& declared) {
  std::map<std::string, Item> inputs;
  const auto read = [&](const std::string& name, const std::string& path) -> Item {
    const auto found = std::ranges::find(declared, name, &Declaration::name);
    const Declaration* declaration = found == declared.end() ? nullptr : &*found;
    if (path.ends_with(".json")) return read_json(path, declaration);
    if (!data::has_image_ending(path)) return data::read_npy(path);
    require(declaration != nullptr, ErrorCode::invalid_argument, "there is no input '{}' for '{}'", name,
            path);
    require(declaration->tensor.has_value(), ErrorCode::invalid_argument, "'{}' is an image, and '{}' is {}",
            path, name, declaration->type);
    return read_image(path, *declaration->tensor, given);
  };
  for_each_input(
      given.files, [&](const std::string& name, const std::string& path) { inputs[name] = read(name, path); },
      [&](const std::string& name, Tensor array) { inputs[name] = std::move(array); });
  return inputs;
}

}  // namespace tessera::cli
