// Events are protocol buffers, of which this file needs four messages with a handful of fields. Writing those
// by hand takes the forty lines below; protobuf-lite would take generated code and a shared library that
// every start of the program has to load and relocate, against the 50 ms that it may take.
#include "tessera/report/tensorboard.h"

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"

namespace tessera::report {
namespace {

static_assert(std::endian::native == std::endian::little,
              "fixed-width fields are copied as they lie in memory");

// Protocol buffers' wire format: https://protobuf.dev/programming-guides/encoding
enum class WireType : uint32_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

void put_varint(std::string& message, uint64_t value) {
  for (; value >= 0x80; value >>= 7) message += static_cast<char>(value | 0x80);
  message += static_cast<char>(value);
}
template <typename T>
void put_raw(std::string& message, T value) {
  message.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void put_tag(std::string& message, uint32_t field, WireType type) {
  put_varint(message, field << 3 | static_cast<uint32_t>(type));
}
void put_integer(std::string& message, uint32_t field, int64_t value) {
  put_tag(message, field, WireType::varint);
  put_varint(message, static_cast<uint64_t>(value));
}
void put_double(std::string& message, uint32_t field, double value) {
  put_tag(message, field, WireType::fixed64);
  put_raw(message, value);
}
void put_float(std::string& message, uint32_t field, float value) {
  put_tag(message, field, WireType::fixed32);
  put_raw(message, value);
}
void put_bytes(std::string& message, uint32_t field, std::string_view bytes) {
  put_tag(message, field, WireType::length);
  put_varint(message, bytes.size());
  message += bytes;
}

// Field numbers of event.proto, summary.proto and tensor.proto.
namespace event {
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace session_log {
constexpr uint32_t kStatus = 1;
constexpr int64_t kStart = 1;
}  // namespace session_log
namespace summary {
constexpr uint32_t kValue = 1;
}
namespace summary_value {
constexpr uint32_t kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
}
namespace metadata {
constexpr uint32_t kPluginData = 1, kPluginName = 1;
}
namespace tensor {
constexpr uint32_t kType = 1, kShape = 2, kStringValue = 8;
constexpr int64_t kString = 7;
constexpr uint32_t kShapeDimension = 2, kDimensionSize = 1;
}  // namespace tensor

std::string text_tensor(std::string_view text) {
  std::string dimension;
  put_integer(dimension, tensor::kDimensionSize, 1);
  std::string shape;
  put_bytes(shape, tensor::kShapeDimension, dimension);
  std::string message;
  put_integer(message, tensor::kType, tensor::kString);
  put_bytes(message, tensor::kShape, shape);
  put_bytes(message, tensor::kStringValue, text);
  return message;
}

std::string text_metadata() {
  std::string plugin;
  put_bytes(plugin, metadata::kPluginName, "text");
  std::string message;
  put_bytes(message, metadata::kPluginData, plugin);
  return message;
}

void put_summary(std::string& event_message, std::string_view entry) {
  std::string message;
  put_bytes(message, summary::kValue, entry);
  put_bytes(event_message, event::kSummary, message);
}

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string default_suffix() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("{}.{}", host[0] == '\0' ? "host" : host.data(), getpid());
}

// TFRecord stores checksums rotated and offset, lest the checksum of data holding its own checksum be
// trivial.
uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t remainder = i;
      for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ (remainder & 1 ? 0x82f63b78u : 0u);
      entries[i] = remainder;
    }
    return entries;
  }();
  uint32_t sum = ~0u;
  for (const char c : bytes) sum = sum >> 8 ^ table[(sum ^ static_cast<unsigned char>(c)) & 0xff];
  return ~sum;
}

EventWriter::EventWriter(const std::filesystem::path& folder, EventWriterOptions options)
    : clock_(options.clock ? std::move(options.clock) : system_seconds) {
  make_folder(folder);
  const std::string suffix = options.suffix.empty() ? default_suffix() : options.suffix;
  path_ = folder / fmt::format("events.out.tfevents.{:010}.{}", static_cast<int64_t>(clock_()), suffix);
  file_.reset(std::fopen(path_.c_str(), "wb"));
  if (file_ == nullptr) fail_to("create");

  std::string version;
  put_double(version, event::kWallTime, clock_());
  put_bytes(version, event::kFileVersion, "brain.Event:2");
  write_record(version);
  if (options.first_step > 0) {
    std::string status;
    put_integer(status, session_log::kStatus, session_log::kStart);
    std::string start = begin_event(options.first_step);
    put_bytes(start, event::kSessionLog, status);
    write_record(start);
  }
  flush();
}

std::string EventWriter::begin_event(int64_t step) const {
  std::string message;
  put_double(message, event::kWallTime, clock_());
  put_integer(message, event::kStep, step);
  return message;
}

void EventWriter::add_scalar(std::string_view tag, double value, int64_t step) {
  std::string entry;
  put_bytes(entry, summary_value::kTag, tag);
  put_float(entry, summary_value::kSimpleValue, static_cast<float>(value));
  std::string message = begin_event(step);
  put_summary(message, entry);
  write_record(message);
}

void EventWriter::add_text(std::string_view tag, std::string_view text, int64_t step) {
  std::string entry;
  put_bytes(entry, summary_value::kTag, tag);
  put_bytes(entry, summary_value::kTensor, text_tensor(text));
  put_bytes(entry, summary_value::kMetadata, text_metadata());
  std::string message = begin_event(step);
  put_summary(message, entry);
  write_record(message);
}

// TFRecord: length, its checksum, the payload, its checksum.
void EventWriter::write_record(std::string_view payload) {
  std::string record;
  put_raw(record, static_cast<uint64_t>(payload.size()));
  put_raw(record, masked_crc32c(record));
  record += payload;
  put_raw(record, masked_crc32c(payload));
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size()) fail_to("write");
}

void EventWriter::flush() {
  if (std::fflush(file_.get()) != 0) fail_to("write");
}

// errno is read after the call that failed: the arguments of one function have no order.
void EventWriter::fail_to(const char* action) const {
  fail(ErrorCode::io, "{}: cannot {}: {}", path_.string(), action, std::strerror(errno));
}

}  // namespace tessera::report
