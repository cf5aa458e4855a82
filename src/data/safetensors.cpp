#include "tessera/data/safetensors.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

#include "data/little_endian.h"
#include "safetensors_header.h"

namespace tessera::data {
namespace {

constexpr uint64_t kLengthBytes = 8;

void check_booleans(std::span<const std::byte> bytes, const std::string& file, const std::string& tensor) {
  const auto fault =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte value) { return value > std::byte{1}; });
  require(fault == bytes.end(), ErrorCode::invalid_file,
          "{}: tensor '{}': element {} of a BOOL tensor is neither 0 nor 1", file, tensor,
          fault - bytes.begin());
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  auto mapping = std::make_shared<const MappedFile>(path);
  const std::span<const std::byte> bytes = mapping->bytes();
  return SafetensorsFile(bytes, std::move(mapping), path.string());
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, std::string name) {
  return SafetensorsFile(bytes, nullptr, std::move(name));
}

SafetensorsFile::SafetensorsFile(std::span<const std::byte> bytes, std::shared_ptr<const MappedFile> mapping,
                                 std::string name)
    : name_(std::move(name)), mapping_(std::move(mapping)) {
  require(bytes.size() >= kLengthBytes, ErrorCode::invalid_file,
          "{}: truncated safetensors file: {} bytes, the header's length alone takes {}", name_, bytes.size(),
          kLengthBytes);
  const uint64_t length = little_endian(bytes.first(kLengthBytes));
  require(length <= kMaximumSafetensorsHeader, ErrorCode::invalid_file,
          "{}: not a safetensors file: a header of {} bytes, at most {} are legal", name_, length,
          kMaximumSafetensorsHeader);
  require(length <= bytes.size() - kLengthBytes, ErrorCode::invalid_file,
          "{}: truncated safetensors file: a header of {} bytes, {} follow", name_, length,
          bytes.size() - kLengthBytes);
  std::string text(length, '\0');
  if (mapping_ != nullptr) {
    mapping_->copy(kLengthBytes, std::as_writable_bytes(std::span(text)));
  } else if (length > 0) {
    std::memcpy(text.data(), bytes.data() + kLengthBytes, length);
  }
  data_offset_ = kLengthBytes + length;
  data_ = bytes.subspan(data_offset_);
  SafetensorsHeader header = parse_safetensors_header(text, data_.size(), name_);
  entries_ = std::move(header.entries);
  metadata_ = std::move(header.metadata);
}

Tensor SafetensorsFile::read(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    std::vector<std::string> names;
    for (const auto& [candidate, entry] : entries_) names.push_back(candidate);
    fail(ErrorCode::invalid_argument, "{}: holds no tensor '{}'{}", name_, name, did_you_mean(name, names));
  }
  const SafetensorsEntry& entry = found->second;
  Tensor tensor(entry.type, entry.shape);
  const std::span<std::byte> target(static_cast<std::byte*>(tensor.raw()), tensor.bytes());
  if (mapping_ != nullptr) {
    mapping_->copy(data_offset_ + entry.begin, target);
  } else if (!target.empty()) {
    std::memcpy(target.data(), data_.data() + entry.begin, target.size());
  }
  if (entry.type == DataType::boolean) check_booleans(target, name_, name);
  return tensor;
}

std::map<std::string, Tensor> SafetensorsFile::read_all() const {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, entry] : entries_) tensors.emplace(name, read(name));
  return tensors;
}

namespace {

using Sources = std::map<std::string, SafetensorsSource>;

// The names in the order in which the contents stand in the file.
std::vector<std::string> order_of(const Sources& tensors, const std::string& file) {
  std::vector<std::string> order;
  for (const auto& [name, tensor] : tensors) {
    require(name != kMetadataKey, ErrorCode::invalid_argument, "{}: no tensor may be called '{}'", file,
            kMetadataKey);
    require(element_count(tensor.shape) * bits_of(tensor.type) % 8 == 0, ErrorCode::invalid_argument,
            "{}: tensor '{}': {} of shape {} ends within a byte, which the format does not allow", file, name,
            to_string(tensor.type), to_string(tensor.shape));
    order.push_back(name);
  }
  std::stable_sort(order.begin(), order.end(), [&](const std::string& a, const std::string& b) {
    return bits_of(tensors.at(a).type) > bits_of(tensors.at(b).type);
  });
  return order;
}

// All that comes before the contents, which stand in the order.
struct Layout {
  std::vector<std::string> order;
  std::string head;
  uint64_t file_bytes = 0;
};

Layout layout_of(const std::string& path, const Sources& tensors,
                 const std::map<std::string, std::string>& metadata) {
  Layout layout{.order = order_of(tensors, path)};
  SafetensorsHeader header;
  header.metadata = metadata;
  uint64_t offset = 0;
  for (const std::string& name : layout.order) {
    const SafetensorsSource& tensor = tensors.at(name);
    const uint64_t end = offset + static_cast<uint64_t>(tensor_bytes(tensor.type, tensor.shape));
    header.entries[name] = {tensor.type, tensor.shape, offset, end};
    offset = end;
  }
  const std::string text = format_safetensors_header(header);
  require(text.size() <= kMaximumSafetensorsHeader, ErrorCode::invalid_argument,
          "{}: the header takes {} bytes, at most {} are legal", path, text.size(),
          kMaximumSafetensorsHeader);
  for (size_t i = 0; i < kLengthBytes; ++i) layout.head += static_cast<char>(text.size() >> (8 * i));
  layout.head += text;
  layout.file_bytes = layout.head.size() + offset;
  return layout;
}

void write_contents(AtomicFile& file, const SafetensorsSource& source, const std::string& path,
                    const std::string& name) {
  const Tensor tensor = source.contents();
  require(tensor.defined() && tensor.data_type() == source.type && tensor.shape() == source.shape,
          ErrorCode::invalid_argument, "{}: tensor '{}' was to be {}{}, its contents are {}{}", path, name,
          to_string(source.type), to_string(source.shape), to_string(tensor.data_type()),
          to_string(tensor.shape()));
  file.write({static_cast<const std::byte*>(tensor.raw()), tensor.bytes()});
}

}  // namespace

void stream_safetensors(const std::filesystem::path& path, const Sources& tensors,
                        const std::map<std::string, std::string>& metadata) {
  const Layout layout = layout_of(path.string(), tensors, metadata);
  AtomicFile file(path);
  file.write(layout.head);
  for (const std::string& name : layout.order) write_contents(file, tensors.at(name), path.string(), name);
  file.commit();
}

void begin_safetensors(AtomicFile& file, const Sources& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const Layout layout = layout_of(file.temporary().string(), tensors, metadata);
  file.write(layout.head);
  file.extend(layout.file_bytes);
}

void write_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  Sources sources;
  for (const auto& [name, tensor] : tensors) {
    require(tensor.defined(), ErrorCode::invalid_argument, "{}: tensor '{}' has no contents", path.string(),
            name);
    sources[name] = {tensor.data_type(), tensor.shape(), [&tensor = tensor] { return tensor; }};
  }
  stream_safetensors(path, sources, metadata);
}

}  // namespace tessera::data
