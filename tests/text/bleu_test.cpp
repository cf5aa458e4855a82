// BLEU beside sacreBLEU's (tests/text/golden/bleu.py).
#include "tessera/text/bleu.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/expect_error.h"
#include "test_folder.h"

namespace tessera::testing {
namespace {

nlohmann::json golden() {
  std::ifstream stream(std::string(TESSERA_TEST_FOLDER) + "/golden/bleu.json");
  return nlohmann::json::parse(stream);
}

TEST(Bleu, TakesTextsApartAsSacrebleuDoes) {
  const nlohmann::json lines = golden().at("words");
  EXPECT_GT(lines.size(), 20U);
  for (const nlohmann::json& line : lines) {
    EXPECT_EQ(text::bleu_words(line.at(0).get<std::string>()), line.at(1).get<std::vector<std::string>>())
        << line.at(0);
  }
}

TEST(Bleu, ScoresCorporaAsSacrebleuDoes) {
  const nlohmann::json corpora = golden().at("corpora");
  for (const auto& [name, corpus] : corpora.items()) {
    text::BleuCounts counts, first_half, all;
    for (size_t i = 0; i < corpus.at("said").size(); ++i) {
      const auto said = corpus.at("said")[i].get<std::string>(),
                 right = corpus.at("right")[i].get<std::string>();
      counts.add(said, right);
      (i % 2 == 0 ? first_half : all).add(said, right);
    }
    // A rounding of each of four logarithms, of an exponential.
    EXPECT_NEAR(counts.score(), corpus.at("score").get<double>(), 1e-10) << name;
    all.add(text::BleuCounts::of_numbers(first_half.numbers()));
    EXPECT_EQ(all.score(), counts.score()) << name;
  }
}

TEST(Bleu, RefusesOtherNumbers) {
  EXPECT_EQ(text::BleuCounts().score(), 0);
  EXPECT_ERROR(text::BleuCounts::of_numbers({1, 2}), ErrorCode::invalid_argument, "2 counts of BLEU");
}

}  // namespace
}  // namespace tessera::testing
