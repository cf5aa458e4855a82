#include "tessera/nn/image_operations.h"

#include <array>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "tessera/data/safetensors.h"

#include "nn/augmentation_case.h"
#include "support/expect_error.h"
#include "test_folder.h"

namespace tessera::testing {
namespace {

data::SafetensorsFile golden() {
  return data::SafetensorsFile::open(std::filesystem::path(TESSERA_TEST_FOLDER) / "golden" /
                                     "operations.safetensors");
}

using Operation = std::function<Value*(Value* images)>;

Tensor applied(const Tensor& images, const Operation& operation) {
  return output_of(
      [&](Graph& graph, nn::Context&) { graph.add_output("y", operation(ops::constant(graph, images))); });
}

Operation warped(const nn::AffineMatrix& matrix) {
  return [matrix](Value* images) {
    const std::vector<nn::AffineMatrix> rows(static_cast<size_t>(images->shape()[0].value()), matrix);
    return nn::warp_images(images, ops::constant(images->graph(), nn::affine_table(rows)));
  };
}

// With one parameter for all images.
Operation with(Value* (*operation)(Value*, Value*), float parameter) {
  return [operation, parameter](Value* images) {
    const auto batch = static_cast<size_t>(images->shape()[0].value());
    return operation(images, numbers(images->graph(), std::vector<float>(batch, parameter)));
  };
}

// Of a name in the golden file.
Operation named(const std::string& name, float parameter, int64_t height, int64_t width) {
  if (name == "shear_x") return warped(nn::sheared_across(parameter));
  if (name == "shear_y") return warped(nn::sheared_down(parameter));
  if (name == "translate_x") return warped(nn::translated(parameter, 0));
  if (name == "translate_y") return warped(nn::translated(0, parameter));
  if (name == "rotate") return warped(nn::rotated(parameter, height, width));
  if (name == "sharpness") return with(nn::sharpen_images, parameter);
  if (name == "posterize") return with(nn::posterize_images, std::exp2(8 - parameter));
  if (name == "solarize") return with(nn::solarize_images, parameter);
  return name.starts_with("stretch") ? Operation(nn::stretch_levels) : Operation(nn::equalize_levels);
}

TEST(ImageOperations, ArePillows) {
  const data::SafetensorsFile file = golden();
  int compared = 0;
  for (const auto& [name, entry] : file.entries()) {
    if (name == "source" || name == "dark" || name.starts_with("affine/")) continue;
    const size_t slash = name.find('/');
    const Tensor source = as_batch(file.read(name.ends_with("_dark") ? "dark" : "source"));
    const float parameter = slash == std::string::npos ? 0 : std::stof(name.substr(slash + 1));
    const Tensor found =
        applied(source, named(name.substr(0, slash), parameter, source.shape()[1], source.shape()[2]));
    // Enhancing cuts off where Pillow's own arithmetic does, but in fp32; all else is exact.
    EXPECT_LE(largest_difference(found, as_batch(file.read(name))), name.starts_with("sharpness") ? 1 : 0)
        << name;
    EXPECT_EQ(largest_difference(found, rounded(found.clone())), 0) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 32);
}

// "affine/FILTER/DEGREES,RIGHT,DOWN,SCALE,SHEAR".
Operation affine_named(const std::string& name) {
  const size_t slash = name.find('/', std::string("affine/").size());
  const bool bilinear = name.substr(0, slash) == "affine/bilinear";
  std::vector<float> parameters;
  for (size_t at = slash + 1; at <= name.size();) {
    const size_t comma = std::min(name.find(',', at), name.size());
    parameters.push_back(std::stof(name.substr(at, comma - at)));
    at = comma + 1;
  }
  return [=](Value* images) {
    const auto number = [&](size_t i) { return numbers(images->graph(), {parameters.at(i)}); };
    return nn::warp_images(
        images, nn::affine_coefficients({number(0), number(1), number(2), number(3), number(4)}, images),
        bilinear ? nn::WarpFilter::bilinear : nn::WarpFilter::nearest);
  };
}

TEST(ImageOperations, WarpAroundTheMiddleAsTorchvision) {
  const data::SafetensorsFile file = golden();
  const Tensor source = as_batch(file.read("source"));
  int compared = 0;
  for (const auto& [name, entry] : file.entries()) {
    if (!name.starts_with("affine/")) continue;
    const Tensor found = applied(source, affine_named(name));
    const Tensor expected = as_batch(file.read(name));
    // fp32 may put a place on the other side of the border between two pixels, or of the image.
    int64_t different = 0;
    for (int64_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found.at(i), std::round(found.at(i)));
      different += std::abs(found.at(i) - expected.at(i)) > 1 ? 1 : 0;
    }
    EXPECT_LE(different, found.size() / 200) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 14);
}

TEST(ImageOperations, TakeAParameterOfEachImage) {
  const Tensor images = images_of(2);
  const auto both = [&](const Operation& first, const Operation& second, const Tensor& together) {
    EXPECT_TRUE(rows_of(together, 0, 1).identical(applied(rows_of(images, 0, 1), first)));
    EXPECT_TRUE(rows_of(together, 1, 1).identical(applied(rows_of(images, 1, 1), second)));
  };
  both(warped(nn::translated(2, 1)), warped(nn::rotated(40, 6, 7)), applied(images, [](Value* x) {
         const Tensor table = nn::affine_table({nn::translated(2, 1), nn::rotated(40, 6, 7)});
         return nn::warp_images(x, ops::constant(x->graph(), table));
       }));
  for (auto* operation : {nn::sharpen_images, nn::posterize_images, nn::solarize_images}) {
    both(with(operation, 2), with(operation, 16), applied(images, [&](Value* x) {
           return operation(x, numbers(x->graph(), {2, 16}));
         }));
  }
  both(nn::stretch_levels, nn::stretch_levels, applied(images, nn::stretch_levels));
  both(nn::equalize_levels, nn::equalize_levels, applied(images, nn::equalize_levels));
}

TEST(ImageOperations, LeaveAloneWhatHasOneLevelOrNoNeighbors) {
  const Tensor flat = Tensor::full(DataType::uint8, {1, 5, 4, 3}, 93);
  EXPECT_EQ(largest_difference(applied(flat, nn::stretch_levels), flat), 0);
  EXPECT_EQ(largest_difference(applied(flat, nn::equalize_levels), flat), 0);
  const Tensor thin = rows_of(images_of(1).reshape({1, 21, 2, 3}), 0, 1);
  EXPECT_EQ(largest_difference(applied(thin, with(nn::sharpen_images, 2)), thin), 0);
}

TEST(ImageOperations, RefuseWhatIsOutOfRange) {
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(nn::affine_table({nn::translated(20'000, 0)}), code, "-19999.5 is too large");
  EXPECT_ERROR(nn::affine_table({nn::sheared_across(2)}), code, "shrinks by 1 and 2");
  const Tensor wide(DataType::uint8, {1, 1, 8193, 1});
  EXPECT_ERROR(applied(wide, warped(nn::translated(0, 0))), code, "8193x1");
  EXPECT_ERROR(nn::check_rand_augment({.operations = 11}), code, "11 operations");
  EXPECT_ERROR(nn::check_rand_augment({.magnitude = 31}), code, "magnitude is 31");
}

// All that one operation of torchvision's RandAugment may make of an image, at a magnitude of 21 of 30.
std::vector<Tensor> possible_results(const Tensor& image) {
  constexpr float kStrength = 0.7F;
  const int64_t height = image.shape()[1];
  const int64_t width = image.shape()[2];
  const auto translation = [&](int64_t extent) {
    return std::trunc(150.0 / 331 * static_cast<double>(extent) * kStrength);
  };
  const auto color = [](Value* nn::ColorFactors::*which, float factor) {
    return [=](Value* images) {
      nn::ColorFactors factors;
      factors.*which = numbers(images->graph(), {factor});
      return ops::round(nn::adjust_color(images, factors));
    };
  };
  std::vector<Operation> operations{warped(nn::translated(0, 0))};
  for (const float sign : {1.0F, -1.0F}) {
    const double strength = static_cast<double>(sign) * 0.7;
    operations.push_back(warped(nn::sheared_across(0.3 * strength)));
    operations.push_back(warped(nn::sheared_down(0.3 * strength)));
    operations.push_back(warped(nn::translated(sign * translation(width), 0)));
    operations.push_back(warped(nn::translated(0, sign * translation(height))));
    operations.push_back(warped(nn::rotated(30 * strength, height, width)));
    operations.emplace_back(color(&nn::ColorFactors::brightness, 1 + sign * 0.63F));
    operations.emplace_back(color(&nn::ColorFactors::saturation, 1 + sign * 0.63F));
    operations.emplace_back(color(&nn::ColorFactors::contrast, 1 + sign * 0.63F));
    operations.push_back(with(nn::sharpen_images, 1 + sign * 0.63F));
  }
  operations.push_back(with(nn::posterize_images, 8));  // 2.8 bits are 3
  operations.push_back(with(nn::solarize_images, 76.5F));
  operations.emplace_back(nn::stretch_levels);
  operations.emplace_back(nn::equalize_levels);
  std::vector<Tensor> results;
  for (const Operation& operation : operations) results.push_back(applied(image, operation));
  return results;
}

TEST(RandAugment, AppliesOneOfTheOperationsToEachImage) {
  const Tensor source = as_batch(golden().read("source"));
  constexpr int64_t kBatch = 256;
  Tensor images(DataType::uint8, {kBatch, source.shape()[1], source.shape()[2], 3});
  for (int64_t i = 0; i < images.size(); ++i) images.set(i, source.at(i % source.size()));
  const Tensor result = output_of(augmenting(images, {.rand_augment = {.operations = 1, .magnitude = 21}}));
  const std::vector<Tensor> possible = possible_results(source);
  std::vector<int> found(possible.size(), 0);
  for (int64_t n = 0; n < kBatch; ++n) {
    const Tensor own = rows_of(result, n, 1);
    const auto same = std::ranges::find_if(
        possible, [&](const Tensor& other) { return largest_difference(own, other) <= 1; });
    ASSERT_NE(same, possible.end()) << n;
    ++found[static_cast<size_t>(same - possible.begin())];
  }
  // 18 of 256 are of each operation on average, of those with a sign 9 each way.
  for (size_t i = 0; i < found.size(); ++i) EXPECT_GT(found[i], 0) << i;
}

TEST(RandAugment, DependsOnTheStepAndTheRowAlone) {
  const Tensor images = images_of(6);
  const nn::AugmentationOptions options{.rand_augment = {.operations = 3, .magnitude = 20}};
  const Tensor whole = output_of(augmenting(images, options), 3);
  EXPECT_TRUE(whole.identical(output_of(augmenting(images, options), 3)));
  EXPECT_FALSE(whole.identical(output_of(augmenting(images, options), 4)));
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Tensor part =
        output_of(augmenting(rows_of(images, rank * 2, 2), options), 3, {.rank = rank, .count = 3});
    EXPECT_TRUE(part.identical(rows_of(whole, rank * 2, 2))) << rank;
  }
}

// Of the ranges that are asked for: what moves by whole pixels is the image, cut off.
TEST(RandomAffine, DrawsFromItsRanges) {
  Tensor images(DataType::uint8, {64, 10, 20, 1});
  for (int64_t i = 0; i < images.size(); ++i) images.set(i, static_cast<double>(1 + i % 200));
  const Tensor moved = output_of(augmenting(images, {.affine = {.translation = 0.25, .probability = 0.75}}));
  int whole = 0;
  std::set<std::pair<int64_t, int64_t>> places;
  for (int64_t n = 0; n < 64; ++n) {
    // Where the pixel in the middle went, whose level tells its place.
    std::pair<int64_t, int64_t> place{99, 99};
    for (int64_t i = 0; i < 200; ++i)
      if (moved.at(n * 200 + i) == 1 + 5 * 20 + 10) place = {i / 20 - 5, i % 20 - 10};
    ASSERT_LE(std::abs(place.first), 2);
    ASSERT_LE(std::abs(place.second), 5);
    whole += place == std::pair<int64_t, int64_t>{0, 0} ? 1 : 0;
    places.insert(place);
    for (int64_t y = 0; y < 10; ++y) {
      for (int64_t x = 0; x < 20; ++x) {
        const int64_t row = y - place.first;
        const int64_t column = x - place.second;
        const bool inside = row >= 0 && row < 10 && column >= 0 && column < 20;
        ASSERT_EQ(moved.at(n * 200 + y * 20 + x), inside ? static_cast<double>(1 + row * 20 + column) : 0);
      }
    }
  }
  EXPECT_GT(whole, 6);  // 16 on average, and one of 55 of the others
  EXPECT_LT(whole, 32);
  EXPECT_GT(places.size(), 20U);
  EXPECT_FALSE(nn::RandomAffineOptions{.probability = 0}.changes_images());
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(nn::check_random_affine({.degrees = 181}), code, "degrees", "181");
  EXPECT_ERROR(nn::check_random_affine({.scale = 1}), code, "scale", "0 to 0.9");
  const Tensor wide(DataType::uint8, {1, 1, 8000, 1});
  EXPECT_ERROR(output_of(augmenting(wide, {.affine = {.degrees = 10, .scale = 0.5}})), code, "8000x1");
}

// Gray images have no color: that operation leaves them.
TEST(RandAugment, TakesGrayImages) {
  Tensor images(DataType::uint8, {16, 6, 7, 1});
  for (int64_t i = 0; i < images.size(); ++i) images.set(i, static_cast<double>(i * 37 % 251 + 3));
  const Tensor result = output_of(augmenting(images, {.rand_augment = {.operations = 2}}));
  EXPECT_EQ(result.shape(), images.shape());
  EXPECT_GT(largest_difference(result, images), 1);
}

}  // namespace
}  // namespace tessera::testing
