#include <algorithm>
#include <array>

#include "tessera/base/error.h"

#include "text/byte_alphabet.h"
#include "text/byte_trie.h"
#include "text/models.h"
#include "text/pair_table.h"
#include "text/unicode.h"

namespace tessera::text {
namespace {

using Join = JoinMemory::Join;
using Symbol = JoinMemory::Symbol;

// Whether `a` is joined after `b`: the merge that was learned first goes first, and of equal ones the left
// one.
bool is_later(const Join& a, const Join& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

class BytePairModel : public Model {
 public:
  BytePairModel(const Vocabulary& vocabulary, const Merges& merges, const BytePairSettings& settings,
                std::string_view file);

  std::string_view kind() const override { return "byte_pairs"; }

  void tokenize(std::string_view word, std::vector<Piece>& pieces, JoinMemory& memory) const override {
    const auto length = static_cast<uint32_t>(word.size());
    if (whole_words_) {
      const ByteTrie::Match match = words_.longest(word);
      if (match.value >= 0 && match.length == word.size()) return pieces.push_back({match.value, 0, length});
    }
    start(word, memory);
    join(memory);
    for (const Symbol& symbol : memory.symbols) {
      if (symbol.end > symbol.begin)
        pieces.push_back({static_cast<int32_t>(symbol.id), symbol.begin, symbol.end});
    }
  }

 private:
  // One symbol for each byte that has one.
  void start(std::string_view word, JoinMemory& memory) const {
    memory.symbols.clear();
    memory.joins.clear();
    for (uint32_t at = 0; at < word.size(); ++at) {
      const int32_t id = bytes_[static_cast<uint8_t>(word[at])];
      if (id < 0) continue;
      const auto place = static_cast<int32_t>(memory.symbols.size());
      memory.symbols.push_back({static_cast<uint32_t>(id), at, at + 1, place - 1, place + 1});
    }
    if (memory.symbols.empty()) return;
    memory.symbols.back().next = -1;
    for (uint32_t left = 0; left + 1 < memory.symbols.size(); ++left) propose(left, memory);
    std::make_heap(memory.joins.begin(), memory.joins.end(), is_later);
  }

  // The join of a symbol with the next one, where there is one; whether it was added.
  bool propose(uint32_t left, JoinMemory& memory) const {
    const Symbol& symbol = memory.symbols[left];
    const uint64_t found = merges_.find(symbol.id, memory.symbols[static_cast<size_t>(symbol.next)].id);
    if (found == PairTable::kNone) return false;
    memory.joins.push_back({static_cast<uint32_t>(found >> 32), left, static_cast<uint32_t>(found)});
    return true;
  }

  void propose_later(uint32_t left, JoinMemory& memory) const {
    if (propose(left, memory)) std::push_heap(memory.joins.begin(), memory.joins.end(), is_later);
  }

  void join(JoinMemory& memory) const {
    std::vector<Symbol>& symbols = memory.symbols;
    while (!memory.joins.empty()) {
      std::pop_heap(memory.joins.begin(), memory.joins.end(), is_later);
      const Join best = memory.joins.back();
      memory.joins.pop_back();
      Symbol& left = symbols[best.left];
      if (left.end == left.begin || left.next < 0) continue;
      Symbol& right = symbols[static_cast<size_t>(left.next)];
      // Either may have become another symbol since.
      const uint64_t found = merges_.find(left.id, right.id);
      if (found == PairTable::kNone || static_cast<uint32_t>(found) != best.made) continue;
      left.id = best.made;
      left.end = right.end;
      right.begin = right.end;
      left.next = right.next;
      if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = static_cast<int32_t>(best.left);
      if (left.previous >= 0) propose_later(static_cast<uint32_t>(left.previous), memory);
      if (left.next >= 0) propose_later(best.left, memory);
    }
  }

  std::array<int32_t, 256> bytes_{};  // ids, -1: none
  PairTable merges_;                  // rank and id of what is made, by the ids of both
  ByteTrie words_;
  bool whole_words_;
};

BytePairModel::BytePairModel(const Vocabulary& vocabulary, const Merges& merges,
                             const BytePairSettings& settings, std::string_view file)
    : whole_words_(settings.whole_words) {
  int32_t unknown = -1;
  if (!settings.unknown.empty()) {
    const std::optional<int32_t> found = vocabulary.find(settings.unknown);
    require(found.has_value(), ErrorCode::invalid_file,
            "{}: the unknown token '{}' is none of the vocabulary", file, settings.unknown);
    unknown = *found;
  }
  for (size_t byte = 0; byte < bytes_.size(); ++byte) {
    const char value = static_cast<char>(byte);
    bytes_[byte] = vocabulary.find(in_alphabet({&value, 1})).value_or(unknown);
  }
  const auto id_of = [&](std::string_view token, size_t number) {
    const std::optional<int32_t> id = vocabulary.find(token);
    require(id.has_value(), ErrorCode::invalid_file,
            "{}: merge {} is of '{}', which is none of the vocabulary", file, number + 1,
            well_formed(token.substr(0, 80)));
    return static_cast<uint32_t>(*id);
  };
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const uint32_t left_id = id_of(left, rank);
    const uint32_t right_id = id_of(right, rank);
    merges_.assign(left_id, right_id, rank << 32 | id_of(left + right, rank));
  }
  for (const std::string& token : vocabulary.tokens()) {
    const std::optional<std::string> bytes = from_alphabet(token);
    if (whole_words_ && bytes && !bytes->empty())
      words_.insert(*bytes, vocabulary.find(token).value_or(unknown));
  }
}

}  // namespace

std::unique_ptr<Model> byte_pair_model(const Vocabulary& vocabulary, const Merges& merges,
                                       const BytePairSettings& settings, std::string_view file) {
  return std::make_unique<BytePairModel>(vocabulary, merges, settings, file);
}

}  // namespace tessera::text
