// What a run that has ended says of itself.
#pragma once

#include <string>
#include <vector>

#include "tessera/data/source.h"
#include "tessera/recipe/recipe.h"
#include "tessera/report/report.h"
#include "tessera/train/trainer.h"
#include "tessera/train/workload.h"

namespace tessera::recipe {

report::RunSummary summarize(const train::Trainer& trainer, const train::FitResult& result);

// What training and test had to say of their data; null: there is no test.
std::vector<std::string> remarks_on(const data::Source& training, const data::Source* test);

report::Report make_report(const Recipe& recipe, const train::Workload& workload,
                           const report::RunSummary& summary, const train::FitResult& result,
                           const std::vector<std::string>& remarks);

}  // namespace tessera::recipe
