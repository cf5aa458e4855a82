// The problems that attention's kernels are tested by.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "device_cuda/attention_case.h"

namespace tessera::testing {

// Whole tiles and broken ones, more queries than keys and fewer, one query alone, and rows of no whole
// access, which cuDNN does not take.
inline std::vector<AttentionCase> attention_cases() {
  std::vector<AttentionCase> result;
  for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32}) {
    for (const bool causal : {false, true}) {
      const auto add = [&](AttentionCase own) {
        own.type = type;
        own.causal = causal;
        result.push_back(own);
      };
      add({});
      add({.queries = 130, .keys = 70, .width = 40, .value_width = 40});
      add({.batch = 1, .queries = 37, .keys = 200});
      add({.heads = 2, .queries = 1, .keys = 90, .width = 128, .value_width = 128});
      add({.queries = 65, .keys = 65, .width = 36, .value_width = 20});
      add({.heads = 2, .queries = 96, .keys = 77, .bias = true});
      // What a block holds one head of, and several; warps without queries, and without keys.
      add({.batch = 3, .heads = 5, .queries = 32, .keys = 32});
      add({.heads = 7, .queries = 16, .keys = 9, .width = 16, .value_width = 16, .bias = true});
      add({.queries = 20, .keys = 100, .width = 48, .value_width = 48});
      add({.queries = 77, .keys = 50, .width = 128, .value_width = 128});
    }
  }
  return result;
}

// Blocks that share a head's keys, also with fewer for the last and in several steps, and one by itself.
inline std::vector<AttentionCase> few_query_cases() {
  std::vector<AttentionCase> result;
  for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32}) {
    result.push_back({.batch = 1, .heads = 4, .queries = 1, .keys = 136, .bias = true, .type = type});
    result.push_back({.heads = 2, .queries = 3, .keys = 130, .width = 128, .value_width = 128, .type = type});
    result.push_back({.queries = 8, .keys = 5, .width = 32, .value_width = 32, .bias = true, .type = type});
    result.push_back({.batch = 3, .heads = 2, .queries = 4, .keys = 300, .type = type, .lengths = true});
    result.push_back(
        {.batch = 2, .heads = 6, .queries = 2, .keys = 140, .bias = true, .type = type, .key_heads = 2});
  }
  return result;
}

// With dropout: whole blocks and broken ones, of keys and of queries, texts of several blocks, and keys of
// which four do not stand together, which products and clusters take.
inline std::vector<AttentionCase> dropout_cases() {
  std::vector<AttentionCase> result;
  for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32}) {
    const auto add = [&](AttentionCase own) {
      own.type = type;
      own.causal = result.size() % 2 == 1;  // the other way for the next type
      result.push_back(own);
    };
    add({.heads = 2, .dropout = 0.1});
    add({.batch = 1, .queries = 200, .keys = 260, .width = 32, .value_width = 32, .dropout = 0.5});
    add({.heads = 2,
         .queries = 37,
         .keys = 68,
         .width = 128,
         .value_width = 128,
         .bias = true,
         .dropout = 0.2});
    add({.queries = 100, .keys = 12, .width = 16, .value_width = 16, .bias = true, .dropout = 0.1});
    add({.batch = 1, .queries = 20, .keys = 33, .dropout = 0.3});
  }
  return result;
}

// Of keys by lengths: whole blocks of them are hidden, and parts of one. What takes fp32 knows no blocks, and
// of a single key of many queries the gradients are so large that their bounds hide the roundings of the
// others.
inline std::vector<AttentionCase> length_cases() {
  std::vector<AttentionCase> result;
  for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32}) {
    for (const bool causal : {false, true}) {
      const auto add = [&](AttentionCase own) {
        own.type = type;
        own.causal = causal;
        own.lengths = true;
        result.push_back(own);
      };
      add({.batch = 4});
      add({.batch = 5, .queries = 37, .keys = 20, .width = 32, .value_width = 32, .bias = true});
      add({.batch = 3, .queries = 20, .keys = 33, .dropout = 0.3});
      if (type == DataType::fp32) continue;
      add({.batch = 3, .heads = 2, .queries = 130, .keys = 200});
      add({.batch = 3, .queries = 37, .keys = 300, .width = 40, .value_width = 40});
      add({.batch = 3, .heads = 2, .queries = 200, .keys = 260, .dropout = 0.25});
    }
  }
  return result;
}

// Of keys that several heads of queries share: by pairs, by all, and in between.
inline std::vector<AttentionCase> shared_key_cases() {
  std::vector<AttentionCase> result;
  for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32}) {
    for (const bool causal : {false, true}) {
      const auto add = [&](AttentionCase own) {
        own.type = type;
        own.causal = causal;
        result.push_back(own);
      };
      add({.heads = 4, .key_heads = 2});
      add({.heads = 6, .queries = 130, .keys = 70, .width = 40, .value_width = 40, .key_heads = 1});
      add({.heads = 4, .queries = 96, .keys = 77, .bias = true, .key_heads = 2});
      add({.heads = 4, .queries = 37, .keys = 68, .dropout = 0.2, .key_heads = 2});
      if (type == DataType::fp32) continue;  // as above
      add({.batch = 3, .heads = 6, .queries = 37, .keys = 300, .lengths = true, .key_heads = 2});
      add({.batch = 3,
           .heads = 4,
           .queries = 32,
           .keys = 20,
           .width = 32,
           .value_width = 32,
           .bias = true,
           .lengths = true,
           .key_heads = 1});
    }
  }
  return result;
}

inline std::string name_of(const AttentionCase& own) {
  return fmt::format("{}_{}x{}_{}x{}_{}x{}{}{}{}{}{}", to_string(own.type), own.batch, own.heads, own.queries,
                     own.keys, own.width, own.value_width, own.causal ? "_causal" : "",
                     own.bias ? "_bias" : "", own.dropout > 0 ? "_dropout" : "",
                     own.lengths ? "_lengths" : "",
                     own.shares_keys() ? fmt::format("_of_{}", own.key_heads) : "");
}

}  // namespace tessera::testing
