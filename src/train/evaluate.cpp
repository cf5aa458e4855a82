#include "tessera/train/evaluate.h"

namespace tessera::train {

Evaluation evaluate(Executable& executable, const data::Loader& loader, const std::atomic<bool>* stop) {
  Evaluation result;
  double loss = 0;
  int64_t correct = 0;
  const auto receive = [&](const data::Batch& batch) {
    const auto outputs = executable.receive();
    const auto losses = outputs.at("loss").data<float>();
    const auto predictions = outputs.at("prediction").data<int32_t>();
    const auto confidences = outputs.at("confidence").data<float>();
    const auto labels = batch.labels.data<int32_t>();
    for (size_t row = 0; row < static_cast<size_t>(batch.valid); ++row) {
      result.predictions.push_back(
          {batch.indices[row], labels[row], predictions[row], confidences[row], losses[row]});
      loss += losses[row];
      correct += labels[row] == predictions[row] ? 1 : 0;
    }
  };
  // One batch ahead, so that a device has work while the host reads.
  data::Epoch epoch = loader.epoch(0);
  std::optional<data::Batch> under_way;
  while (std::optional<data::Batch> batch = epoch.next()) {
    executable.submit({{"images", batch->images}, {"labels", batch->labels}});
    if (under_way.has_value()) receive(*under_way);
    under_way = std::move(batch);
    if (stop != nullptr && stop->load()) break;
  }
  if (under_way.has_value()) receive(*under_way);
  const auto count = static_cast<double>(result.predictions.size());
  if (count > 0) {
    result.loss = loss / count;
    result.accuracy = static_cast<double>(correct) / count;
  }
  return result;
}

}  // namespace tessera::train
