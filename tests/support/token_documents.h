// Token shards of documents of given lengths.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/data/token_shards.h"

#include "support/temporary_folder.h"

namespace tessera::testing {

// In two shards. Token i of document d is token(d, i).
template <typename Token>
std::shared_ptr<const data::TokenSet> token_documents(const TemporaryFolder& folder,
                                                      const std::vector<int>& lengths,
                                                      const data::TokenSetHeader& header,
                                                      const Token& token) {
  std::vector<data::TokenSetEntry> entries;
  for (size_t shard = 0; shard < 2; ++shard) {
    data::TokenDocuments documents;
    for (size_t d = shard * lengths.size() / 2; d < (shard + 1) * lengths.size() / 2; ++d) {
      for (int i = 0; i < lengths[d]; ++i) documents.tokens.push_back(token(static_cast<int>(d), i));
      documents.ends.push_back(std::ssize(documents.tokens));
    }
    const std::string name(1, static_cast<char>('a' + shard));
    data::write_token_shard(folder / name, documents, {.vocabulary = header.vocabulary});
    entries.push_back({name, std::ssize(documents.ends), std::ssize(documents.tokens)});
  }
  data::write_token_set(folder.path(), header, entries);
  return std::make_shared<const data::TokenSet>(folder.path());
}

}  // namespace tessera::testing
