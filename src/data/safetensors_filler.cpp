#include "tessera/base/error.h"
#include "tessera/data/safetensors.h"

namespace tessera::data {

SafetensorsFiller::SafetensorsFiller(const std::filesystem::path& path)
    : file_(SafetensorsFile::open(path)), bytes_(path) {}

void SafetensorsFiller::write(const std::string& name, int64_t first, const Tensor& elements) {
  const auto found = file_.entries().find(name);
  require(found != file_.entries().end(), ErrorCode::invalid_argument, "the file holds no tensor '{}'", name);
  const SafetensorsEntry& entry = found->second;
  const int64_t bits = bits_of(entry.type);
  const int64_t count = elements.size();
  const bool fits = elements.data_type() == entry.type && first >= 0 &&
                    first + count <= element_count(entry.shape) && first * bits % 8 == 0 &&
                    count * bits % 8 == 0;
  require(fits, ErrorCode::invalid_argument, "elements {} to {} of type {} are none of the {}{} of '{}'",
          first, first + count, to_string(elements.data_type()), to_string(entry.type),
          to_string(entry.shape), name);
  bytes_.write(file_.data_offset() + entry.begin + static_cast<uint64_t>(first * bits / 8),
               {static_cast<const std::byte*>(elements.raw()), elements.bytes()});
}

}  // namespace tessera::data
