// The networks of tests/golden/transformer_xl.py.
#pragma once

#include <string>
#include <vector>

#include "tessera/models/transformer_xl.h"

namespace tessera::testing {

struct SmallTransformerXl {
  std::string name;
  models::TransformerXlConfig config;
};

inline std::vector<SmallTransformerXl> small_transformer_xls() {
  const models::TransformerXlConfig plain{
      .vocabulary = {.tokens = 29}, .width = 16, .layers = 2, .heads = 2, .inner = 24, .dropout = 0};
  models::TransformerXlConfig adaptive = plain, of_one_width = plain, clamped = plain;
  adaptive.vocabulary = {.tokens = 29, .cutoffs = {8, 17}, .narrowing = 2};
  of_one_width.vocabulary = {.tokens = 29, .cutoffs = {11}, .narrowing = 1};
  clamped.farthest = 6;
  return {{"plain", plain}, {"adaptive", adaptive}, {"of_one_width", of_one_width}, {"clamped", clamped}};
}

}  // namespace tessera::testing
