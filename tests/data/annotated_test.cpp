#include "tessera/data/annotated.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

constexpr const char* kImages = R"([{"id": 7, "file_name": "a.png", "height": 4, "width": 6, "license": 1},
  {"id": 3, "file_name": "sub/b.png", "height": 5, "width": 5}])";
// Not in the order of their numbers, and not without gaps.
constexpr const char* kCategories = R"([{"id": 18, "name": "dog"}, {"id": 1, "name": "person"}])";

std::string coco(const std::string& annotations, const std::string& images = kImages,
                 const std::string& categories = kCategories) {
  return fmt::format(R"({{"info": {{"year": [2017]}}, "annotations": [{}], "images": {}, "categories": {}}})",
                     annotations, images, categories);
}

std::string annotation(const std::string& more, int64_t image = 7, int64_t category = 18) {
  return fmt::format(R"({{"id": 1, "image_id": {}, "category_id": {}, {}}})", image, category, more);
}

TEST(Coco, ReadsBoxesLabelsAndMasks) {
  const std::string box = R"("bbox": [1, 0.5, 3, 2])";
  const Annotations found = parse_coco(
      coco(annotation(box + R"(, "segmentation": [[1, 1, 4, 1, 4, 3, 1, 3]])") + "," +
           annotation(box + R"(, "iscrowd": 1, "segmentation": {"size": [4, 6], "counts": [4, 4, 16]})", 7,
                      1) +
           "," + annotation(box + R"(, "segmentation": {"size": [5, 5], "counts": "5::"})", 3) + "," +
           annotation(R"("bbox": [-1, 2, 100, 100])", 3, 1) + "," + annotation(R"("bbox": [2, 2, 0, 1])")),
      "x");
  EXPECT_EQ(found.class_names, (std::vector<std::string>{"person", "dog"}));
  EXPECT_TRUE(found.broken.empty());
  EXPECT_EQ(found.empty, 1);
  ASSERT_EQ(found.images.size(), 2U);
  const AnnotatedImage& first = found.images[0];
  EXPECT_EQ(first.id, 7);
  EXPECT_EQ(first.file, "a.png");
  ASSERT_EQ(first.objects.size(), 2U);
  EXPECT_EQ(first.objects[0].label, 1);
  EXPECT_EQ(first.objects[0].box, (BoundingBox{1, 0.5, 4, 2.5}));
  EXPECT_FALSE(first.objects[0].ignored);
  EXPECT_EQ(bounds(mask_of(first, first.objects[0])), (BoundingBox{1, 1, 4, 3}));
  EXPECT_TRUE(first.objects[1].ignored);
  EXPECT_EQ(first.objects[1].label, 0);
  EXPECT_EQ(bounds(mask_of(first, first.objects[1])), (BoundingBox{1, 0, 2, 4}));
  const AnnotatedImage& second = found.images[1];
  ASSERT_EQ(second.objects.size(), 2U);
  EXPECT_EQ(area(mask_of(second, second.objects[0])), 10);
  EXPECT_EQ(second.objects[1].box, (BoundingBox{0, 2, 5, 5}));  // cut at the image's borders
  EXPECT_FALSE(second.objects[1].has_mask());
  EXPECT_EQ(area(mask_of(second, second.objects[1])), 0);
  EXPECT_FALSE(parse_coco(coco(annotation(box + R"(, "segmentation": 5)")), "x", {.masks = false})
                   .images[0]
                   .objects[0]
                   .has_mask());
}

TEST(Coco, NamesBrokenAnnotationsOrLeavesThemOut) {
  const std::string box = R"("bbox": [1, 1, 3, 2])";
  const auto mask = [&](const std::string& text) { return box + R"(, "segmentation": )" + text; };
  const std::vector<std::pair<std::string, std::string>> cases{
      {annotation(box, 8), "no image 8"},
      {annotation(box, 7, 2), "no category 2"},
      {annotation(R"("iscrowd": 0)"), "no 'bbox'"},
      {annotation(R"("bbox": [1, 1, 3])"), "not four numbers"},
      {annotation(R"("bbox": [1, 1, "3", 2])"), "a coordinate is string"},
      {annotation(R"("bbox": [1, 1, 1e300, 2])"), "a coordinate of 1e+300"},
      {annotation(R"("bbox": [1, 1, -3, 2])"), "-3 wide"},
      {R"({"image_id": 7.5, "category_id": 18, "bbox": [1, 1, 3, 2]})", "'image_id' is number"},
      {annotation(mask("5")), "is number, expected an object"},
      {annotation(mask("[5]")), "an outline is number"},
      {annotation(mask("[[1, 2, 3, 4]]")), "outline of 4 numbers"},
      {annotation(mask("[[1, 2, 3, 4, 500, 6]]")), "reaches to 500"},
      {annotation(mask(R"({"size": [4, 6]})")), "no 'counts'"},
      {annotation(mask(R"({"size": [4], "counts": [24]})")), "size is not two"},
      {annotation(mask(R"({"size": [6, 4], "counts": [24]})")), "a mask of 4x6 pixels for an image of 6x4"},
      {annotation(mask(R"({"size": [4, 6], "counts": [23]})")), "add up to 23"},
      {annotation(mask(R"({"size": [4, 6], "counts": [-1, 25]})")), "no whole number"},
      {annotation(mask(R"({"size": [4, 6], "counts": [4294967296]})")), "no whole number"},
      {annotation(mask(R"({"size": [4, 6], "counts": ""})")), "add up to 0"},
      {annotation(mask(R"({"size": [4, 6], "counts": "PP"})")), "cut off"},
      {annotation(mask(R"({"size": [4000000000, 4000000000], "counts": "1"})")), "a mask of 4000000000x"},
  };
  for (const auto& [broken, message] : cases) {
    EXPECT_ERROR(parse_coco(coco(broken), "x"), ErrorCode::invalid_file, "x: annotation 1", message);
    const Annotations left =
        parse_coco(coco(annotation(box) + "," + broken), "x", {.leave_out_broken = true});
    EXPECT_EQ(left.images[0].objects.size(), 1U);
    ASSERT_EQ(left.broken.size(), 1U) << message;
    EXPECT_NE(left.broken[0].find("annotation 2"), std::string::npos) << left.broken[0];
  }
}

TEST(Coco, RefusesWhatIsNoSuchFile) {
  const auto code = ErrorCode::invalid_file;
  const auto image = [](const std::string& file, const std::string& size = R"("height": 4, "width": 6)") {
    return coco("", fmt::format(R"([{{"id": 7, "file_name": "{}", {}}}])", file, size));
  };
  EXPECT_ERROR(parse_coco("", "x"), code, "x", "no JSON");
  EXPECT_ERROR(parse_coco("[]", "x"), code, "no JSON object");
  EXPECT_ERROR(parse_coco("{}", "x"), code, "0 images and 0 categories");
  EXPECT_ERROR(parse_coco(coco("").substr(0, 150), "x"), code, "no JSON");
  EXPECT_ERROR(parse_coco(R"({"images": [{"id": 1e999}]})", "x"), code, "no JSON");
  EXPECT_ERROR(parse_coco(std::string(100'000, '['), "x"), code, "more than 16 deep");
  for (const char* name : {"../a.png", "/etc/a.png", "sub/../../a.png", ""})
    EXPECT_ERROR(parse_coco(image(name), "x"), code, "leads out of the folder");
  EXPECT_ERROR(parse_coco(image("a.png", R"("height": 0, "width": 6)"), "x"), code, "6x0 pixels");
  EXPECT_ERROR(parse_coco(image("a.png", R"("height": 4000000000, "width": 4000000000)"), "x"), code,
               "expected 1 to");
  EXPECT_ERROR(parse_coco(image("a.png", R"("height": 4)"), "x"), code, "no 'width'");
  EXPECT_ERROR(parse_coco(coco("", R"([{"id": 7, "file_name": "a", "height": 4, "width": 6},
                                       {"id": 7, "file_name": "b", "height": 4, "width": 6}])"),
                          "x"),
               code, "image 2", "another has its number, 7");
  EXPECT_ERROR(parse_coco(coco("", kImages, R"([{"id": 1, "name": "a"}, {"id": 1, "name": "b"}])"), "x"),
               code, "category 2", "another has its number, 1");
}

void write_picture(const fs::path& path, int64_t height, int64_t width) {
  fs::create_directories(path.parent_path());
  const std::vector<uint8_t> pixels(static_cast<size_t>(height * width * 3), 100);
  write_file(path, encode_png(pixels, {height, width, 3}));
}

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  write_file(path, text);
}

TEST(CocoFolder, KnowsItsPartsAndImages) {
  const TemporaryFolder folder;
  write_text(folder / "annotations/instances_train2017.json", coco(annotation(R"("bbox": [1, 1, 3, 2])")));
  write_text(folder / "annotations/captions_train2017.json", "{}");
  write_picture(folder / "train2017/a.png", 4, 6);
  const auto samples = open_coco(folder.path());
  ASSERT_EQ(samples->size(), 2);
  const std::vector<std::byte> bytes = samples->bytes(0);
  EXPECT_EQ(samples->open(0, bytes).info().width, 6);
  EXPECT_EQ(samples->label(0), -1);
  EXPECT_EQ(samples->image(0).objects.size(), 1U);
  EXPECT_ERROR(samples->bytes(1), ErrorCode::io, "b.png");
  EXPECT_ERROR(samples->open(1, bytes), ErrorCode::invalid_file, "6x4 pixels", "of 5x5");
  // The only file is the training's, of which nothing is held out.
  EXPECT_ERROR(open_coco(folder.path(), {.split = Split::test}), ErrorCode::invalid_file,
               "0 files of the test");
  ASSERT_NE(annotated_kind(folder.path()), nullptr);
  EXPECT_EQ(annotated_kind(folder.path())->name, "coco");
  EXPECT_TRUE(annotated_kind(folder.path())->has_part(folder.path(), Split::train));
  EXPECT_FALSE(annotated_kind(folder.path())->has_part(folder.path(), Split::test));
  EXPECT_EQ(annotated_kind(folder / "train2017"), nullptr);
}

TEST(CocoFolder, HoldsOutAShareOfImagesWithoutParts) {
  const TemporaryFolder folder;
  write_text(folder / "annotations/instances.json", coco(""));
  const auto training = open_coco(folder.path(), {.test_share = 0.5});
  const auto test = open_coco(folder.path(), {.split = Split::test, .test_share = 0.5});
  ASSERT_EQ(training->size(), 1);
  ASSERT_EQ(test->size(), 1);
  EXPECT_NE(training->image(0).id, test->image(0).id);
}

TEST(CocoFolder, RefusesLinksOutOfTheFolder) {
  const TemporaryFolder folder;
  write_text(folder / "annotations/instances_train.json", coco(""));
  write_picture(folder / "outside.png", 4, 6);
  fs::create_directories(folder / "train");
  fs::create_symlink("../outside.png", folder / "train/a.png");
  EXPECT_ERROR(open_coco(folder.path())->bytes(0), ErrorCode::invalid_file, "a.png", "out of the folder");
}

std::string voc(const std::string& objects, const std::string& file = "2007_1.png",
                const std::string& size = "<width>6</width><height>4</height><depth>3</depth>") {
  return fmt::format("<annotation><filename>{}</filename><size>{}</size>{}</annotation>", file, size,
                     objects);
}

std::string voc_object(const std::string& name, const std::string& box, const std::string& more = "") {
  return fmt::format("<object><name>{}</name>{}<bndbox>{}</bndbox></object>", name, more, box);
}

constexpr const char* kBox = "<xmin>2</xmin><ymin>1</ymin><xmax>5</xmax><ymax>3.5</ymax>";

Annotations parsed(const std::string& xml, const AnnotationOptions& options = {}) {
  Annotations annotations{.class_names = voc_class_names()};
  parse_voc(xml, "x", options, annotations);
  return annotations;
}

class Voc : public ::testing::Test {
  // The library is optional (packages.txt, group extra); any other error is a failure.
  void SetUp() override {
    try {
      parsed(voc(""));
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::unsupported) << error.what();
      GTEST_SKIP() << error.what();
    }
  }
};

TEST_F(Voc, ReadsBoxesAndLabels) {
  const Annotations found =
      parsed(voc(voc_object("dog", kBox) + voc_object(" person ", kBox, "<difficult>1</difficult>")));
  ASSERT_EQ(found.images.size(), 1U);
  const AnnotatedImage& image = found.images[0];
  EXPECT_EQ(image.file, "2007_1.png");
  EXPECT_EQ(image.height, 4);
  EXPECT_EQ(image.width, 6);
  ASSERT_EQ(image.objects.size(), 2U);
  EXPECT_EQ(found.class_names[static_cast<size_t>(image.objects[0].label)], "dog");
  EXPECT_EQ(image.objects[0].box, (BoundingBox{1, 0, 5, 3.5}));
  EXPECT_FALSE(image.objects[0].ignored);
  EXPECT_TRUE(image.objects[1].ignored);
}

TEST_F(Voc, NamesWhatIsBroken) {
  const auto code = ErrorCode::invalid_file;
  const std::vector<std::pair<std::string, std::string>> objects{
      {voc_object("dgo", kBox), "which classes.txt names where they are not VOC's, did you mean 'dog'?"},
      {voc_object("dog", ""), "<bndbox> has no <xmin>"},
      {"<object><name>dog</name></object>", "<object> has no <bndbox>"},
      {voc_object("dog", "<xmin>x</xmin><ymin>1</ymin><xmax>5</xmax><ymax>3</ymax>"), "holds 'x'"},
      {voc_object("dog", "<xmin>1</xmin><ymin>1</ymin><xmax>1e99</xmax><ymax>3</ymax>"), "holds '1e99'"},
      {voc_object("dog", "<xmin>5</xmin><ymin>1</ymin><xmax>2</xmax><ymax>3</ymax>"), "a box from 4"},
  };
  for (const auto& [object, message] : objects) {
    EXPECT_ERROR(parsed(voc(object)), code, "x: ", message);
    const Annotations left = parsed(voc(object + voc_object("dog", kBox)), {.leave_out_broken = true});
    EXPECT_EQ(left.images[0].objects.size(), 1U);
    EXPECT_EQ(left.broken.size(), 1U);
  }
  EXPECT_ERROR(parsed(""), code, "no XML");
  EXPECT_ERROR(parsed("<annotation><filename>"), code, "no XML", "byte");
  EXPECT_ERROR(parsed("<other/>"), code, "no <annotation>");
  EXPECT_ERROR(parsed(voc("", "../a.png")), code, "leads out of the folder");
  EXPECT_ERROR(parsed(voc("", "a.png", "<width>6</width>")), code, "no <height>");
  EXPECT_ERROR(parsed(voc("", "a.png", "<width>99999</width><height>99999</height>")), code, "expected 1 to");
  EXPECT_ERROR(parsed(voc("", "a.png", "<width>0</width><height>9</height>")), code, "0x9");
}

TEST_F(Voc, KnowsPartsAndClassesOfAFolderAndClasses) {
  const TemporaryFolder folder;
  for (int i = 1; i <= 4; ++i) {
    write_text(folder / fmt::format("Annotations/2007_{}.xml", i),
               voc(voc_object(i < 4 ? "dog" : "emu", kBox), fmt::format("2007_{}.png", i)));
    write_picture(folder / fmt::format("JPEGImages/2007_{}.png", i), 4, 6);
  }
  EXPECT_EQ(annotated_kind(folder.path())->name, "voc");
  EXPECT_ERROR(open_voc(folder.path()), ErrorCode::invalid_file, "2007_4.xml", "'emu'");
  write_text(folder / "classes.txt", "dog\nemu\n");
  EXPECT_EQ(open_voc(folder.path(), {.test_share = 0.25})->size(), 3);
  EXPECT_EQ(open_voc(folder.path(), {.split = Split::test, .test_share = 0.25})->image(0).file, "2007_4.png");
  write_text(folder / "ImageSets/Main/train.txt", "2007_3\n2007_1  1\n\n");
  EXPECT_FALSE(annotated_kind(folder.path())->has_part(folder.path(), Split::test));
  EXPECT_ERROR(open_voc(folder.path(), {.split = Split::test}), ErrorCode::invalid_file,
               "no list for the test");
  write_text(folder / "ImageSets/Main/val.txt", "2007_4");
  const auto training = open_voc(folder.path());
  ASSERT_EQ(training->size(), 2);
  EXPECT_EQ(training->image(0).file, "2007_3.png");
  EXPECT_EQ(training->image(1).id, 1);
  const std::vector<std::byte> bytes = training->bytes(1);
  EXPECT_EQ(training->open(1, bytes).info().height, 4);
  EXPECT_EQ(open_voc(folder.path(), {.split = Split::test})->image(0).objects[0].label, 1);
  write_text(folder / "ImageSets/Main/val.txt", "2007_4\n2007_9\n");
  EXPECT_ERROR(open_voc(folder.path(), {.split = Split::test}), ErrorCode::io, "2007_9.xml");
  EXPECT_EQ(open_voc(folder.path(), {.split = Split::test}, {.leave_out_broken = true})
                ->annotations()
                .broken.size(),
            1U);
  write_text(folder / "ImageSets/Main/val.txt", "../2007_4");
  EXPECT_ERROR(open_voc(folder.path(), {.split = Split::test}), ErrorCode::invalid_file, "leads out");
}

// Pixels of numbers as VOC colors them: 1 is (128, 0, 0), 2 (0, 128, 0), 3 (128, 128, 0), 255 (224, 224,
// 192).
void write_voc_mask(const fs::path& path, const std::vector<int>& numbers, const Shape& shape) {
  std::vector<uint8_t> pixels;
  for (const int number : numbers) {
    const std::vector<uint8_t> color = number == 255
                                           ? std::vector<uint8_t>{224, 224, 192}
                                           : std::vector<uint8_t>{static_cast<uint8_t>(128 * (number & 1)),
                                                                  static_cast<uint8_t>(64 * (number & 2)), 0};
    pixels.insert(pixels.end(), color.begin(), color.end());
  }
  fs::create_directories(path.parent_path());
  write_file(path, encode_png(pixels, shape));
}

TEST_F(Voc, ReadsMasksOfAFolder) {
  const TemporaryFolder folder;
  const std::string broken = voc_object("emu", kBox);
  write_text(folder / "Annotations/2007_1.xml",
             voc(voc_object("dog", kBox) + broken + voc_object("cat", kBox) + voc_object("cow", kBox)));
  write_picture(folder / "JPEGImages/2007_1.png", 4, 6);
  const fs::path file = folder / "SegmentationObject/2007_1.png";
  write_voc_mask(file, {1, 1,   0, 0, 0, 3,  //
                        1, 255, 2, 0, 0, 3,  //
                        0, 255, 2, 2, 0, 0,  //
                        0, 0,   0, 0, 0, 3},
                 {4, 6, 3});
  const auto open = [&](const AnnotationOptions& options) {
    return open_voc(folder.path(), {.test_share = 0}, options);
  };
  const auto samples = open({.leave_out_broken = true});
  const AnnotatedImage& image = samples->image(0);
  ASSERT_EQ(image.objects.size(), 3U);
  // The second object is left out, and so is its mask.
  EXPECT_EQ(pixels(mask_of(image, image.objects[0])),
            (std::vector<uint8_t>{1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(pixels(mask_of(image, image.objects[1])),
            (std::vector<uint8_t>{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(area(mask_of(image, image.objects[2])), 0);
  EXPECT_FALSE(open({.masks = false, .leave_out_broken = true})->image(0).objects[0].has_mask());
  write_text(folder / "Annotations/2007_1.xml", voc(voc_object("dog", kBox)));
  write_voc_mask(file, std::vector<int>(20, 1), {4, 5, 3});
  EXPECT_ERROR(open({}), ErrorCode::invalid_file, "a mask of 5x4 pixels for an image of 6x4");
  write_picture(file, 4, 6);
  EXPECT_ERROR(open({}), ErrorCode::invalid_file, "pixel 0, 0 has a color of no object");
  const auto left = open({.leave_out_broken = true});
  EXPECT_EQ(left->annotations().broken.size(), 1U);
  EXPECT_EQ(left->image(0).objects.size(), 1U);
  const TemporaryFolder outside;
  fs::rename(file, outside / "mask.png");
  fs::create_symlink(outside / "mask.png", file);
  EXPECT_ERROR(open({}), ErrorCode::invalid_file, "2007_1.png", "out of the folder");
}

}  // namespace
}  // namespace tessera::data
