// What `tessera data inspect` says of annotations.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "tessera/data/annotated.h"

#include "cli/json.h"

namespace tessera::cli {

// Smallest, middle and largest.
template <typename T>
std::array<T, 3> spread(std::vector<T> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

struct AnnotationFindings {
  std::vector<int64_t> of_class;  // objects
  int64_t objects = 0;
  int64_t ignored = 0;  // of them
  int64_t masks = 0;
  int64_t images_without_objects = 0;
  std::vector<int64_t> of_image;  // objects
  std::vector<int64_t> heights;   // of boxes, in pixels
  std::vector<int64_t> widths;
};
AnnotationFindings count_annotations(const data::AnnotatedSamples& samples);

nlohmann::json to_json(const data::AnnotatedSamples& samples, const AnnotationFindings& findings);
void print(const data::AnnotatedSamples& samples, const AnnotationFindings& findings);

}  // namespace tessera::cli
