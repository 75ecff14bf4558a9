// Exceptions that leave callbacks. Takes an empty directory, and the callback that is to throw;
// then the same directory and "none", which says what is there.

#include "check.h"

#include <algorithm>
#include <atomic>
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
  const std::string in_background = std::string(callback) + " in the background";
  if (chosen == callback || (is_background && chosen == in_background)) {
    throw std::runtime_error("out of a callback");
  }
}

bool full_merge(void *, esker_bytes, const esker_bytes *, const esker_bytes *operands, size_t count,
                esker_output *output) {
  called("full merge");
  const esker_bytes last = operands[count - 1];
  return esker_output_set(output, last.data, last.length) == ESKER_OK;
}

bool partial_merge(void *, esker_bytes, esker_bytes, esker_bytes newer, esker_output *output) {
  called("partial merge");
  return esker_output_set(output, newer.data, newer.length) == ESKER_OK;
}

bool check_operand(void *, esker_bytes, esker_output *) {
  called("check operand");
  return true;
}

int32_t compare(void *, esker_bytes a, esker_bytes b) {
  called("compare");
  const int order = memcmp(a.data, b.data, std::min(a.length, b.length));
  return order != 0 ? order : a.length < b.length ? -1 : a.length > b.length;
}

bool create_filter(void *, const esker_bytes *, size_t, esker_output *output) {
  called("create filter");
  return esker_output_set(output, "all", 3) == ESKER_OK;
}

bool key_may_match(void *, esker_bytes, esker_bytes) {
  called("key may match");
  return true;
}

int32_t filter(void *, esker_bytes, esker_bytes, esker_output *) {
  called("filter");
  return ESKER_FILTER_KEEP;
}

uint64_t now(void *) {
  called("clock");
  return 1000000;
}

void event(void *, const char *, const char *) { called("event"); }

bool next_pair(void *, esker_bytes *, esker_bytes *) {
  called("next pair");
  return false;
}

bool visit_pair(void *, esker_bytes, esker_bytes) {
  called("visit pair");
  return true;
}

bool visit_text(void *, const char *, const char *) {
  called("visit text");
  return true;
}

void destroy(void *) { called("destroy"); }

struct Keyspaces {
  esker_keyspace *ordered, *merged, *timed;
};

// Opens the database and its keyspaces, with all callbacks.
esker_db *open_all(const char *directory, Keyspaces *all) {
  esker_options *options;
  OK(esker_options_create(&options));
  OK(esker_options_add_comparator(options, "throws.order", nullptr, compare, destroy));
  OK(esker_options_set_filter_policy(options, "throws.policy", nullptr, create_filter, key_may_match,
                                     destroy));
  OK(esker_options_set_clock(options, nullptr, now, destroy));
  OK(esker_options_set_event_listener(options, nullptr, event, destroy));
  OK(esker_options_set_write_buffer_bytes(options, 64 << 10));
  esker_db *db;
  OK(esker_db_open(directory, options, &db));
  OK(esker_options_destroy(options));

  esker_keyspace_options *ordered, *merged, *timed;
  OK(esker_keyspace_options_create(&ordered));
  OK(esker_keyspace_options_set_comparator(ordered, "throws.order", nullptr, compare, destroy));
  OK(esker_keyspace_options_set_compaction_filter(ordered, "throws.filter", nullptr, filter,
                                                  destroy));
  OK(esker_db_keyspace(db, "ordered", ordered, &all->ordered));
  OK(esker_keyspace_options_create(&merged));
  OK(esker_keyspace_options_set_merge_operator(merged, "throws.last", nullptr, full_merge,
                                               partial_merge, check_operand, destroy));
  OK(esker_db_keyspace(db, "merged", merged, &all->merged));
  OK(esker_keyspace_options_create(&timed));
  OK(esker_keyspace_options_set_ttl(timed, true, 0));
  OK(esker_db_keyspace(db, "timed", timed, &all->timed));
  OK(esker_keyspace_options_destroy(ordered));
  OK(esker_keyspace_options_destroy(merged));
  OK(esker_keyspace_options_destroy(timed));
  return db;
}

std::string key_of(int number) { return "key " + std::to_string(number); }

void put(esker_keyspace *keyspace, const std::string &key, const std::string &value) {
  OK(esker_keyspace_put(keyspace, key.data(), key.size(), value.data(), value.size(), nullptr));
}

void merge(esker_keyspace *keyspace, const std::string &key) {
  OK(esker_keyspace_merge(keyspace, key.data(), key.size(), "value", 5, nullptr));
}

bool has_value(esker_keyspace *keyspace, const std::string &key) {
  char *value;
  size_t length;
  OK(esker_keyspace_get(keyspace, key.data(), key.size(), &value, &length));
  return is_text(value, length, "value");
}

// Calls what calls the callbacks.
void provoke(esker_db *db, const Keyspaces &all) {
  // The last ones are in memory, as operands.
  has_value(all.merged, key_of(kKeys - 1));
  for (int i = 0; i < 300; i++) merge(all.merged, "more");
  OK(esker_db_flush(db));
  has_value(all.ordered, key_of(1));
  OK(esker_keyspace_compact(all.ordered, nullptr));
  esker_write_options *soon;
  OK(esker_write_options_create(&soon));
  OK(esker_write_options_set_ttl(soon, 1000));
  OK(esker_keyspace_put(all.timed, "soon", 4, "value", 5, soon));
  OK(esker_write_options_destroy(soon));
  uint64_t loaded;
  OK(esker_keyspace_ingest(all.timed, nullptr, next_pair, &loaded));
  esker_transaction *transaction;
  OK(esker_db_transaction(db, &transaction));
  OK(esker_transaction_scan(transaction, all.ordered, nullptr, false, nullptr, visit_pair));
  OK(esker_transaction_rollback(transaction));
  OK(esker_db_properties(db, nullptr, visit_text));
  esker_keyspace_options *options;
  OK(esker_keyspace_options_create(&options));
  OK(esker_keyspace_options_set_compaction_filter(options, "throws.filter", nullptr, filter,
                                                  destroy));
  OK(esker_keyspace_options_destroy(options));
  // More than the library keeps in memory: it writes tables in its own thread, and tells of them.
  const std::string value(1000, 'v');
  for (int i = 0; i < 20000; i++) put(all.ordered, "more " + std::to_string(i), value);
  OK(esker_keyspace_destroy(all.ordered));
  OK(esker_keyspace_destroy(all.merged));
  OK(esker_keyspace_destroy(all.timed));
  OK(esker_db_close(db));
}

// Writes pairs, and makes the callbacks throw.
void write_and_throw(esker_db *db, const Keyspaces &all) {
  for (int i = 0; i < kKeys; i++) {
    // A half of them is in tables.
    if (i == kKeys / 2) OK(esker_db_flush(db));
    put(all.ordered, key_of(i), "value");
    put(all.timed, key_of(i), "value");
    merge(all.merged, key_of(i));
  }
  puts("acknowledged");
  fflush(stdout);
  armed = true;
  try {
    provoke(db, all);
    puts("went on");
  } catch (const std::runtime_error &) {
    puts("passed through");
  }
}

void count(esker_db *db, const Keyspaces &all) {
  int found = 0;
  for (int i = 0; i < kKeys; i++) {
    for (esker_keyspace *keyspace : {all.ordered, all.merged, all.timed}) {
      if (has_value(keyspace, key_of(i))) found++;
    }
  }
  OK(esker_keyspace_destroy(all.ordered));
  OK(esker_keyspace_destroy(all.merged));
  OK(esker_keyspace_destroy(all.timed));
  OK(esker_db_close(db));
  printf("%d are there\n", found);
}

}  // namespace

int main(int argc, char **argv) {
  CHECK(argc == 3);
  chosen = argv[2];
  Keyspaces all;
  esker_db *db = open_all(argv[1], &all);
  if (chosen == "none") {
    count(db, all);
  } else {
    write_and_throw(db, all);
  }
  return 0;
}
