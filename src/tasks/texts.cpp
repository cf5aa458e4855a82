#include "tessera/tasks/texts.h"

#include "tessera/base/error.h"

#include "tasks/row_data.h"

namespace tessera::tasks {

Registry<TextDescription>& text_kinds() {
  static Registry<TextDescription> kinds("kind of text");
  return kinds;
}

std::shared_ptr<const data::TokenText> Texts::long_text() const {
  fail(ErrorCode::unsupported, "this kind of text is rows, and no long text");
}

const data::HeldOut& TextsInMemory::held_out() const {
  std::call_once(is_made_, [&] {
    held_out_ = data::hold_out({{"tokens", rows_()}}, settings_.real("data.test_share"));
  });
  return held_out_;
}

std::shared_ptr<const data::Source> TextsInMemory::training() const {
  return training_rows(held_out().training, settings_);
}

std::shared_ptr<const data::Source> TextsInMemory::test() const {
  return rows_in_order(held_out().test, settings_);
}

Tensor TextsInMemory::rows_to_look_at() const {
  return held_out().test.at("tokens");
}

}  // namespace tessera::tasks
