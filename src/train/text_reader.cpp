#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/progress.h"
#include "tessera/train/generation.h"

namespace tessera::train {
namespace {

// Tokens of a pass over a prompt: enough that products of so many rows are limited by arithmetic, and few
// enough that what fills up the last one costs little.
constexpr int64_t kBlock = 64;

ExecutableFamily compiled(const nn::Task& passes, const Serving& serve, int64_t block) {
  const LongWork compiling;
  ExecutableFamily family = serve(passes);
  family.prepare({{{"tokens", block}}, {{"tokens", 1}}});
  return family;
}

}  // namespace

TextReader::TextReader(const TextContinuation& continuation, const Serving& serve, int64_t capacity)
    : capacity_(capacity),
      block_(std::min(kBlock, capacity)),
      passes_(compiled(continuation.passes(capacity), serve, block_)) {}

TextReader::~TextReader() {
  if (under_way_ != nullptr) under_way_->discard();
}

Tensor TextReader::read(std::span<const int32_t> tokens) {
  begin(tokens);
  return finish();
}

void TextReader::begin(std::span<const int32_t> tokens) {
  require(under_way_ == nullptr, ErrorCode::invalid_argument, "tokens are being read already");
  require(!tokens.empty(), ErrorCode::invalid_argument, "a pass over no tokens");
  require(size_ + std::ssize(tokens) <= capacity_, ErrorCode::invalid_argument,
          "no room for {} tokens after {}: there is room for {}", tokens.size(), size_, capacity_);
  while (true) {
    const size_t count = std::min(static_cast<size_t>(block_), tokens.size());
    submit(tokens.first(count));
    tokens = tokens.subspan(count);
    if (tokens.empty()) return;
    finish();  // what comes after a block in the middle is known
  }
}

Tensor TextReader::finish() {
  require(under_way_ != nullptr, ErrorCode::invalid_argument, "no tokens are being read");
  return std::exchange(under_way_, nullptr)->receive().at("logits");
}

// At most a block of them.
void TextReader::submit(std::span<const int32_t> tokens) {
  const auto count = std::ssize(tokens);
  const int64_t extent = count == 1 ? 1 : block_;
  Tensor given(DataType::int32, {1, extent});
  std::copy(tokens.begin(), tokens.end(), given.data<int32_t>().begin());
  Tensor places = Tensor::full(DataType::int32, {extent}, -1);
  for (int64_t i = 0; i < count; ++i) places.set(i, static_cast<double>(size_ + i));
  const Tensor last = Tensor::from<int32_t>({1}, {static_cast<int32_t>(count - 1)});
  const std::shared_ptr<Executable> pass = passes_.at({{"tokens", extent}});
  pass->submit({{"tokens", given}, {"places", places}, {"last", last}});
  under_way_ = pass;
  size_ += count;
}

}  // namespace tessera::train
