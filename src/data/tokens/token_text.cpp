#include "tessera/data/token_text.h"

#include <string>
#include <utility>

#include "tessera/base/error.h"

#include "data/byte_files.h"
#include "data/tokens/joined_tokens.h"

namespace tessera::data {
namespace {

class JoinedText : public TokenText {
 public:
  explicit JoinedText(std::shared_ptr<const TokenSet> set)
      : set_(std::move(set)), tokens_(*set_, set_->header().separator) {
    require(set_->header().fields == 1, ErrorCode::invalid_argument,
            "documents of two texts are no long text");
  }

  int64_t size() const override { return tokens_.size(); }
  void read(int64_t begin, std::span<int32_t> tokens) const override { tokens_.read(begin, tokens); }

 private:
  std::shared_ptr<const TokenSet> set_;
  JoinedTokens tokens_;
};

class ByteText : public TokenText {
 public:
  explicit ByteText(std::string bytes) : bytes_(std::move(bytes)) {}

  int64_t size() const override { return std::ssize(bytes_); }
  void read(int64_t begin, std::span<int32_t> tokens) const override {
    auto place = static_cast<size_t>(begin);
    for (int32_t& token : tokens) token = static_cast<unsigned char>(bytes_[place++]);
  }

 private:
  std::string bytes_;
};

}  // namespace

std::shared_ptr<const TokenText> joined_text(std::shared_ptr<const TokenSet> set) {
  return std::make_shared<const JoinedText>(std::move(set));
}

std::shared_ptr<const TokenText> byte_text(const std::filesystem::path& path) {
  return std::make_shared<const ByteText>(read_bytes(path));
}

}  // namespace tessera::data
