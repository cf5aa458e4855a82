// The safetensors format (https://huggingface.co/docs/safetensors): a little-endian 64-bit header length, a
// JSON header {"NAME": {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__": {text: text}}, then
// the tensors' bytes without holes. Faults in a file throw Error(invalid_file) that names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/file.h"
#include "tessera/base/tensor.h"

namespace tessera::data {

// One tensor of a file: of every dtype but the 6-bit ones. int2, int4, uint4 and complex128 are none.
struct SafetensorsEntry {
  DataType type = DataType::fp32;
  Shape shape;
  uint64_t begin = 0;  // bytes from the start of the data, the end exclusive
  uint64_t end = 0;
};

// A file opened for reading. The header is read and checked whole: offsets that overlap, leave holes, lie
// outside the file, are misaligned for their type or disagree with the shape, names given twice and unknown
// dtypes are refused. Tensors are read when asked for. Reading from several threads is safe.
class SafetensorsFile {
 public:
  static SafetensorsFile open(const std::filesystem::path& path);

  // The same from memory, which must outlive the result. `name` stands in the messages.
  static SafetensorsFile parse(std::span<const std::byte> bytes, std::string name);

  // By name, in alphabetical order.
  const std::map<std::string, SafetensorsEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool contains(const std::string& name) const { return entries_.count(name) != 0; }
  uint64_t data_offset() const { return data_offset_; }  // of the tensors' bytes in the file

  // A copy of one tensor. Throws Error(invalid_argument) with the nearest name when there is none of that
  // name.
  Tensor read(const std::string& name) const;
  std::map<std::string, Tensor> read_all() const;

 private:
  SafetensorsFile(std::span<const std::byte> bytes, std::shared_ptr<const MappedFile> mapping,
                  std::string name);

  std::string name_;
  std::shared_ptr<const MappedFile> mapping_;  // null when parsed from memory
  std::span<const std::byte> data_;            // what follows the header
  uint64_t data_offset_ = 0;                   // of data_ in the file
  std::map<std::string, SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

// A tensor to be written: what the header says of it, and its contents, which are asked for once, when their
// turn comes.
struct SafetensorsSource {
  DataType type = DataType::fp32;
  Shape shape;
  std::function<Tensor()> contents;
};

// Writes the tensors through AtomicFile: the file appears complete or not at all. Larger element types come
// first and then names in order, so that every tensor is aligned and equal contents give equal bytes. Of the
// contents no more than one tensor's are held at a time. Throws Error(invalid_argument) for a type that the
// format lacks, packed elements that do not fill their last byte, a name that is not UTF-8 or is
// "__metadata__", and contents of another type or shape; Error(io) when the file cannot be written; and what
// `contents` throws.
void stream_safetensors(const std::filesystem::path& path,
                        const std::map<std::string, SafetensorsSource>& tensors,
                        const std::map<std::string, std::string>& metadata = {});

// The same of tensors that are at hand. Throws Error(invalid_argument) for an undefined one, too.
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

// The file of stream_safetensors() with zeros for contents, which SafetensorsFiller puts in their place
// before the caller commits it. Throws as stream_safetensors().
void begin_safetensors(AtomicFile& file, const std::map<std::string, SafetensorsSource>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

// Writes contents into a file that begin_safetensors() made; several processes may do so at once.
class SafetensorsFiller {
 public:
  explicit SafetensorsFiller(const std::filesystem::path& path);

  // The elements from the `first` of a tensor on. Throws Error(invalid_argument) where the tensor has no such
  // elements, or is of another type; Error(io) when they cannot be written.
  void write(const std::string& name, int64_t first, const Tensor& elements);
  // Returns when all is on the disk.
  void sync() { bytes_.sync(); }

 private:
  SafetensorsFile file_;
  FilePatch bytes_;
};

}  // namespace tessera::data
