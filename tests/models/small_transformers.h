// The networks of tests/golden/transformer.py.
#pragma once

#include <string>
#include <vector>

#include "tessera/models/transformer.h"

namespace tessera::testing {

struct SmallTransformer {
  std::string name;
  models::TransformerConfig config;
};

inline std::vector<SmallTransformer> small_transformers() {
  const models::TransformerConfig post_norm{.vocabulary = 29,
                                            .width = 16,
                                            .encoder_layers = 2,
                                            .decoder_layers = 1,
                                            .heads = 2,
                                            .inner = 24,
                                            .positions = 12,
                                            .dropout = 0};
  models::TransformerConfig pre_norm = post_norm;
  pre_norm.pre_norm = true;
  return {{"post_norm", post_norm}, {"pre_norm", pre_norm}};
}

}  // namespace tessera::testing
