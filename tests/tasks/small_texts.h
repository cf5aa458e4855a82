// A tokenizer of a few words, and a small network for its tokens.
#pragma once

#include "tessera/tasks/fine_tuning.h"
#include "tessera/text/tokenizer.h"
#include "tessera/train/trainer.h"

namespace tessera::testing {

// [PAD] is 0, [UNK] 1, [CLS] 2, [SEP] 3; "cats" are two tokens.
inline text::Tokenizer word_tokenizer() {
  return text::parse_word_pieces(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\ncat\n##s\ndog\nred\nblue\nruns\nsits\nwho\nwhat\n.\n?\n", "vocab.txt");
}

inline tasks::FineTuningOptions small_fine_tuning(std::vector<std::string> labels, int64_t tokens = 10) {
  return {.network = {.vocabulary = word_tokenizer().vocabulary_size(),
                      .width = 32,
                      .layers = 1,
                      .heads = 2,
                      .inner = 64,
                      .positions = 16,
                      .dropout = 0,
                      .deviation = 0.1,
                      .labels = std::move(labels)},
          .tokens = tokens};
}

inline train::TrainerOptions small_fine_tuner() {
  return {.optimizer = optim::adamw({.learning_rate = 5e-3}), .device = Device::cpu()};
}

}  // namespace tessera::testing
