#include "tessera/train/generation.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera::train {
namespace {

// The text so far, and how much of it has been given away.
class Told {
 public:
  Told(const TextContinuation& continuation, const GenerationOptions& options)
      : continuation_(continuation), options_(options) {}

  // Of all tokens that were drawn; what may be the beginning of a stop is kept until it is known. Returns
  // false at a stop.
  bool tell(std::span<const int32_t> tokens, bool last,
            const std::function<bool(std::string_view)>& receive) {
    const std::string text = continuation_.text(tokens);
    size_t end = text.size();
    bool stopped = false;
    for (const std::string& stop : options_.stops) {
      if (const size_t place = stop.empty() ? std::string::npos : text.find(stop); place < end) {
        end = place;
        stopped = true;
      }
    }
    if (!stopped && !last) end -= std::min(end, held_back(text));
    if (end > given_) {
      const bool wanted = receive(std::string_view(text).substr(given_, end - given_));
      given_ = end;
      return wanted && !stopped;
    }
    return !stopped;
  }

 private:
  // The longest end of the text that a stop begins with, and bytes of a character that is not whole.
  size_t held_back(const std::string& text) const {
    size_t held = 0;
    for (const std::string& stop : options_.stops) {
      for (size_t length = std::min(stop.size(), text.size()); length > held; --length) {
        if (text.ends_with(std::string_view(stop).substr(0, length))) held = length;
      }
    }
    constexpr size_t kLongest = 4;  // bytes of a character
    for (size_t length = 1; length < kLongest && length <= text.size(); ++length) {
      const auto byte = static_cast<unsigned char>(text[text.size() - length]);
      if (byte < 0x80) break;
      if (byte < 0xc0) continue;  // one in the middle of a character
      const size_t whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      if (length < whole) held = std::max(held, length);
      break;
    }
    return held;
  }

  const TextContinuation& continuation_;
  const GenerationOptions& options_;
  size_t given_ = 0;
};

}  // namespace

int64_t continue_text(const Serving& serve, const TextContinuation& continuation, std::string_view prompt,
                      const GenerationOptions& options,
                      const std::function<bool(std::string_view piece)>& receive) {
  std::vector<int32_t> tokens = continuation.tokens(prompt);
  if (tokens.empty()) tokens = continuation.start;
  require(!tokens.empty(), ErrorCode::invalid_argument, "there is no text to go on from: give a prompt");
  const int64_t window = continuation.window;
  require(window > 0, ErrorCode::invalid_argument, "a network that sees {} tokens goes on with none", window);
  const auto before = std::ssize(tokens);
  if (options.tokens <= 0) return 0;
  // The token that is drawn last is not read.
  TextReader reader(continuation, serve, std::min(window, before + options.tokens - 1));
  Told told(continuation, options);
  const auto last = [&](int64_t count) { return std::span(tokens).last(static_cast<size_t>(count)); };
  int64_t drawn = 0;
  reader.begin(last(std::min(before, window)));
  while (true) {
    const Tensor logits = reader.finish();
    const auto token = static_cast<int32_t>(draw_token(logits.data<float>(), options.sampling, drawn));
    bool ends = std::ranges::find(continuation.ends, token) != continuation.ends.end();
    if (!ends) {
      tokens.push_back(token);
      ends = ++drawn == options.tokens;
    }
    // While the device reads it, the text is told.
    if (!ends && reader.size() < window) {
      reader.begin(last(1));
    } else if (!ends) {
      reader.forget();
      reader.begin(last(window - window / 2));
    }
    const std::span<const int32_t> after = std::span(tokens).subspan(static_cast<size_t>(before));
    if (!told.tell(after, ends, receive) || ends) break;
  }
  return drawn;
}

}  // namespace tessera::train
