#include "tessera/text/tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tessera/base/error.h"

#include "text/scratch.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

namespace tessera::text {
namespace {

// How long normalizers may make a text: so many bytes, and so many times its own.
constexpr size_t kMostNormalizedBytes = size_t{1} << 20;
constexpr size_t kMostGrowth = 64;

// The tokens of one text.
struct Sequence {
  std::vector<int32_t> ids;
  std::vector<Span> offsets;

  void keep(size_t count) {
    ids.resize(std::min(ids.size(), count));
    offsets.resize(std::min(offsets.size(), count));
  }
};

// One text on its way through the parts.
class Run {
 public:
  Run(const TokenizerParts& parts, Scratch& scratch, std::vector<int32_t>& ids, std::vector<Span>* offsets)
      : parts_(parts), scratch_(scratch), ids_(ids), offsets_(offsets) {}

  void encode(std::string_view text) {
    if (offsets_ == nullptr && well_formed_part(text, 0).bad == 0) {
      encode_parts(text, nullptr);
    } else {
      scratch_.given.clear(offsets_ != nullptr);
      repair(text, scratch_.given);
      encode_parts(scratch_.given.bytes, &scratch_.given);
    }
  }

 private:
  static void repair(std::string_view text, AlignedText& result) {
    for (size_t at = 0; at < text.size();) {
      const WellFormed part = well_formed_part(text, at);
      if (!result.tracked) result.append(text.substr(at, part.good), {});
      for (size_t begin = at; result.tracked && begin < at + part.good;) {
        const size_t length = character_length(text[begin]);
        result.append(text.substr(begin, length), span(begin, begin + length));
        begin += length;
      }
      at += part.good + part.bad;
      if (part.bad == 0) continue;
      std::string replacement;
      append_character(replacement, kReplacement);
      result.append(replacement, span(at - part.bad, at));
    }
  }

  static Span span(size_t begin, size_t end) {
    return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
  }

  // Around the tokens that are found in the text as it was given. `aligned` holds the same text; null: nobody
  // asks.
  void encode_parts(std::string_view text, const AlignedText* aligned) {
    if (!parts_.added.any(false)) return normalize(text, aligned, 0, text.size());
    scratch_.raw_parts.clear();
    parts_.added.find(text, false, scratch_.raw_parts);
    for (const TextPart& part : scratch_.raw_parts) {
      if (part.id >= 0) {
        add(part.id, aligned != nullptr ? aligned->origin_of(part.begin, part.end) : Span{});
      } else {
        normalize(text, aligned, part.begin, part.end);
      }
    }
  }

  void normalize(std::string_view text, const AlignedText* aligned, size_t begin, size_t end) {
    if (parts_.normalizers.empty() && aligned == nullptr)
      return find_normalized(text.substr(begin, end - begin), nullptr);
    AlignedText& present = scratch_.normalized;
    // Replacements that follow each other multiply: a damaged file must not take all memory.
    const size_t most_bytes = kMostNormalizedBytes + kMostGrowth * (end - begin);
    present.clear(offsets_ != nullptr, most_bytes);
    if (aligned != nullptr) {
      present.append(*aligned, begin, end);
    } else {
      present.append(text.substr(begin, end - begin), {});
    }
    for (const auto& normalizer : parts_.normalizers) {
      scratch_.spare.clear(present.tracked, most_bytes);
      normalizer->apply(present, scratch_.spare);
      std::swap(present, scratch_.spare);
    }
    find_normalized(present.bytes, &present);
  }

  void find_normalized(std::string_view text, const AlignedText* aligned) {
    if (!parts_.added.any(true)) return cut(text, aligned, 0);
    scratch_.normalized_parts.clear();
    parts_.added.find(text, true, scratch_.normalized_parts);
    for (const TextPart& part : scratch_.normalized_parts) {
      if (part.id >= 0) {
        add(part.id, aligned != nullptr ? aligned->origin_of(part.begin, part.end) : Span{});
      } else {
        cut(text.substr(part.begin, part.end - part.begin), aligned, part.begin);
      }
    }
  }

  // Text that begins at `base` of `aligned`.
  void cut(std::string_view text, const AlignedText* aligned, size_t base) {
    if (text.empty()) return;
    if (parts_.prefix_space && text[0] != ' ') {
      AlignedText& prefixed = scratch_.prefixed;
      prefixed.clear(offsets_ != nullptr);
      const uint32_t begin = offsets_ != nullptr ? aligned->origins[base].begin : 0;
      prefixed.append(" ", {begin, begin});
      if (offsets_ != nullptr) {
        prefixed.append(*aligned, base, base + text.size());
      } else {
        prefixed.append(text, {});
      }
      return tokenize(prefixed.bytes, &prefixed, 0);
    }
    tokenize(text, aligned, base);
  }

  void tokenize(std::string_view text, const AlignedText* aligned, size_t base) {
    Spans& words = scratch_.words;
    words.assign(1, span(0, text.size()));
    for (const auto& pre_tokenizer : parts_.pre_tokenizers) {
      scratch_.more_words.clear();
      for (const Span& word : words)
        pre_tokenizer->split(text.substr(word.begin, word.end - word.begin), word.begin, scratch_.more_words);
      std::swap(words, scratch_.more_words);
    }
    for (const Span& word : words) {
      const std::string_view bytes = text.substr(word.begin, word.end - word.begin);
      for (const Piece& piece : pieces_of(bytes)) {
        const size_t begin = base + word.begin;
        ids_.push_back(piece.id);
        if (offsets_ != nullptr) offsets_->push_back(place_of(*aligned, bytes, begin, piece));
      }
    }
  }

  std::span<const Piece> pieces_of(std::string_view word) {
    std::span<const Piece> known;
    const bool remember = parts_.model->by_words() && word.size() < WordCache::kLongestWord;
    if (remember && scratch_.cache.find(word, known)) return known;
    scratch_.pieces.clear();
    parts_.model->tokenize(word, scratch_.pieces, scratch_.joining);
    if (remember) scratch_.cache.add(word, scratch_.pieces);
    return scratch_.pieces;
  }

  Span place_of(const AlignedText& aligned, std::string_view word, size_t word_begin,
                const Piece& piece) const {
    Span place = aligned.origin_of(word_begin + piece.begin, word_begin + piece.end);
    if (!parts_.trims_offsets) return place;
    const std::string_view bytes = word.substr(piece.begin, piece.end - piece.begin);
    const size_t first = std::min(bytes.find_first_not_of(' '), bytes.size());
    const size_t last = bytes.find_last_not_of(' ');
    const size_t after = last == std::string_view::npos ? bytes.size() : bytes.size() - 1 - last;
    // A single space at the beginning may be the prefix, which stands for no space of the text.
    const bool prefix = first == 1 && place.begin == 0 && !parts_.trims_first_space;
    const size_t leading = prefix ? 0 : first;
    place.begin = std::min(place.begin + static_cast<uint32_t>(leading), place.end);
    if (place.end >= after) place.end = std::max(place.end - static_cast<uint32_t>(after), place.begin);
    return place;
  }

  void add(int32_t id, Span place) {
    ids_.push_back(id);
    if (offsets_ != nullptr) offsets_->push_back(place);
  }

  const TokenizerParts& parts_;
  Scratch& scratch_;
  std::vector<int32_t>& ids_;
  std::vector<Span>* offsets_;  // null: nobody asks
};

void check_text(std::string_view text) {
  constexpr size_t kLargest = std::numeric_limits<int32_t>::max();
  require(text.size() < kLargest, ErrorCode::invalid_argument,
          "a text of {} bytes is too long to be tokenized at once, expected less than {}; give it in parts",
          text.size(), kLargest);
}

size_t added_by(const std::vector<TemplatePiece>& pieces) {
  size_t count = 0;
  for (const TemplatePiece& piece : pieces) count += piece.ids.size();
  return count;
}

// As `tokenizers` does it: the shorter keeps all as long as that leaves the longer one at least as much.
void truncate_longest(Sequence& first, Sequence& second, size_t room) {
  size_t shorter = std::min(first.ids.size(), second.ids.size());
  size_t longer = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = shorter + room % 2;
  }
  const bool first_is_shorter = first.ids.size() <= second.ids.size();
  first.keep(first_is_shorter ? shorter : longer);
  second.keep(first_is_shorter ? longer : shorter);
}

void truncate(Sequence& first, Sequence* second, size_t added, const EncodeOptions& options) {
  if (options.maximum_length == 0) return;
  const auto code = ErrorCode::invalid_argument;
  require(options.maximum_length > static_cast<int64_t>(added), code,
          "a maximum length of {} tokens leaves no place beside the {} that are added",
          options.maximum_length, added);
  const size_t room = static_cast<size_t>(options.maximum_length) - added;
  const size_t count = first.ids.size() + (second != nullptr ? second->ids.size() : 0);
  if (count <= room) return;
  if (options.truncation == Truncation::longest_first) {
    return second != nullptr ? truncate_longest(first, *second, room) : first.keep(room);
  }
  Sequence* cut = options.truncation == Truncation::only_first ? &first : second;
  const size_t excess = count - room;
  require(cut != nullptr && cut->ids.size() > excess, code,
          "{} tokens are {} too many, and only the {} text may be cut, which has {}", count + added, excess,
          cut == &first ? "first" : "second", cut != nullptr ? cut->ids.size() : 0);
  cut->keep(cut->ids.size() - excess);
}

Encoding assemble(const std::vector<TemplatePiece>& pieces, Sequence& first, Sequence* second,
                  const EncodeOptions& options) {
  Encoding result;
  const auto append = [&](const std::vector<int32_t>& ids, const std::vector<Span>& offsets, int32_t type) {
    result.ids.insert(result.ids.end(), ids.begin(), ids.end());
    result.types.insert(result.types.end(), ids.size(), type);
    if (options.offsets) result.offsets.insert(result.offsets.end(), offsets.begin(), offsets.end());
  };
  for (const TemplatePiece& piece : pieces) {
    if (piece.kind != TemplatePiece::Kind::tokens) {
      const Sequence& text = piece.kind == TemplatePiece::Kind::first ? first : *second;
      append(text.ids, text.offsets, piece.type);
    } else if (options.special_tokens) {
      append(piece.ids, std::vector<Span>(piece.ids.size()), piece.type);
    }
  }
  return result;
}

}  // namespace

Template bert_template(int32_t begin, int32_t separator) {
  using Kind = TemplatePiece::Kind;
  Template result;
  result.single = {{.ids = {begin}}, {.kind = Kind::first}, {.ids = {separator}}};
  result.pair = result.single;
  result.pair.push_back({.kind = Kind::second, .type = 1});
  result.pair.push_back({.type = 1, .ids = {separator}});
  return result;
}

struct Tokenizer::State {
  explicit State(TokenizerParts given) : parts(std::move(given)) {}

  Sequence tokens_of(std::string_view text, bool offsets) const {
    check_text(text);
    Sequence sequence;
    const ScratchPool::Lease scratch(pool);
    Run(parts, *scratch, sequence.ids, offsets ? &sequence.offsets : nullptr).encode(text);
    return sequence;
  }

  void check(int32_t id) const {
    require(id >= 0 && id < parts.vocabulary.size(), ErrorCode::invalid_argument,
            "{} is the id of no token; the vocabulary has those below {}", id, parts.vocabulary.size());
  }

  const TokenizerParts parts;
  mutable ScratchPool pool;
};

Tokenizer::Tokenizer(TokenizerParts parts) : state_(std::make_shared<State>(std::move(parts))) {}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  Sequence first = state_->tokens_of(text, options.offsets);
  const std::vector<TemplatePiece>& pieces = state_->parts.surroundings.single;
  truncate(first, nullptr, options.special_tokens ? added_by(pieces) : 0, options);
  return assemble(pieces, first, nullptr, options);
}

Encoding Tokenizer::encode_pair(std::string_view first_text, std::string_view second_text,
                                const EncodeOptions& options) const {
  Sequence first = state_->tokens_of(first_text, options.offsets);
  Sequence second = state_->tokens_of(second_text, options.offsets);
  const std::vector<TemplatePiece>& pieces = state_->parts.surroundings.pair;
  truncate(first, &second, options.special_tokens ? added_by(pieces) : 0, options);
  return assemble(pieces, first, &second, options);
}

void Tokenizer::append_tokens(std::string_view text, std::vector<int32_t>& ids) const {
  check_text(text);
  const ScratchPool::Lease scratch(state_->pool);
  Run(state_->parts, *scratch, ids, nullptr).encode(text);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::vector<int32_t> kept;
  for (const int32_t id : ids) {
    state_->check(id);
    const bool skipped = skip_special && state_->parts.added.is_special(id);
    if (!skipped && !state_->parts.vocabulary.token(id).empty()) kept.push_back(id);
  }
  return state_->parts.decoder->decode(kept, state_->parts.vocabulary);
}

int64_t Tokenizer::vocabulary_size() const {
  return state_->parts.vocabulary.size();
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  return state_->parts.vocabulary.find(token);
}

std::string_view Tokenizer::token(int32_t id) const {
  state_->check(id);
  return state_->parts.vocabulary.token(id);
}

bool Tokenizer::is_special(int32_t id) const {
  state_->check(id);
  return state_->parts.added.is_special(id);
}

std::string_view Tokenizer::kind() const {
  return state_->parts.model->kind();
}

}  // namespace tessera::text
