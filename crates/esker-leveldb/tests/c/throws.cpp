// Exceptions that leave callbacks. Takes an empty directory, and the callback that is to throw; then
// the same directory and "none", which says what is there.

#include <leveldb/c.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

constexpr int kKeys = 100;

// The callback that throws, and whether the time has come.
std::string chosen;
std::atomic<bool> armed{false};
const std::thread::id program_thread = std::this_thread::get_id();

// Throws out of a callback: in any thread, or only in those of the library.
void called(const char *callback) {
  if (!armed) return;
  const bool is_background = std::this_thread::get_id() != program_thread;
  if (chosen == callback || (is_background && chosen == std::string(callback) + " in the background")) {
    throw std::runtime_error("out of a callback");
  }
}

int compare(void *, const char *a, size_t a_length, const char *b, size_t b_length) {
  called("compare");
  const int order = memcmp(a, b, std::min(a_length, b_length));
  return order != 0 ? order : a_length < b_length ? -1 : a_length > b_length;
}

const char *order_name(void *) {
  called("name");
  return "throws.order";
}

const char *policy_name(void *) { return "throws.policy"; }

char *create_filter(void *, const char *const *, const size_t *, int, size_t *length) {
  called("create filter");
  *length = 4;
  return strdup("all");
}

unsigned char key_may_match(void *, const char *, size_t, const char *, size_t) {
  called("key may match");
  return 1;
}

void end_state(void *) { called("destructor"); }

void put(void *, const char *, size_t, const char *, size_t) { called("iterate"); }

void deleted(void *, const char *, size_t) {}

void check(const char *what, char *error) {
  if (error == nullptr) return;
  fprintf(stderr, "%s: %s\n", what, error);
  exit(1);
}

// Calls what calls the callbacks.
void provoke(leveldb_t *db, leveldb_writeoptions_t *writing, leveldb_readoptions_t *reading) {
  char *error = nullptr;
  if (chosen == "name") leveldb_comparator_create(nullptr, end_state, compare, order_name);
  if (chosen == "destructor") {
    leveldb_comparator_destroy(leveldb_comparator_create(nullptr, end_state, compare, order_name));
  }
  if (chosen == "iterate") {
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    leveldb_writebatch_put(batch, "k", 1, "v", 1);
    leveldb_writebatch_iterate(batch, nullptr, put, deleted);
  }
  if (chosen == "create filter") leveldb_compact_range(db, nullptr, 0, nullptr, 0);
  if (chosen == "key may match") {
    size_t length;
    leveldb_get(db, reading, "key 1", 5, &length, &error);
  }
  // More than the library keeps in memory: it writes tables in its own thread.
  const std::string value(1000, 'v');
  for (int i = 0; i < 200000; i++) {
    const std::string key = "more " + std::to_string(i);
    leveldb_put(db, writing, key.data(), key.size(), value.data(), value.size(), &error);
    check("put", error);
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  chosen = argv[2];
  char *error = nullptr;
  leveldb_comparator_t *order = leveldb_comparator_create(nullptr, end_state, compare, order_name);
  leveldb_filterpolicy_t *policy =
      leveldb_filterpolicy_create(nullptr, end_state, create_filter, key_may_match, policy_name);
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_comparator(options, order);
  leveldb_options_set_filter_policy(options, policy);
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_write_buffer_size(options, 64 << 10);
  leveldb_t *db = leveldb_open(options, argv[1], &error);
  check("open", error);
  leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
  leveldb_readoptions_t *reading = leveldb_readoptions_create();

  if (chosen != "none") {
    for (int i = 0; i < kKeys; i++) {
      // A half of them is in a table.
      if (i == kKeys / 2) leveldb_compact_range(db, nullptr, 0, nullptr, 0);
      const std::string key = "key " + std::to_string(i);
      leveldb_put(db, writing, key.data(), key.size(), "value", 5, &error);
      check("put", error);
    }
    puts("acknowledged");
    fflush(stdout);
    armed = true;
    try {
      provoke(db, writing, reading);
      puts("went on");
    } catch (const std::runtime_error &) {
      puts("passed through");
    }
    return 0;
  }

  int found = 0;
  for (int i = 0; i < kKeys; i++) {
    const std::string key = "key " + std::to_string(i);
    size_t length;
    char *value = leveldb_get(db, reading, key.data(), key.size(), &length, &error);
    check("get", error);
    if (value != nullptr && std::string(value, length) == "value") found++;
    leveldb_free(value);
  }
  leveldb_close(db);
  leveldb_comparator_destroy(order);
  leveldb_filterpolicy_destroy(policy);
  printf("%d are there\n", found);
  return 0;
}
