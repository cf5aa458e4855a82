#include "tasks/text_rows.h"

namespace tessera::tasks {

TextRows::TextRows(const text::Tokenizer& tokenizer, int64_t tokens)
    : tokens_(tokens), padding_(padding_of(tokenizer)) {}

void TextRows::add(const text::Encoding& row) {
  lengths_.push_back(static_cast<int32_t>(row.ids.size()));
  ids_.insert(ids_.end(), row.ids.begin(), row.ids.end());
  segments_.insert(segments_.end(), row.types.begin(), row.types.end());
  const auto end = static_cast<size_t>(size() * tokens_);
  ids_.resize(end, padding_);
  segments_.resize(end, 0);
}

Feeds TextRows::feeds() const {
  return {{"tokens", Tensor::from<int32_t>({size(), tokens_}, ids_)},
          {"segments", Tensor::from<int32_t>({size(), tokens_}, segments_)},
          {"lengths", Tensor::from<int32_t>({size()}, lengths_)}};
}

int32_t padding_of(const text::Tokenizer& tokenizer) {
  for (const char* padding : {"[PAD]", "<pad>"}) {
    if (const auto id = tokenizer.id_of(padding)) return *id;
  }
  return 0;
}

}  // namespace tessera::tasks
