// The header from C++, and a callback that throws. Takes an empty directory; with a second argument
// throws.

#include "check.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace {

struct Close {
  void operator()(esker_db *db) const { OK(esker_db_close(db)); }
  void operator()(esker_keyspace *keyspace) const { OK(esker_keyspace_destroy(keyspace)); }
  void operator()(esker_keyspace_options *options) const { OK(esker_keyspace_options_destroy(options)); }
};

template <typename T>
using Owned = std::unique_ptr<T, Close>;

bool throws(void *, esker_bytes, const esker_bytes *, const esker_bytes *, size_t, esker_output *) {
  throw std::runtime_error("out of a callback");
}

bool appends(void *state, esker_bytes, const esker_bytes *existing, const esker_bytes *operands,
             size_t count, esker_output *output) {
  std::string all;
  if (existing != nullptr) all.append(static_cast<const char *>(existing->data), existing->length);
  for (size_t i = 0; i < count; i++) {
    all.append(static_cast<const char *>(operands[i].data), operands[i].length);
  }
  ++*static_cast<int *>(state);
  return esker_output_set(output, all.data(), all.size()) == ESKER_OK;
}

}  // namespace

int main(int argc, char **argv) {
  CHECK(argc >= 2);
  const std::string path = std::string(argv[1]) + "/db";
  const bool throwing = argc > 2;
  static_assert(std::is_same<esker_code, int32_t>::value, "the code is a number");

  esker_db *opened;
  OK(esker_db_open(path.c_str(), nullptr, &opened));
  Owned<esker_db> db(opened);
  esker_keyspace_options *made;
  OK(esker_keyspace_options_create(&made));
  Owned<esker_keyspace_options> options(made);
  int called = 0;
  OK(esker_keyspace_options_set_merge_operator(options.get(), "append", &called,
                                               throwing ? throws : appends, nullptr, nullptr, nullptr));
  esker_keyspace *keyspace;
  OK(esker_db_keyspace(db.get(), "words", options.get(), &keyspace));
  Owned<esker_keyspace> words(keyspace);
  const std::string key("k\0y", 3);
  OK(esker_keyspace_merge(words.get(), key.data(), key.size(), TEXT("one "), nullptr));
  OK(esker_keyspace_merge(words.get(), key.data(), key.size(), TEXT("two"), nullptr));
  if (throwing) {
    puts("acknowledged");
    fflush(stdout);
  }
  char *value;
  size_t length;
  OK(esker_keyspace_get(words.get(), key.data(), key.size(), &value, &length));
  CHECK(!throwing);
  const std::string found(value, length);
  esker_free(value);
  // Twice, if the program ran with a callback that throws before.
  CHECK(found == "one two" || found == "one twoone two");
  CHECK(called > 0);
  printf("plus: %s\n", found.c_str());
  return 0;
}
