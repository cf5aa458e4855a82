// Fine tuning of BERT: what its tasks have in common.
#pragma once

#include <cstdint>

#include "tessera/models/bert.h"

namespace tessera::tasks {

struct FineTuningOptions {
  models::BertConfig network = models::bert_tiny();
  int64_t tokens = 128;  // of a row, those around texts included
};

}  // namespace tessera::tasks
