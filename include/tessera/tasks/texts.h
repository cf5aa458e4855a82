// Kinds of text by name, with their options: what recipes of networks that read tokens choose from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/base/registry.h"
#include "tessera/data/rows.h"
#include "tessera/data/source.h"
#include "tessera/data/token_text.h"

namespace tessera::tasks {

// Tokens with a meaning of their own, where there are such.
struct SpecialTokens {
  std::optional<int32_t> begin = {};      // of a text
  std::optional<int32_t> separator = {};  // of two texts
  std::optional<int32_t> mask = {};       // a gap
};

// What tokens stand for.
struct TextCoding {
  std::vector<int32_t> start;  // what a text without a prompt goes on from; empty: it needs one
  std::function<std::vector<int32_t>(std::string_view text)> tokens;
  std::function<std::string(std::span<const int32_t> tokens)> text;
};

// Rows of tokens to train on and others to test on.
class Texts {
 public:
  virtual ~Texts() = default;

  virtual int64_t vocabulary() const = 0;  // tokens are below it
  virtual SpecialTokens special() const { return {}; }
  // Batches of "tokens", int32 [batch, data.tokens], as the recipe says.
  virtual std::shared_ptr<const data::Source> training() const = 0;
  virtual std::shared_ptr<const data::Source> test() const = 0;
  // int32 [rows, data.tokens]: rows that are tested on, no more than people look at.
  virtual Tensor rows_to_look_at() const = 0;
  // All of it, for those who read it from one end to the other. Throws Error(unsupported) where it is rows.
  virtual std::shared_ptr<const data::TokenText> long_text() const;
  virtual TextCoding coding() const = 0;
  // How people read one token among others.
  virtual std::function<std::string(int64_t token)> shown() const = 0;
};

// Of rows in memory, int32 [rows, data.tokens], made when they are first asked for. Those that are tested on
// are data.test_share of them.
class TextsInMemory : public Texts {
 public:
  TextsInMemory(const Options& settings, std::function<Tensor()> rows)
      : settings_(settings), rows_(std::move(rows)) {}

  std::shared_ptr<const data::Source> training() const override;
  std::shared_ptr<const data::Source> test() const override;
  Tensor rows_to_look_at() const override;

 private:
  const data::HeldOut& held_out() const;

  Options settings_;
  std::function<Tensor()> rows_;
  mutable std::once_flag is_made_;  // what follows
  mutable data::HeldOut held_out_;
};

struct TextDescription {
  std::string name;
  std::string documentation;  // one line
  std::vector<Option> options;
  // `settings` hold values by section and key: "data.path", "train.batch". Throws Error(io) or
  // Error(invalid_file) naming what is missing or broken.
  std::function<std::shared_ptr<const Texts>(const Options& settings)> open;
  // What cannot go together, of the section "data" alone; empty: nothing.
  std::function<std::vector<Contradiction>(const Options& options)> check = {};
};

Registry<TextDescription>& text_kinds();

struct TextRegistration {
  explicit TextRegistration(TextDescription description) { text_kinds().add(std::move(description)); }
};

}  // namespace tessera::tasks
