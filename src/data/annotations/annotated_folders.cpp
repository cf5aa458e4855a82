// The folders of COCO and VOC: which of their files belong to which part of the data.
#include <algorithm>
#include <system_error>

#include "tessera/base/file.h"
#include "tessera/base/text.h"

#include "data/annotations/reading.h"
#include "data/annotations/voc_masks.h"
#include "data/sample_files.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInstances = "instances";
constexpr uint64_t kLargestInstances = uint64_t{1} << 32;  // bytes
constexpr uint64_t kLargestList = uint64_t{1} << 28;
constexpr uint64_t kLargestXml = uint64_t{1} << 26;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// In the order of their names.
std::vector<fs::path> files_ending(const fs::path& folder, std::string_view ending) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ending) files.push_back(entry.path());
  require(!error, ErrorCode::io, "{}: {}", folder.string(), error.message());
  std::ranges::sort(files);
  return files;
}

std::vector<fs::path> instance_files(const fs::path& folder) {
  std::vector<fs::path> files = files_ending(folder / "annotations", ".json");
  std::erase_if(files,
                [](const fs::path& file) { return !file.filename().string().starts_with(kInstances); });
  return files;
}

// "train2017" of "instances_train2017.json".
std::string part_name(const fs::path& file) {
  const std::string name = file.stem().string();
  return name.size() > kInstances.size() ? name.substr(kInstances.size() + 1) : "";
}

bool is_of(std::string_view part, Split split) {
  if (split == Split::train) return part.starts_with("train");
  return std::ranges::any_of(kTestFolders, [&](const char* name) { return part.starts_with(name); });
}

std::vector<fs::path> instance_files(const fs::path& folder, Split split) {
  std::vector<fs::path> files = instance_files(folder);
  std::erase_if(files, [&](const fs::path& file) { return !is_of(part_name(file), split); });
  return files;
}

bool has_coco_part(const fs::path& folder, Split split) {
  return !instance_files(folder, split).empty();
}

bool is_coco(const fs::path& folder) {
  return is_folder(folder / "annotations") && !instance_files(folder).empty();
}

fs::path image_folder_of(const fs::path& folder, const std::string& part) {
  for (const fs::path& images : {folder / part, folder / "images" / part, folder / "images"})
    if (images != folder / "" && is_folder(images)) return images;
  return folder;
}

// Those of the split where the data has no parts of its own.
void hold_out_images(Annotations& annotations, const SplitOptions& split, const std::string& name) {
  annotations.images = part_of(annotations.images, split, name, [](const AnnotatedImage&) { return 0; });
}

fs::path list_folder(const fs::path& folder) {
  return folder / "ImageSets" / "Main";
}

// The list of the split's images; empty: there is none.
fs::path voc_list(const fs::path& folder, Split split) {
  std::error_code ignored;
  for (const char* part : kTestFolders) {
    const char* const name = split == Split::train ? "train" : part;
    const fs::path list = list_folder(folder) / (std::string(name) + ".txt");
    if (fs::exists(list, ignored)) return list;
  }
  return {};
}

bool has_voc_part(const fs::path& folder, Split split) {
  return !voc_list(folder, split).empty();
}

bool is_voc(const fs::path& folder) {
  return is_folder(folder / "Annotations") && is_folder(folder / "JPEGImages");
}

// The annotations' files that a list names by the first word of each line.
std::vector<fs::path> listed_files(const fs::path& folder, const fs::path& list) {
  std::vector<fs::path> files;
  for (const std::string& line : lines_of(read_text_file(list, kLargestList))) {
    const auto end = std::ranges::find_if(line, is_space);
    const std::string name(line.begin(), end);
    if (name.empty()) continue;
    require(stays_below(name), ErrorCode::invalid_file, "{}: '{}' leads out of the folder", list.string(),
            name);
    files.push_back(folder / "Annotations" / (name + ".xml"));
  }
  return files;
}

// Where the image has some.
void add_voc_masks(const fs::path& folder, AnnotatedImage& image) {
  const fs::path file =
      folder / "SegmentationObject" / fs::path(image.file).filename().replace_extension(".png");
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return;
  check_lies_below(file, fs::canonical(folder));
  read_voc_masks(file, image);
}

const AnnotatedSetRegistration kCoco(
    {.name = "coco",
     .documentation = "COCO: annotations/instances_*.json and the images that they name",
     .open = open_coco,
     .fits = is_coco,
     .has_part = has_coco_part});

const AnnotatedSetRegistration kVoc({.name = "voc",
                                     .documentation = "Pascal VOC: Annotations, JPEGImages, ImageSets/Main",
                                     .open = open_voc,
                                     .fits = is_voc,
                                     .has_part = has_voc_part});

}  // namespace

std::shared_ptr<const AnnotatedSamples> open_coco(const fs::path& folder, const SplitOptions& split,
                                                  const AnnotationOptions& options) {
  std::vector<fs::path> files = instance_files(folder, split.split);
  const std::vector<fs::path> all = instance_files(folder);
  // A file of the other part is not this one's.
  const bool whole =
      all.size() == 1 && !is_of(part_name(all[0]), Split::train) && !is_of(part_name(all[0]), Split::test);
  if (whole) files = all;
  require(files.size() == 1, ErrorCode::invalid_file,
          "{}: has {} files of the {} images' instances, expected one: annotations/instances_{}*.json",
          folder.string(), files.size(), split.split == Split::train ? "training" : "test",
          split.split == Split::train ? "train" : "val");
  const std::string name = files[0].string();
  Annotations annotations = parse_coco(read_text_file(files[0], kLargestInstances), name, options);
  if (whole) hold_out_images(annotations, split, name);
  return std::make_shared<AnnotatedSamples>(image_folder_of(folder, part_name(files[0])),
                                            std::move(annotations));
}

std::shared_ptr<const AnnotatedSamples> open_voc(const fs::path& folder, const SplitOptions& split,
                                                 const AnnotationOptions& options) {
  const fs::path list = voc_list(folder, split.split);
  const bool whole = list.empty();
  const Split other = split.split == Split::train ? Split::test : Split::train;
  require(!whole || !has_voc_part(folder, other), ErrorCode::invalid_file,
          "{}: has no list for {}; expected {}.txt beside that of the other part",
          list_folder(folder).string(), split.split == Split::train ? "training" : "the test",
          split.split == Split::train ? "train" : "val");
  Annotations annotations{.class_names = read_class_list(folder).value_or(voc_class_names())};
  for (const fs::path& file :
       whole ? files_ending(folder / "Annotations", ".xml") : listed_files(folder, list)) {
    read_annotation(options, annotations, [&] {
      parse_voc(read_text_file(file, kLargestXml), file.string(), options, annotations);
      if (options.masks)
        read_annotation(options, annotations, [&] { add_voc_masks(folder, annotations.images.back()); });
    });
  }
  if (whole && !annotations.images.empty()) hold_out_images(annotations, split, folder.string());
  return std::make_shared<AnnotatedSamples>(folder / "JPEGImages", std::move(annotations));
}

}  // namespace tessera::data
