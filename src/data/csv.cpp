#include "tessera/data/csv.h"

#include <algorithm>
#include <limits>

#include <csv.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/text.h"

#include "data/column_builder.h"

namespace tessera::data {
namespace {

// Takes cells one after the other.
class Reader {
 public:
  Reader(const std::vector<std::string>& columns, std::string_view name, char separator)
      : columns_(columns), name_(name), result_(columns.begin(), columns.end()) {
    require(csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) == 0, ErrorCode::out_of_memory,
            "{}: the reader of tables could not be started", name);
    csv_set_delim(&parser_, static_cast<unsigned char>(separator));
    // No text holds a zero: a quote between tabs is a character like any other.
    if (separator == '\t') csv_set_quote(&parser_, '\0');
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { csv_free(&parser_); }

  std::vector<TextColumn> read(std::string_view text) {
    const size_t taken = csv_parse(&parser_, text.data(), text.size(), cell, row, this);
    if (taken != text.size() || csv_fini(&parser_, cell, row, this) != 0) {
      const int error = csv_error(&parser_);
      require(error != CSV_ENOMEM, ErrorCode::out_of_memory, "{}: a cell of row {} does not fit into memory",
              name_, rows_ + 1);
      refuse(rows_ + 1, csv_strerror(error));
    }
    if (!failure_.empty()) throw Error(failure_code_, failure_);
    require(header_read_, ErrorCode::invalid_file, "{}: there is no first line that names columns", name_);
    return columns_of(std::move(result_));
  }

 private:
  static constexpr size_t kUnread = std::numeric_limits<size_t>::max();

  // The parser is C: nothing may be thrown through it, so that the first failure waits.
  static void cell(void* contents, size_t size, void* self) {
    static_cast<Reader*>(self)->guarded([&](Reader& reader) {
      reader.take({static_cast<const char*>(contents), contents == nullptr ? 0 : size});
    });
  }
  static void row(int, void* self) {
    static_cast<Reader*>(self)->guarded([](Reader& reader) { reader.end_row(); });
  }

  template <typename Function>
  void guarded(const Function& function) {
    if (!failure_.empty()) return;
    try {
      function(*this);
    } catch (const Error& error) {
      failure_ = error.what();
      failure_code_ = error.code();
    } catch (const std::exception& error) {
      failure_ = fmt::format("{}: {}", name_, error.what());
      failure_code_ = ErrorCode::out_of_memory;
    }
  }

  void take(std::string_view text) {
    if (!header_read_) {
      header_.emplace_back(text);
      return;
    }
    if (at_ < places_.size() && places_[at_] != kUnread) {
      result_[places_[at_]].add(text);
    }
    ++at_;
  }

  void end_row() {
    ++rows_;
    if (!header_read_) {
      header_read_ = true;
      find_columns();
      return;
    }
    if (at_ != places_.size())
      refuse(rows_, fmt::format("{} cells, where the first line names {}", at_, places_.size()));
    at_ = 0;
  }

  void find_columns() {
    places_.assign(header_.size(), kUnread);
    for (size_t column = 0; column < columns_.size(); ++column) {
      const auto found = std::find(header_.begin(), header_.end(), columns_[column]);
      if (found == header_.end()) {
        fail(ErrorCode::invalid_argument, "{}: there is no column '{}'{}", name_, columns_[column],
             did_you_mean(columns_[column], header_));
      }
      size_t& place = places_[static_cast<size_t>(found - header_.begin())];
      require(place == kUnread, ErrorCode::invalid_argument, "{}: the column '{}' is asked for twice", name_,
              columns_[column]);
      place = column;
    }
  }

  [[noreturn]] void refuse(int64_t row, std::string_view what) const {
    fail(ErrorCode::invalid_file, "{}: row {}: {}", name_, row, what);
  }

  const std::vector<std::string>& columns_;
  const std::string_view name_;
  csv_parser parser_;
  std::vector<std::string> header_;
  bool header_read_ = false;
  std::vector<size_t> places_;  // of a cell in a row -> the column asked for, or kUnread
  size_t at_ = 0;               // cells of this row
  int64_t rows_ = 0;            // that ended, the first line among them
  std::vector<ColumnBuilder> result_;
  std::string failure_;
  ErrorCode failure_code_ = ErrorCode::invalid_file;
};

}  // namespace

std::vector<double> TextColumn::numbers() const {
  std::vector<double> distinct;
  for (const std::string& text : values)
    distinct.push_back(parse_real(text).value_or(std::numeric_limits<double>::quiet_NaN()));
  std::vector<double> result;
  for (const int32_t code : codes) result.push_back(distinct[static_cast<size_t>(code)]);
  return result;
}

std::vector<TextColumn> parse_csv(std::string_view text, const std::vector<std::string>& columns,
                                  std::string_view name, char separator) {
  return Reader(columns, name, separator).read(text);
}

std::vector<TextColumn> read_csv(const std::filesystem::path& path, const std::vector<std::string>& columns,
                                 char separator) {
  return parse_csv(read_text_file(path), columns, path.string(), separator);
}

}  // namespace tessera::data
