// Parquet files, by Apache Arrow's reader. Its threads are not started: whoever reads has threads of their
// own.
#include <algorithm>
#include <filesystem>
#include <utility>

#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/metadata.h>
#include <tessera/interface_version.h>

#include "tessera/data/parquet_plugin.h"

#include "parquet/arrow_cells.h"
#include "parquet/arrow_faults.h"

namespace tessera::data {
namespace {

constexpr int64_t kRowsAtOnce = 4096;

std::shared_ptr<arrow::io::RandomAccessFile> open(const ParquetRequest& request) {
  if (request.path.empty()) {
    return std::make_shared<arrow::io::BufferReader>(std::make_shared<arrow::Buffer>(
        reinterpret_cast<const uint8_t*>(request.bytes.data()), static_cast<int64_t>(request.bytes.size())));
  }
  const auto file = arrow::io::ReadableFile::Open(request.path.string());
  require(file.ok(), ErrorCode::io, "{}", file.status().message());
  return *file;
}

class ArrowParquetFile : public ParquetFile {
 public:
  explicit ArrowParquetFile(const ParquetRequest& request)
      : name_(request.name), pool_(arrow::system_memory_pool(), request.most_bytes) {
    const std::shared_ptr<arrow::io::RandomAccessFile> file = open(request);
    reader_ = value_of(name_, [&]() -> arrow::Result<std::unique_ptr<parquet::arrow::FileReader>> {
      parquet::ReaderProperties properties(&pool_);
      properties.enable_buffered_stream();
      properties.set_page_checksum_verification(true);
      parquet::ArrowReaderProperties columns(/*use_threads=*/false);
      columns.set_batch_size(kRowsAtOnce);
      columns.set_pre_buffer(false);
      parquet::arrow::FileReaderBuilder builder;
      ARROW_RETURN_NOT_OK(builder.Open(file, properties));
      return builder.memory_pool(&pool_)->properties(columns)->Build();
    });
    for (const parquet::arrow::SchemaField& field : reader_->manifest().schema_fields) {
      const arrow::DataType& type = *field.field->type();
      columns_.push_back({.name = field.field->name(),
                          .type = type.ToString(),
                          .is_readable = field.is_leaf() && has_cells(type),
                          .is_text = is_text(type)});
      leaves_.push_back(field.column_index);
    }
  }

  const std::vector<ParquetColumn>& columns() const override { return columns_; }
  int64_t groups() const override { return reader_->num_row_groups(); }

  int64_t bytes(int64_t group, size_t column) const override {
    return with_faults_of(name_, [&] {
      const auto metadata = reader_->parquet_reader()->metadata()->RowGroup(static_cast<int>(group));
      return std::max<int64_t>(metadata->ColumnChunk(leaves_[column])->total_uncompressed_size(), 0);
    });
  }

  void visit(int64_t group, size_t column, const CellVisitor& visitor) override {
    const auto batches = value_of(
        name_, [&] { return reader_->GetRecordBatchReader({static_cast<int>(group)}, {leaves_[column]}); });
    while (const std::shared_ptr<arrow::RecordBatch> batch =
               value_of(name_, [&] { return batches->Next(); })) {
      const arrow::Status status = with_faults_of(name_, [&] { return batch->Validate(); });
      if (!status.ok()) fail_as(name_, status);
      visit_cells(*batch->column(0), name_, visitor);
    }
  }

 private:
  std::string name_;
  arrow::CappedMemoryPool pool_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;  // takes memory of the pool
  std::vector<ParquetColumn> columns_;
  std::vector<int> leaves_;  // of each column: its number among those that are stored, or -1
};

std::unique_ptr<ParquetFile> create(const ParquetRequest& request) {
  return std::make_unique<ArrowParquetFile>(request);
}

}  // namespace
}  // namespace tessera::data

extern "C" {
extern tessera::data::ParquetPlugin tessera_parquet;
tessera::data::ParquetPlugin tessera_parquet = {TESSERA_INTERFACE_VERSION, tessera::data::create};
}
