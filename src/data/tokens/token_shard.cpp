#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include <zlib.h>

#include "tessera/base/error.h"
#include "tessera/data/token_shards.h"

namespace tessera::data {
namespace {

// Of nothing there may be no memory.
void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

static_assert(std::endian::native == std::endian::little, "shards are read as they lie");

constexpr std::array<char, 8> kMagic = {'T', 'S', 'R', 'T', 'O', 'K', 'E', 'N'};
constexpr uint32_t kVersion = 1;
constexpr int64_t kNarrowVocabulary = 1 << 16;  // of tokens with two bytes
constexpr uint64_t kAlignment = 8;

// The first bytes of a file, as docs/text.md lists them.
struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t bytes_per_token = 0;
  uint64_t tokens = 0;
  uint64_t documents = 0;
  uint32_t fields = 1;
  uint32_t vocabulary = 0;
  uint64_t tokenizer = 0;
  uint32_t contents_checksum = 0;
  uint32_t header_checksum = 0;  // of all bytes before it
  uint64_t reserved = 0;
};
static_assert(sizeof(Header) == 64);

uint32_t checksum_of(std::span<const std::byte> bytes, uint32_t before = 0) {
  uint64_t checksum = before;
  while (!bytes.empty()) {
    const size_t count = std::min<size_t>(bytes.size(), size_t{1} << 30);  // zlib counts in 32 bits
    checksum = crc32(static_cast<uLong>(checksum), reinterpret_cast<const Bytef*>(bytes.data()),
                     static_cast<uInt>(count));
    bytes = bytes.subspan(count);
  }
  return static_cast<uint32_t>(checksum);
}

uint32_t checksum_of(const Header& header) {
  return checksum_of(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_checksum)));
}

uint64_t padded(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t bytes_of_tokens(const Header& header) {
  return padded(header.tokens * header.bytes_per_token);
}

uint64_t bytes_of_offsets(const Header& header) {
  return (header.documents * header.fields + 1) * sizeof(uint64_t);
}

void check(const Header& header, uint64_t size, const std::string& name) {
  const auto code = ErrorCode::invalid_file;
  require(header.magic == kMagic, code, "{}: no token shard", name);
  require(header.version == kVersion, code, "{}: version {} of the format, expected {}", name, header.version,
          kVersion);
  require(header.header_checksum == checksum_of(header), code, "{}: its header is damaged (wrong checksum)",
          name);
  require(header.bytes_per_token == 2 || header.bytes_per_token == 4, code,
          "{}: {} bytes for a token, expected 2 or 4", name, header.bytes_per_token);
  require(header.fields == 1 || header.fields == 2, code, "{}: {} fields of a document, expected 1 or 2",
          name, header.fields);
  constexpr uint32_t kLargestVocabulary = std::numeric_limits<int32_t>::max();
  require(header.vocabulary >= 1 && header.vocabulary <= kLargestVocabulary, code,
          "{}: a vocabulary of {} tokens", name, header.vocabulary);
  // Before sums are made of them, which could wrap around.
  require(header.tokens <= size && header.documents <= size, code,
          "{}: {} tokens of {} documents are more than its {} bytes hold", name, header.tokens,
          header.documents, size);
  const uint64_t expected = sizeof(Header) + bytes_of_tokens(header) + bytes_of_offsets(header);
  require(size == expected, code, "{}: {} bytes, expected {} for {} tokens of {} documents", name, size,
          expected, header.tokens, header.documents);
}

Header header_of(const MappedFile& file) {
  const std::string name = file.path().string();
  require(file.size() >= sizeof(Header), ErrorCode::invalid_file,
          "{}: {} bytes are no token shard, which has {} or more", name, file.size(), sizeof(Header));
  Header header;
  std::memcpy(&header, file.bytes().data(), sizeof(Header));
  check(header, file.size(), name);
  return header;
}

void check(const TokenDocuments& documents, const TokenShardOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(options.fields == 1 || options.fields == 2, code, "{} fields of a document, expected 1 or 2",
          options.fields);
  require(options.vocabulary >= 1 && options.vocabulary <= std::numeric_limits<int32_t>::max(), code,
          "a vocabulary of {} tokens", options.vocabulary);
  require(std::ssize(documents.ends) % options.fields == 0, code, "{} texts are no whole documents of {}",
          documents.ends.size(), options.fields);
  int64_t before = 0;
  for (const int64_t end : documents.ends) {
    require(end >= before, code, "a document ends at token {}, before it begins at {}", end, before);
    before = end;
  }
  require(before == std::ssize(documents.tokens), code, "the documents end at token {} of {}", before,
          documents.tokens.size());
  for (const int32_t token : documents.tokens)
    require(token >= 0 && token < options.vocabulary, code, "token {} is none of the vocabulary of {}", token,
            options.vocabulary);
}

std::vector<std::byte> contents_of(const TokenDocuments& documents, const Header& header) {
  std::vector<std::byte> contents(bytes_of_tokens(header) + bytes_of_offsets(header));
  if (header.bytes_per_token == 4) {
    copy_bytes(contents.data(), documents.tokens.data(), documents.tokens.size() * sizeof(int32_t));
  } else {
    for (size_t i = 0; i < documents.tokens.size(); ++i) {
      const auto token = static_cast<uint16_t>(documents.tokens[i]);
      std::memcpy(contents.data() + i * sizeof(token), &token, sizeof(token));
    }
  }
  // The first offset is 0.
  copy_bytes(contents.data() + bytes_of_tokens(header) + sizeof(uint64_t), documents.ends.data(),
             documents.ends.size() * sizeof(int64_t));
  return contents;
}

}  // namespace

TokenShard::TokenShard(const std::filesystem::path& path) : file_(path) {
  const Header header = header_of(file_);
  documents_ = static_cast<int64_t>(header.documents);
  fields_ = header.fields;
  tokens_ = static_cast<int64_t>(header.tokens);
  vocabulary_ = header.vocabulary;
  bytes_per_token_ = header.bytes_per_token;
  tokenizer_ = header.tokenizer;
  checksum_ = header.contents_checksum;
}

int64_t TokenShard::offset(int64_t index) const {
  uint64_t offset = 0;
  const uint64_t begin = sizeof(Header) + padded(static_cast<uint64_t>(tokens_ * bytes_per_token_));
  std::memcpy(&offset, file_.bytes().data() + begin + static_cast<uint64_t>(index) * sizeof(offset),
              sizeof(offset));
  require(offset <= static_cast<uint64_t>(tokens_), ErrorCode::invalid_file,
          "{}: a document begins at token {} of {}; the file is damaged", file_.path().string(), offset,
          tokens_);
  return static_cast<int64_t>(offset);
}

TokenShard::Place TokenShard::place(int64_t document, int64_t field) const {
  require(document >= 0 && document < documents_ && field >= 0 && field < fields_,
          ErrorCode::invalid_argument, "{}: field {} of document {}, there are {} of {} documents",
          file_.path().string(), field, document, fields_, documents_);
  const int64_t index = document * fields_ + field;
  const Place place{offset(index), offset(index + 1)};
  require(place.begin <= place.end, ErrorCode::invalid_file,
          "{}: document {} ends at token {}, before it begins at {}; the file is damaged",
          file_.path().string(), document, place.end, place.begin);
  return place;
}

void TokenShard::read(int64_t begin, std::span<int32_t> tokens) const {
  require(begin >= 0 && begin <= tokens_ && std::ssize(tokens) <= tokens_ - begin,
          ErrorCode::invalid_argument, "{}: {} tokens from {} on, of {}", file_.path().string(),
          tokens.size(), begin, tokens_);
  const std::byte* source = file_.bytes().data() + sizeof(Header) + begin * bytes_per_token_;
  if (bytes_per_token_ == 4) {
    copy_bytes(tokens.data(), source, tokens.size_bytes());
  } else {
    for (size_t i = 0; i < tokens.size(); ++i) {
      uint16_t token = 0;
      std::memcpy(&token, source + i * sizeof(token), sizeof(token));
      tokens[i] = token;
    }
  }
  const auto broken = std::find_if(tokens.begin(), tokens.end(),
                                   [&](int32_t token) { return token < 0 || token >= vocabulary_; });
  require(broken == tokens.end(), ErrorCode::invalid_file,
          "{}: token {} is {}, expected less than {}; the file is damaged", file_.path().string(),
          begin + (broken - tokens.begin()), broken == tokens.end() ? 0 : *broken, vocabulary_);
}

void TokenShard::verify() const {
  const uint32_t found = checksum_of(file_.bytes().subspan(sizeof(Header)));
  require(found == checksum_, ErrorCode::invalid_file,
          "{}: checksum {:08x}, expected {:08x}; the file is damaged", file_.path().string(), found,
          checksum_);
  int64_t before = 0;
  for (int64_t index = 0; index <= documents_ * fields_; ++index) {
    const int64_t next = offset(index);
    require(index == 0 ? next == 0 : next >= before, ErrorCode::invalid_file,
            "{}: places of documents do not ascend at {}", file_.path().string(), index);
    before = next;
  }
  require(before == tokens_, ErrorCode::invalid_file, "{}: the documents end at token {} of {}",
          file_.path().string(), before, tokens_);
  constexpr int64_t kPart = 1 << 16;
  std::vector<int32_t> part(kPart);
  for (int64_t begin = 0; begin < tokens_; begin += kPart)
    read(begin, std::span(part).first(static_cast<size_t>(std::min(kPart, tokens_ - begin))));
}

void write_token_shard(const std::filesystem::path& path, const TokenDocuments& documents,
                       const TokenShardOptions& options) {
  check(documents, options);
  Header header{.bytes_per_token = options.vocabulary <= kNarrowVocabulary ? 2u : 4u,
                .tokens = documents.tokens.size(),
                .documents = documents.ends.size() / static_cast<uint64_t>(options.fields),
                .fields = static_cast<uint32_t>(options.fields),
                .vocabulary = static_cast<uint32_t>(options.vocabulary),
                .tokenizer = options.tokenizer};
  const std::vector<std::byte> contents = contents_of(documents, header);
  header.contents_checksum = checksum_of(contents);
  header.header_checksum = checksum_of(header);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&header, 1)));
  file.write(contents);
  file.commit();
}

}  // namespace tessera::data
