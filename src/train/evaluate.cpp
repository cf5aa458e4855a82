#include "tessera/train/evaluate.h"

namespace tessera::train {

Evaluation evaluate(Executable& executable, const data::Loader& loader) {
  Evaluation result;
  double loss = 0;
  int64_t correct = 0;
  data::Epoch epoch = loader.epoch(0);
  while (const std::optional<data::Batch> batch = epoch.next()) {
    const auto outputs = executable.run({{"images", batch->images}, {"labels", batch->labels}});
    const auto losses = outputs.at("loss").data<float>();
    const auto predictions = outputs.at("prediction").data<int32_t>();
    const auto confidences = outputs.at("confidence").data<float>();
    const auto labels = batch->labels.data<int32_t>();
    for (size_t row = 0; row < static_cast<size_t>(batch->valid); ++row) {
      result.predictions.push_back(
          {batch->indices[row], labels[row], predictions[row], confidences[row], losses[row]});
      loss += losses[row];
      correct += labels[row] == predictions[row] ? 1 : 0;
    }
  }
  const auto count = static_cast<double>(result.predictions.size());
  if (count > 0) {
    result.loss = loss / count;
    result.accuracy = static_cast<double>(correct) / count;
  }
  return result;
}

}  // namespace tessera::train
