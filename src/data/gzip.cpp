#include "tessera/data/gzip.h"

#include <algorithm>
#include <limits>
#include <new>

#include <zlib.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/text.h"

namespace tessera::data {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, gzip framing
constexpr int kRawWindow = -15;       // the same without any framing
constexpr size_t kFirstChunk = size_t{64} << 10;
constexpr size_t kLargestChunk = size_t{16} << 20;

// z_stream with its end; the input is handed over piecewise since zlib counts in 32 bits.
class Inflater {
 public:
  Inflater(std::span<const std::byte> input, std::string_view name, int window)
      : input_(input), name_(name), raw_(window == kRawWindow) {
    require(inflateInit2(&stream_, window) == Z_OK, ErrorCode::out_of_memory, "{}: zlib could not be started",
            name_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // Decompresses into `target`; returns the bytes written, fewer than asked only at the end of the data.
  size_t read(std::span<std::byte> target) {
    size_t written = 0;
    while (written < target.size() && !finished_) {
      const size_t room = std::min<size_t>(target.size() - written, std::numeric_limits<uInt>::max());
      stream_.next_out = reinterpret_cast<Bytef*>(target.data() + written);
      stream_.avail_out = static_cast<uInt>(room);
      step();
      written += room - stream_.avail_out;
    }
    return written;
  }

 private:
  void step() {
    if (stream_.avail_in == 0) {
      const size_t piece = std::min<size_t>(input_.size(), std::numeric_limits<uInt>::max());
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input_.data()));
      stream_.avail_in = static_cast<uInt>(piece);
      input_ = input_.subspan(piece);
    }
    const int result = inflate(&stream_, Z_NO_FLUSH);
    switch (result) {
      case Z_OK:
        return;
      case Z_STREAM_END:
        start_next_member();
        return;
      case Z_BUF_ERROR:
        fail(ErrorCode::invalid_file, "{}: truncated {} data, they end after {} decompressed bytes", name_,
             format(), stream_.total_out);
      case Z_MEM_ERROR:
        fail(ErrorCode::out_of_memory, "{}: no memory to decompress", name_);
      default:
        fail(ErrorCode::invalid_file, "{}: corrupt {} data after {} decompressed bytes: {}", name_, format(),
             stream_.total_out, stream_.msg != nullptr ? stream_.msg : "unknown fault");
    }
  }

  // Members may follow one another (RFC 1952, 2.2); zeros are the padding of tapes and block devices.
  void start_next_member() {
    const std::span<const std::byte> handed{reinterpret_cast<const std::byte*>(stream_.next_in),
                                            stream_.avail_in};
    const auto is_zero = [](std::byte value) { return value == std::byte{0}; };
    if (std::all_of(handed.begin(), handed.end(), is_zero) &&
        std::all_of(input_.begin(), input_.end(), is_zero)) {
      finished_ = true;
      return;
    }
    require(!raw_ && (is_gzip(handed) || (handed.size() < 2 && !input_.empty())), ErrorCode::invalid_file,
            "{}: corrupt {} data: {} bytes of something else follow the compressed data", name_, format(),
            handed.size() + input_.size());
    inflateReset(&stream_);
  }

  const char* format() const { return raw_ ? "deflated" : "gzip"; }

  std::span<const std::byte> input_;
  std::string_view name_;
  bool raw_;
  z_stream stream_{};
  bool finished_ = false;
};

std::vector<std::byte> inflate_up_to(std::span<const std::byte> bytes, std::string_view name, uint64_t count,
                                     int window = kGzipWindow) {
  try {
    Inflater inflater(bytes, name, window);
    std::vector<std::byte> result;
    while (result.size() < count) {
      const size_t filled = result.size();
      const size_t chunk = static_cast<size_t>(
          std::min<uint64_t>(std::clamp(filled, kFirstChunk, kLargestChunk), count - filled));
      result.resize(filled + chunk);
      const size_t written = inflater.read(std::span(result).subspan(filled));
      result.resize(filled + written);
      if (written < chunk) break;
    }
    return result;
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "{}: no memory for the decompressed contents", name);
  }
}

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::vector<std::byte> gunzip(std::span<const std::byte> bytes, std::string_view name,
                              uint64_t maximum_bytes) {
  // One byte more than allowed tells "exactly full" from "too long", and makes zlib check the trailing
  // checksum.
  const uint64_t limit = std::min(maximum_bytes, std::numeric_limits<uint64_t>::max() - 1);
  std::vector<std::byte> result = inflate_up_to(bytes, name, limit + 1);
  require(result.size() <= limit, ErrorCode::invalid_file,
          "{}: decompresses to more than the {} bytes expected here", name, limit);
  return result;
}

std::vector<std::byte> gunzip_prefix(std::span<const std::byte> bytes, std::string_view name,
                                     uint64_t count) {
  return inflate_up_to(bytes, name, count);
}

std::vector<std::byte> inflate_raw(std::span<const std::byte> bytes, std::string_view name, uint64_t count) {
  std::vector<std::byte> result = inflate_up_to(bytes, name, count + 1, kRawWindow);
  require(result.size() == count, ErrorCode::invalid_file, "{}: decompresses to {}{} bytes, {} were expected",
          name, result.size() > count ? "more than " : "", std::min<uint64_t>(result.size(), count), count);
  return result;
}

std::vector<std::byte> gzip(std::span<const std::byte> bytes) {
  z_stream stream{};
  require(
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK,
      ErrorCode::out_of_memory, "zlib could not be started");
  std::vector<std::byte> result(deflateBound(&stream, bytes.size()));
  size_t read = 0;
  size_t written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    constexpr size_t kPiece = size_t{1} << 30;
    const size_t piece = std::min(bytes.size() - read, kPiece);
    const size_t room = std::min(result.size() - written, kPiece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data() + read));
    stream.avail_in = static_cast<uInt>(piece);
    stream.next_out = reinterpret_cast<Bytef*>(result.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    status = deflate(&stream, read + piece == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    read += piece - stream.avail_in;
    written += room - stream.avail_out;
  }
  deflateEnd(&stream);
  require(status == Z_STREAM_END, ErrorCode::internal, "zlib could not compress {} bytes", bytes.size());
  result.resize(written);
  return result;
}

std::vector<std::byte> read_plain_or_gzip(const std::filesystem::path& path, uint64_t maximum_bytes) {
  std::vector<std::byte> bytes = read_file(path, maximum_bytes);
  return is_gzip(bytes) ? gunzip(bytes, path.string(), maximum_bytes) : bytes;
}

}  // namespace tessera::data
