// Any bytes either are refused with an Error or are annotations whose objects lie inside their images; and
// what is broken alone is left out.
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/data/annotated.h"

#include "fuzz.h"

namespace {

void check(const tessera::data::Annotations& annotations) {
  for (const tessera::data::AnnotatedImage& image : annotations.images) {
    for (const tessera::data::AnnotatedObject& object : image.objects) {
      if (object.label < 0 || object.label >= std::ssize(annotations.class_names)) std::abort();
      const tessera::data::BoundingBox& box = object.box;
      const bool is_inside = box.left >= 0 && box.top >= 0 && box.left < box.right && box.top < box.bottom &&
                             box.right <= static_cast<float>(image.width) &&
                             box.bottom <= static_cast<float>(image.height);
      if (!is_inside) std::abort();
      const int64_t pixels = tessera::data::area(mask_of(image, object));
      if (pixels < 0 || pixels > image.height * image.width) std::abort();
      if (std::ssize(tessera::data::pixels(mask_of(image, object))) != image.height * image.width)
        std::abort();
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool leave_out_broken : {false, true}) {
    try {
      check(tessera::data::parse_coco(text, "input",
                                      {.leave_out_broken = leave_out_broken, .limits = {.pixels = 1 << 12}}));
    } catch (const tessera::Error& error) {
      if (error.code() != tessera::ErrorCode::invalid_file) std::abort();
    }
  }
  return 0;
}
