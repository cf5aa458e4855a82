// Any bytes either are refused with an Error or describe an image in which the objects lie.
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/data/annotated.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool leave_out_broken : {false, true}) {
    tessera::data::Annotations annotations{.class_names = tessera::data::voc_class_names()};
    try {
      parse_voc(text, "input", {.leave_out_broken = leave_out_broken}, annotations);
    } catch (const tessera::Error& error) {
      const bool is_expected = error.code() == tessera::ErrorCode::invalid_file ||
                               error.code() == tessera::ErrorCode::unsupported;  // without its library
      if (!is_expected) std::abort();
    }
    for (const tessera::data::AnnotatedImage& image : annotations.images) {
      if (image.height <= 0 || image.width <= 0) std::abort();
      for (const tessera::data::AnnotatedObject& object : image.objects) {
        const tessera::data::BoundingBox& box = object.box;
        const bool is_inside = box.left >= 0 && box.top >= 0 && box.left < box.right &&
                               box.top < box.bottom && box.right <= static_cast<float>(image.width) &&
                               box.bottom <= static_cast<float>(image.height);
        if (!is_inside) std::abort();
      }
    }
  }
  return 0;
}
