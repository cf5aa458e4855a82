// A column of text, cell by cell.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/data/csv.h"

namespace tessera::data {

class ColumnBuilder {
 public:
  explicit ColumnBuilder(std::string name) { column_.name = std::move(name); }

  void add(std::string_view text) {
    auto known = codes_.find(text);
    if (known == codes_.end()) {
      known = codes_.emplace(text, static_cast<int32_t>(column_.values.size())).first;
      column_.values.emplace_back(text);
    }
    column_.codes.push_back(known->second);
  }

  const TextColumn& so_far() const { return column_; }
  TextColumn column() && { return std::move(column_); }

 private:
  // Looks for a view without a copy of it.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  TextColumn column_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> codes_;
};

inline std::vector<TextColumn> columns_of(std::vector<ColumnBuilder> builders) {
  std::vector<TextColumn> columns;
  for (ColumnBuilder& builder : builders) columns.push_back(std::move(builder).column());
  return columns;
}

}  // namespace tessera::data
