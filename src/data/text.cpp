#include "tessera/data/text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/file.h"

#include "data/byte_files.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->is_regular_file() && !entry->is_symlink()) files.push_back(entry->path());
  }
  require(!error, ErrorCode::io, "{}: {}", folder.string(), error.message());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string read_bytes(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return read_text_file(path);
  std::string text;
  for (const fs::path& file : files_of(path)) {
    const std::string contents = read_text_file(file);
    if (contents.find('\0') == std::string::npos) text += contents;
  }
  require(!text.empty(), ErrorCode::io, "{}: the folder holds no text", path.string());
  return text;
}

Tensor read_byte_windows(const fs::path& path, int64_t length) {
  const std::string text = read_bytes(path);
  const int64_t pieces = std::ssize(text) / length;
  require(pieces > 0, ErrorCode::invalid_file, "{}: {} bytes do not fill a piece of {}", path.string(),
          text.size(), length);
  Tensor result(DataType::int32, {pieces, length});
  const auto tokens = result.data<int32_t>();
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<unsigned char>(text[i]);
  return result;
}

}  // namespace tessera::data
