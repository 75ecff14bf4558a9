/* Every function of esker.h does what it says. Takes an empty directory. */

#include "check.h"

static char path[4096];

static void values(esker_db *db) {
  esker_keyspace *names;
  OK(esker_db_keyspace(db, "names", NULL, &names));
  char *value;
  size_t length, count;
  uint64_t number, time;
  bool found;

  OK(esker_keyspace_name(names, &value));
  CHECK(is_text(value, strlen(value), "names"));
  OK(esker_keyspace_put(names, TEXT("ada"), TEXT("1815"), NULL));
  OK(esker_keyspace_get(names, TEXT("ada"), &value, &length));
  CHECK(is_text(value, length, "1815"));
  OK(esker_keyspace_get(names, TEXT("bob"), &value, &length));
  CHECK(value == NULL && length == 0);

  /* Zero bytes are bytes; the empty key is a key, an empty value one. */
  OK(esker_keyspace_put(names, "a\0b", 3, "c\0d", 3, NULL));
  OK(esker_keyspace_get(names, "a\0b", 3, &value, &length));
  CHECK(length == 3 && memcmp(value, "c\0d", 3) == 0);
  esker_free(value);
  OK(esker_keyspace_put(names, NULL, 0, NULL, 0, NULL));
  OK(esker_keyspace_get(names, "", 0, &value, &length));
  CHECK(is_text(value, length, ""));
  OK(esker_keyspace_delete(names, NULL, 0, NULL));
  OK(esker_keyspace_delete(names, "a\0b", 3, NULL));

  char buffer[4];
  OK(esker_keyspace_get_into(names, TEXT("ada"), buffer, sizeof buffer, &length, &found));
  CHECK(found && length == 4 && memcmp(buffer, "1815", 4) == 0);
  CHECK_CODE(ESKER_BUFFER_TOO_SHORT,
             esker_keyspace_get_into(names, TEXT("ada"), buffer, 3, &length, &found));
  CHECK(found && length == 4);
  OK(esker_keyspace_get_into(names, TEXT("bob"), NULL, 0, &length, &found));
  CHECK(!found);

  OK(esker_keyspace_put(names, TEXT("eve"), TEXT("1990"), NULL));
  esker_bytes keys[3] = {{TEXT("ada")}, {TEXT("bob")}, {TEXT("eve")}};
  char *many[3];
  size_t lengths[3];
  esker_code codes[3];
  OK(esker_keyspace_multi_get(names, keys, 3, many, lengths, codes));
  CHECK(is_text(many[0], lengths[0], "1815") && many[1] == NULL && is_text(many[2], lengths[2], "1990"));
  CHECK(codes[0] == ESKER_OK && codes[1] == ESKER_OK && codes[2] == ESKER_OK);
  OK(esker_keyspace_multi_get(names, NULL, 0, NULL, NULL, NULL));

  OK(esker_keyspace_contains_key(names, TEXT("eve"), &found));
  CHECK(found);
  OK(esker_keyspace_expires_at(names, TEXT("eve"), &found, &time));
  CHECK(found && time == ESKER_NEVER);

  char *key;
  size_t key_length;
  OK(esker_keyspace_first(names, &key, &key_length, &value, &length));
  CHECK(is_text(key, key_length, "ada") && is_text(value, length, "1815"));
  OK(esker_keyspace_last(names, &key, &key_length, &value, &length));
  CHECK(is_text(key, key_length, "eve") && is_text(value, length, "1990"));
  OK(esker_keyspace_count(names, NULL, &number));
  CHECK(number == 2);
  esker_range range = {TEXT("b"), NULL, 0};
  OK(esker_keyspace_count(names, &range, &number));
  CHECK(number == 1);
  esker_range nothing = {NULL, 0, "", 0};
  OK(esker_keyspace_count(names, &nothing, &number));
  CHECK(number == 0);
  OK(esker_keyspace_pop_first(names, &key, &key_length, &value, &length));
  CHECK(is_text(key, key_length, "ada") && is_text(value, length, "1815"));

  /* Conditional writes. */
  bool swapped;
  OK(esker_keyspace_put_if_absent(names, TEXT("eve"), TEXT("1"), NULL, &value, &length));
  CHECK(is_text(value, length, "1990"));
  OK(esker_keyspace_put_if_absent(names, TEXT("bob"), TEXT("1"), NULL, &value, &length));
  CHECK(value == NULL);
  OK(esker_keyspace_compare_and_swap(names, TEXT("bob"), TEXT("2"), TEXT("3"), NULL, &swapped,
                                     &value, &length));
  CHECK(!swapped && is_text(value, length, "1"));
  OK(esker_keyspace_compare_and_swap(names, TEXT("bob"), TEXT("1"), NULL, 0, NULL, &swapped, &value,
                                     &length));
  CHECK(swapped && value == NULL);
  OK(esker_keyspace_take(names, TEXT("eve"), NULL, &value, &length));
  CHECK(is_text(value, length, "1990"));
  OK(esker_keyspace_take(names, TEXT("eve"), NULL, &value, &length));
  CHECK(value == NULL);

  /* Deletes of ranges. */
  OK(esker_keyspace_put(names, TEXT("user:1"), TEXT("x"), NULL));
  OK(esker_keyspace_put(names, TEXT("user:2"), TEXT("x"), NULL));
  OK(esker_keyspace_delete_prefix(names, TEXT("user:1")));
  OK(esker_keyspace_count(names, NULL, &number));
  CHECK(number == 1);
  OK(esker_keyspace_delete_range(names, NULL, NULL));
  OK(esker_keyspace_count(names, NULL, &number));
  CHECK(number == 0);

  OK(esker_keyspace_approximate_size(names, NULL, &number));
  OK(esker_keyspace_compact(names, NULL));
  OK(esker_keyspace_compact(names, &range));
  /* After a compaction it is exact. */
  OK(esker_keyspace_approximate_count(names, NULL, &number));
  CHECK(number == 0);
  OK(esker_keyspace_put(names, TEXT("counted"), TEXT("1"), NULL));
  OK(esker_keyspace_approximate_count(names, NULL, &number));
  CHECK(number == 1);
  esker_range behind = {TEXT("d"), NULL, 0};
  OK(esker_keyspace_approximate_count(names, &behind, &number));
  CHECK(number == 0);
  OK(esker_keyspace_delete(names, TEXT("counted"), NULL));

  /* The options of writes. */
  esker_write_options *options;
  OK(esker_write_options_create(&options));
  OK(esker_write_options_set_sync(options, true));
  OK(esker_write_options_set_stall(options, 0));
  OK(esker_write_options_set_stall(options, 1000));
  OK(esker_keyspace_put(names, TEXT("synced"), TEXT("1"), options));
  OK(esker_write_options_set_disable_wal(options, true));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_put(names, TEXT("both"), TEXT("1"), options));
  OK(esker_write_options_set_sync(options, false));
  OK(esker_write_options_set_ttl(options, 1000));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_put(names, TEXT("no ttl here"), TEXT("1"), options));
  OK(esker_write_options_destroy(options));

  /* Batches. */
  esker_batch *batch;
  OK(esker_db_batch(db, &batch));
  OK(esker_batch_put(batch, names, TEXT("a1"), TEXT("x")));
  OK(esker_batch_put(batch, names, TEXT("a2"), TEXT("x")));
  OK(esker_batch_put(batch, names, TEXT("b1"), TEXT("x")));
  OK(esker_batch_delete(batch, names, TEXT("a2")));
  OK(esker_batch_delete_prefix(batch, names, TEXT("b")));
  OK(esker_batch_count(batch, &count));
  CHECK(count == 5);
  OK(esker_batch_commit(batch, NULL));
  OK(esker_batch_count(batch, &count));
  CHECK(count == 0);
  OK(esker_keyspace_count(names, NULL, &number));
  CHECK(number == 2);
  OK(esker_batch_delete_range(batch, names, NULL));
  OK(esker_batch_clear(batch));
  OK(esker_batch_commit(batch, NULL));
  OK(esker_keyspace_count(names, NULL, &number));
  CHECK(number == 2);
  OK(esker_batch_destroy(batch));
  OK(esker_keyspace_destroy(names));
}

static void scans(esker_db *db) {
  esker_keyspace *names;
  OK(esker_db_keyspace(db, "scans", NULL, &names));
  const char *all[] = {"ada", "bob", "eve"};
  for (int i = 0; i < 3; i++) OK(esker_keyspace_put(names, TEXT(all[i]), TEXT("before"), NULL));
  esker_snapshot *snapshot;
  OK(esker_db_snapshot(db, &snapshot));
  OK(esker_keyspace_put(names, TEXT("ada"), TEXT("after"), NULL));
  OK(esker_keyspace_delete(names, TEXT("eve"), NULL));

  char *value, *key;
  size_t length, key_length;
  bool found;
  uint64_t number, time;
  OK(esker_snapshot_get(snapshot, names, TEXT("ada"), &value, &length));
  CHECK(is_text(value, length, "before"));
  OK(esker_snapshot_contains_key(snapshot, names, TEXT("eve"), &found));
  CHECK(found);
  OK(esker_snapshot_expires_at(snapshot, names, TEXT("eve"), &found, &time));
  CHECK(found && time == ESKER_NEVER);
  OK(esker_snapshot_first(snapshot, names, &key, &key_length, &value, &length));
  CHECK(is_text(key, key_length, "ada") && is_text(value, length, "before"));
  OK(esker_snapshot_last(snapshot, names, &key, &key_length, &value, &length));
  CHECK(is_text(key, key_length, "eve") && is_text(value, length, "before"));
  OK(esker_snapshot_count(snapshot, names, NULL, &number));
  CHECK(number == 3);
  OK(esker_snapshot_sequence(snapshot, &number));
  CHECK(number > 0);
  esker_bytes keys[1] = {{TEXT("eve")}};
  OK(esker_snapshot_multi_get(snapshot, names, keys, 1, &value, &length, NULL));
  CHECK(is_text(value, length, "before"));

  esker_cursor *cursor;
  OK(esker_cursor_create(names, snapshot, false, &cursor));
  CHECK(!esker_cursor_valid(cursor) && esker_cursor_key(cursor, &length) == NULL);
  int seen = 0;
  OK(esker_cursor_seek_to_first(cursor));
  while (esker_cursor_valid(cursor)) {
    const char *at = esker_cursor_key(cursor, &length);
    CHECK(length == 3 && memcmp(at, all[seen], 3) == 0);
    at = esker_cursor_value(cursor, &length);
    CHECK(length == 6 && memcmp(at, "before", 6) == 0);
    seen++;
    OK(esker_cursor_next(cursor));
  }
  CHECK(seen == 3);
  OK(esker_cursor_seek_to_last(cursor));
  OK(esker_cursor_prev(cursor));
  CHECK(memcmp(esker_cursor_key(cursor, &length), "bob", 3) == 0);
  OK(esker_cursor_seek(cursor, TEXT("c")));
  CHECK(memcmp(esker_cursor_key(cursor, &length), "eve", 3) == 0);
  OK(esker_cursor_seek_for_prev(cursor, TEXT("c")));
  CHECK(memcmp(esker_cursor_key(cursor, &length), "bob", 3) == 0);
  OK(esker_cursor_destroy(cursor));
  OK(esker_cursor_create(names, NULL, true, &cursor));
  CHECK(esker_cursor_value(cursor, &length) == NULL);
  OK(esker_cursor_seek_to_last(cursor));
  CHECK(memcmp(esker_cursor_key(cursor, &length), "bob", 3) == 0);
  CHECK(esker_cursor_value(cursor, &length) != NULL && length == 0);
  OK(esker_cursor_destroy(cursor));

  esker_iterator *iterator;
  esker_bytes k, v;
  esker_range range = {TEXT("b"), TEXT("f")};
  OK(esker_iterator_create(names, snapshot, &range, &iterator));
  OK(esker_iterator_next(iterator, &k, &v, &found));
  CHECK(found && is_bytes(k, "bob") && is_bytes(v, "before"));
  OK(esker_iterator_next_back(iterator, &k, &v, &found));
  CHECK(found && is_bytes(k, "eve"));
  OK(esker_iterator_next(iterator, &k, &v, &found));
  CHECK(!found && k.data == NULL);
  OK(esker_iterator_destroy(iterator));
  OK(esker_iterator_create_prefix(names, NULL, TEXT("a"), &iterator));
  OK(esker_iterator_next(iterator, &k, &v, &found));
  CHECK(found && is_bytes(v, "after"));
  OK(esker_iterator_next(iterator, &k, &v, &found));
  CHECK(!found);
  OK(esker_iterator_destroy(iterator));
  OK(esker_snapshot_destroy(snapshot));
  OK(esker_keyspace_destroy(names));
}

/* A merge operator: keeps the longest operand; "delete" deletes, "fail" fails. */
static int states = 0;

static bool longest(void *state, esker_bytes key, const esker_bytes *existing,
                    const esker_bytes *operands, size_t count, esker_output *output) {
  CHECK(*(int *)state == 7 && key.length > 0);
  esker_bytes best = existing != NULL ? *existing : operands[0];
  for (size_t i = 0; i < count; i++) {
    if (is_bytes(operands[i], "fail")) {
      OK(esker_output_fail(output, "asked to"));
      return false;
    }
    if (is_bytes(operands[i], "delete")) {
      OK(esker_output_delete(output));
      return true;
    }
    if (operands[i].length > best.length) best = operands[i];
  }
  OK(esker_output_set(output, best.data, best.length));
  return true;
}

static bool longest_of_two(void *state, esker_bytes key, esker_bytes older, esker_bytes newer,
                           esker_output *output) {
  (void)key;
  CHECK(*(int *)state == 7);
  if (is_bytes(older, "fail") || is_bytes(newer, "fail")) return false;
  if (is_bytes(older, "delete") || is_bytes(newer, "delete")) return false;
  esker_bytes best = newer.length > older.length ? newer : older;
  return esker_output_set(output, best.data, best.length) == ESKER_OK;
}

static bool no_empty_operand(void *state, esker_bytes operand, esker_output *output) {
  CHECK(*(int *)state == 7);
  if (operand.length > 0) return true;
  OK(esker_output_fail(output, "an empty operand"));
  return false;
}

static void end_state(void *state) {
  CHECK(*(int *)state == 7);
  free(state);
  states--;
}

static int *new_state(void) {
  int *state = malloc(sizeof *state);
  *state = 7;
  states++;
  return state;
}

static void merges(esker_db *db) {
  esker_keyspace_options *options;
  OK(esker_keyspace_options_create(&options));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_options_set_built_in_operator(options, "unknown"));
  OK(esker_keyspace_options_set_built_in_operator(options, "uint64add"));
  esker_keyspace *hits;
  OK(esker_db_keyspace(db, "hits", options, &hits));
  uint64_t one = 1;
  OK(esker_keyspace_merge(hits, TEXT("page"), &one, sizeof one, NULL));
  OK(esker_keyspace_merge(hits, TEXT("page"), &one, sizeof one, NULL));
  char *value;
  size_t length;
  OK(esker_keyspace_merge_and_get(hits, TEXT("page"), &one, sizeof one, NULL, &value, &length));
  CHECK(length == 8 && value[0] == 3);
  esker_free(value);
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_merge(hits, TEXT("page"), TEXT("three"), NULL));
  esker_batch *batch;
  OK(esker_db_batch(db, &batch));
  OK(esker_batch_merge(batch, hits, TEXT("page"), &one, sizeof one));
  OK(esker_batch_commit(batch, NULL));
  OK(esker_batch_destroy(batch));
  OK(esker_keyspace_get(hits, TEXT("page"), &value, &length));
  CHECK(length == 8 && value[0] == 4);
  esker_free(value);
  OK(esker_keyspace_destroy(hits));

  OK(esker_keyspace_options_set_merge_operator(options, "longest", new_state(), longest,
                                               longest_of_two, no_empty_operand, end_state));
  esker_keyspace *words;
  OK(esker_db_keyspace(db, "words", options, &words));
  OK(esker_keyspace_options_destroy(options));
  OK(esker_keyspace_merge(words, TEXT("w"), TEXT("ab"), NULL));
  OK(esker_keyspace_merge(words, TEXT("w"), TEXT("abcd"), NULL));
  OK(esker_keyspace_merge(words, TEXT("w"), TEXT("abc"), NULL));
  OK(esker_keyspace_get(words, TEXT("w"), &value, &length));
  CHECK(is_text(value, length, "abcd"));
  OK(esker_db_flush(db));
  OK(esker_keyspace_merge(words, TEXT("w"), TEXT("abcdef"), NULL));
  OK(esker_keyspace_get(words, TEXT("w"), &value, &length));
  CHECK(is_text(value, length, "abcdef"));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_merge(words, TEXT("w"), NULL, 0, NULL));
  CHECK(strstr(esker_last_error_message(), "an empty operand") != NULL);
  OK(esker_keyspace_merge(words, TEXT("w"), TEXT("delete"), NULL));
  OK(esker_keyspace_get(words, TEXT("w"), &value, &length));
  CHECK(value == NULL);
  OK(esker_keyspace_merge(words, TEXT("bad"), TEXT("fail"), NULL));
  CHECK_CODE(ESKER_MERGE_FAILED, esker_keyspace_get(words, TEXT("bad"), &value, &length));
  CHECK(value == NULL && strstr(esker_last_error_message(), "asked to") != NULL);
  esker_bytes keys[2] = {{TEXT("w")}, {TEXT("bad")}};
  char *many[2];
  size_t lengths[2];
  esker_code codes[2];
  CHECK_CODE(ESKER_MERGE_FAILED, esker_keyspace_multi_get(words, keys, 2, many, lengths, codes));
  CHECK(codes[0] == ESKER_OK && codes[1] == ESKER_MERGE_FAILED);
  OK(esker_keyspace_delete(words, TEXT("bad"), NULL));
  OK(esker_keyspace_destroy(words));
}

static uint64_t now_ms = 1000000;

static uint64_t now(void *state) {
  CHECK(*(int *)state == 7);
  return __atomic_load_n(&now_ms, __ATOMIC_SEQ_CST);
}

static void pass(uint64_t ms) { __atomic_fetch_add(&now_ms, ms, __ATOMIC_SEQ_CST); }

static int32_t decide(void *state, esker_bytes key, esker_bytes value, esker_output *output) {
  CHECK(*(int *)state == 7 && key.length > 0);
  if (is_bytes(value, "old")) return ESKER_FILTER_REMOVE;
  if (!is_bytes(value, "long")) return ESKER_FILTER_KEEP;
  OK(esker_output_set(output, TEXT("short")));
  return ESKER_FILTER_REPLACE;
}

static void expiries(esker_db *db) {
  esker_keyspace_options *options;
  OK(esker_keyspace_options_create(&options));
  OK(esker_keyspace_options_set_ttl(options, true, 0));
  OK(esker_keyspace_options_set_compaction_filter(options, "by value", new_state(), decide, end_state));
  bool drops;
  OK(esker_keyspace_options_drops_values_in_compaction(options, &drops));
  CHECK(drops);
  OK(esker_keyspace_options_set_fifo(options, 1 << 30));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_options_set_compaction_style(options, 17));
  OK(esker_keyspace_options_set_compaction_style(options, ESKER_COMPACTION_LEVELED));
  OK(esker_keyspace_options_set_built_in_operator(options, "max"));
  esker_keyspace *sessions;
  OK(esker_db_keyspace(db, "sessions", options, &sessions));
  OK(esker_keyspace_options_destroy(options));
  esker_write_options *ttl;
  OK(esker_write_options_create(&ttl));
  OK(esker_write_options_set_ttl(ttl, 100));
  bool found;
  uint64_t time, number;
  OK(esker_keyspace_put(sessions, TEXT("s1"), TEXT("x"), ttl));
  OK(esker_write_options_destroy(ttl));
  OK(esker_keyspace_put_until(sessions, TEXT("s2"), TEXT("x"), now_ms + 50));
  OK(esker_keyspace_expires_at(sessions, TEXT("s2"), &found, &time));
  CHECK(found && time == now_ms + 50);
  OK(esker_keyspace_put_until(sessions, TEXT("s3"), TEXT("x"), ESKER_NEVER));
  OK(esker_keyspace_expires_at(sessions, TEXT("s3"), &found, &time));
  CHECK(found && time == ESKER_NEVER);
  OK(esker_keyspace_delete(sessions, TEXT("s3"), NULL));
  pass(60);
  OK(esker_keyspace_contains_key(sessions, TEXT("s2"), &found));
  CHECK(!found);
  OK(esker_keyspace_touch(sessions, TEXT("s1"), 1000, &found));
  CHECK(found);
  pass(500);
  OK(esker_keyspace_expire_at(sessions, TEXT("s1"), now_ms + 10, &found));
  CHECK(found);
  OK(esker_keyspace_persist(sessions, TEXT("s1"), &found));
  CHECK(found);
  OK(esker_keyspace_persist(sessions, TEXT("s2"), &found));
  CHECK(!found);
  esker_batch *batch;
  OK(esker_db_batch(db, &batch));
  OK(esker_batch_put_with_ttl(batch, sessions, TEXT("b1"), TEXT("x"), 10));
  OK(esker_batch_put_until(batch, sessions, TEXT("b2"), TEXT("x"), now_ms + 10));
  OK(esker_batch_put_until(batch, sessions, TEXT("b3"), TEXT("x"), now_ms + 10));
  OK(esker_batch_put_until(batch, sessions, TEXT("b4"), TEXT("x"), now_ms + 10));
  OK(esker_batch_merge_with_ttl(batch, sessions, TEXT("b5"), TEXT("x"), 10));
  OK(esker_batch_touch(batch, sessions, TEXT("b2"), 1000));
  OK(esker_batch_expire_at(batch, sessions, TEXT("b3"), now_ms + 1000));
  OK(esker_batch_persist(batch, sessions, TEXT("b4")));
  OK(esker_batch_commit(batch, NULL));
  OK(esker_batch_destroy(batch));
  pass(100);
  OK(esker_keyspace_count(sessions, NULL, &number));
  CHECK(number == 4); /* s1, b2, b3, b4 */

  OK(esker_keyspace_put(sessions, TEXT("f1"), TEXT("old"), NULL));
  OK(esker_keyspace_put(sessions, TEXT("f2"), TEXT("long"), NULL));
  OK(esker_db_compact(db));
  char *value;
  size_t length;
  OK(esker_keyspace_get(sessions, TEXT("f1"), &value, &length));
  CHECK(value == NULL);
  OK(esker_keyspace_get(sessions, TEXT("f2"), &value, &length));
  CHECK(is_text(value, length, "short"));
  OK(esker_keyspace_set_ttl(sessions, 70));
  OK(esker_keyspace_put(sessions, TEXT("f3"), TEXT("x"), NULL));
  OK(esker_keyspace_expires_at(sessions, TEXT("f3"), &found, &time));
  CHECK(found && time == now_ms + 70);
  OK(esker_keyspace_set_ttl(sessions, 0));
  OK(esker_keyspace_ttl(sessions, &found, &time));
  CHECK(found && time == 0);
  OK(esker_keyspace_destroy(sessions));
  OK(esker_db_keyspace(db, "plain", NULL, &sessions));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_touch(sessions, TEXT("k"), 1, &found));
  OK(esker_keyspace_set_ttl(sessions, 0));
  OK(esker_keyspace_touch(sessions, TEXT("k"), 1, &found));
  OK(esker_keyspace_destroy(sessions));
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_keyspace_set_ttl(sessions, 0));
}

/* A merge operator for a keyspace that was created without. */
static void later_operator(esker_db *db) {
  esker_keyspace *best;
  esker_keyspace_options *options;
  OK(esker_db_keyspace(db, "later operator", NULL, &best));
  OK(esker_keyspace_put(best, TEXT("k"), TEXT("5"), NULL));
  OK(esker_keyspace_options_create(&options));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_set_merge_operator(best, options));
  CHECK(strstr(esker_last_error_message(), "have no merge operator") != NULL);
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_keyspace_set_merge_operator(best, NULL));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_keyspace_set_merge_operator(NULL, options));
  OK(esker_keyspace_options_set_built_in_operator(options, "max"));
  OK(esker_keyspace_set_merge_operator(best, options));
  OK(esker_keyspace_set_merge_operator(best, options));
  OK(esker_keyspace_options_destroy(options));
  OK(esker_keyspace_merge(best, TEXT("k"), TEXT("7"), NULL));
  char *value;
  size_t length;
  OK(esker_keyspace_get(best, TEXT("k"), &value, &length));
  CHECK(is_text(value, length, "7"));
  char *name;
  OK(esker_keyspace_merge_operator(best, &name));
  CHECK(strcmp(name, "max") == 0);
  esker_free(name);
  OK(esker_keyspace_destroy(best));
}

/* Another name for a keyspace. */
static void renaming(esker_db *db) {
  esker_keyspace *drafts, *other;
  esker_snapshot *snapshot;
  char *value;
  size_t length;
  OK(esker_db_keyspace(db, "drafts", NULL, &drafts));
  OK(esker_keyspace_put(drafts, TEXT("k"), TEXT("old"), NULL));
  OK(esker_db_snapshot(db, &snapshot));
  OK(esker_keyspace_rename(drafts, "letters"));
  OK(esker_keyspace_rename(drafts, "letters"));
  OK(esker_keyspace_name(drafts, &value));
  CHECK(is_text(value, strlen(value), "letters"));
  OK(esker_keyspace_put(drafts, TEXT("k"), TEXT("new"), NULL));
  OK(esker_snapshot_get(snapshot, drafts, TEXT("k"), &value, &length));
  CHECK(is_text(value, length, "old"));
  OK(esker_snapshot_destroy(snapshot));
  CHECK_CODE(ESKER_NOT_FOUND, esker_db_existing_keyspace(db, "drafts", &other));
  OK(esker_db_existing_keyspace(db, "letters", &other));
  OK(esker_keyspace_get(other, TEXT("k"), &value, &length));
  CHECK(is_text(value, length, "new"));
  OK(esker_keyspace_destroy(other));

  /* Names that it cannot have. The old one is free. */
  OK(esker_db_keyspace(db, "drafts", NULL, &other));
  CHECK_CODE(ESKER_ALREADY_EXISTS, esker_keyspace_rename(drafts, "drafts"));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_rename(drafts, ""));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_rename(drafts, "a\nb"));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_rename(drafts, "\xff"));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_rename(drafts, NULL));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_keyspace_rename((esker_keyspace *)db, "name"));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_keyspace_rename(NULL, "name"));
  OK(esker_db_drop_keyspace(db, "drafts"));
  CHECK_CODE(ESKER_KEYSPACE_DROPPED, esker_keyspace_rename(other, "name"));
  OK(esker_keyspace_destroy(other));
  OK(esker_keyspace_destroy(drafts));
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_keyspace_rename(drafts, "name"));
  OK(esker_db_drop_keyspace(db, "letters"));
}

static int visited = 0;

static bool visit_pair(void *state, esker_bytes key, esker_bytes value) {
  CHECK(key.length == 2 && value.length == 1);
  CHECK(((const char *)key.data)[1] == (state == NULL ? '1' : '3'));
  visited++;
  return false;
}

/* Reads of a transaction, and merges that expire: k1 has 1, k2 expires, k3 does not. */
static void transaction_reads(esker_db *db, esker_keyspace *names) {
  esker_transaction *one, *other;
  OK(esker_db_transaction(db, &one));
  OK(esker_db_transaction(db, &other));
  OK(esker_transaction_put(one, names, TEXT("k1"), TEXT("long")));

  char buffer[4], *values[3];
  size_t length, lengths[3];
  bool found;
  OK(esker_transaction_get_into(one, names, TEXT("k1"), buffer, sizeof buffer, &length, &found));
  CHECK(found && length == 4 && memcmp(buffer, "long", 4) == 0);
  OK(esker_transaction_get_into(other, names, TEXT("k1"), buffer, sizeof buffer, &length, &found));
  CHECK(found && length == 1 && memcmp(buffer, "1ong", 4) == 0);
  OK(esker_transaction_get_into(one, names, TEXT("none"), buffer, sizeof buffer, &length, &found));
  CHECK(!found && length == 0);

  esker_bytes keys[3] = {{"k3", 2}, {"none", 4}, {"k1", 2}};
  esker_code codes[3] = {7, 7, 7};
  OK(esker_transaction_multi_get(one, names, keys, 3, values, lengths, codes));
  CHECK(values[1] == NULL && codes[0] == ESKER_OK && codes[1] == ESKER_OK && codes[2] == ESKER_OK);
  CHECK(is_text(values[0], lengths[0], "3") && is_text(values[2], lengths[2], "long"));

  uint64_t time;
  OK(esker_transaction_expires_at(one, names, TEXT("k2"), &found, &time));
  CHECK(found && time == now_ms + 2000000);
  OK(esker_transaction_expires_at(one, names, TEXT("k3"), &found, &time));
  CHECK(found && time == ESKER_NEVER);
  OK(esker_transaction_expires_at(one, names, TEXT("none"), &found, &time));
  CHECK(!found && time == 0);
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_transaction_expires_at(one, names, TEXT("k1"), &found, &time));

  OK(esker_transaction_merge_with_ttl(other, names, TEXT("m1"), TEXT("7"), 500));
  OK(esker_transaction_commit(other, NULL));
  OK(esker_keyspace_expires_at(names, TEXT("m1"), &found, &time));
  CHECK(found && time == now_ms + 500);
  OK(esker_keyspace_delete(names, TEXT("m1"), NULL));

  /* What was read of the other one counts: another writer of it is a conflict. */
  OK(esker_keyspace_put(names, TEXT("k3"), TEXT("3"), NULL));
  CHECK_CODE(ESKER_CONFLICT, esker_transaction_commit(one, NULL));
}

static void transactions(esker_db *db) {
  esker_keyspace_options *options;
  OK(esker_keyspace_options_create(&options));
  OK(esker_keyspace_options_set_ttl(options, true, 0));
  OK(esker_keyspace_options_set_built_in_operator(options, "max"));
  esker_keyspace *names;
  OK(esker_db_keyspace(db, "transactions", options, &names));
  OK(esker_keyspace_options_destroy(options));
  esker_transaction *one, *other;
  char *value, *key;
  size_t length, key_length, count;
  uint64_t number;
  bool found;
  OK(esker_db_transaction(db, &one));
  OK(esker_transaction_put(one, names, TEXT("k1"), TEXT("1")));
  OK(esker_transaction_put_with_ttl(one, names, TEXT("k2"), TEXT("2"), 1000000));
  OK(esker_transaction_put_until(one, names, TEXT("k3"), TEXT("3"), now_ms + 1000000));
  OK(esker_transaction_touch(one, names, TEXT("k1"), 1000000));
  OK(esker_transaction_expire_at(one, names, TEXT("k2"), now_ms + 2000000));
  OK(esker_transaction_persist(one, names, TEXT("k3")));
  OK(esker_transaction_merge(one, names, TEXT("k1"), TEXT("0")));
  OK(esker_transaction_get(one, names, TEXT("k1"), &value, &length));
  CHECK(is_text(value, length, "1"));
  OK(esker_transaction_contains_key(one, names, TEXT("k9"), &found));
  CHECK(!found);
  OK(esker_transaction_first(one, names, &key, &key_length, &value, &length));
  CHECK(is_text(key, key_length, "k1") && is_text(value, length, "1"));
  OK(esker_transaction_last(one, names, &key, &key_length, &value, &length));
  CHECK(is_text(key, key_length, "k3") && is_text(value, length, "3"));
  OK(esker_transaction_count(one, names, NULL, &number));
  CHECK(number == 3);
  OK(esker_transaction_scan(one, names, NULL, false, NULL, visit_pair));
  OK(esker_transaction_scan(one, names, NULL, true, &visited, visit_pair));
  CHECK(visited == 2);
  OK(esker_transaction_write_count(one, &count));
  CHECK(count > 0);
  OK(esker_keyspace_count(names, NULL, &number));
  CHECK(number == 0);
  OK(esker_transaction_commit(one, NULL));
  OK(esker_keyspace_count(names, NULL, &number));
  CHECK(number == 3);
  transaction_reads(db, names);

  OK(esker_db_transaction(db, &one));
  OK(esker_db_transaction(db, &other));
  OK(esker_transaction_delete(one, names, TEXT("k1")));
  OK(esker_transaction_delete_prefix(one, names, TEXT("k2")));
  OK(esker_transaction_get(other, names, TEXT("k1"), &value, &length));
  CHECK(is_text(value, length, "1"));
  OK(esker_transaction_put(other, names, TEXT("k4"), TEXT("4")));
  OK(esker_transaction_commit(one, NULL));
  CHECK_CODE(ESKER_CONFLICT, esker_transaction_commit(other, NULL));
  CHECK(esker_last_error_is_retryable());
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_transaction_rollback(other));
  OK(esker_db_transaction(db, &one));
  OK(esker_transaction_pop_first(one, names, &key, &key_length, &value, &length));
  CHECK(is_text(key, key_length, "k3") && is_text(value, length, "3"));
  OK(esker_transaction_delete_range(one, names, NULL));
  OK(esker_transaction_rollback(one));
  OK(esker_keyspace_count(names, NULL, &number));
  CHECK(number == 1);
  OK(esker_keyspace_destroy(names));
}

static int next_number = 0;

static bool next_pair(void *state, esker_bytes *key, esker_bytes *value) {
  static char number[16];
  if (next_number == *(int *)state) return false;
  snprintf(number, sizeof number, "%08d", next_number++);
  key->data = number;
  key->length = 8;
  *value = *key;
  return true;
}

static int properties = 0;

static bool visit_text(void *state, const char *name, const char *text) {
  CHECK(state == NULL && *name != 0 && text != NULL);
  properties++;
  return true;
}

static bool no_damage(void *state, const char *name, const char *text) {
  (void)state;
  fprintf(stderr, "%s: %s\n", name, text);
  exit(1);
}

static bool count_damage(void *state, const char *name, const char *text) {
  CHECK(strcmp(name, "damage") == 0 && strstr(text, "CURRENT") != NULL);
  ++*(int *)state;
  return false;
}

/* A database that nobody has open is verified in its directory, whether it opens or not. */
static void verify_directory(const char *directory) {
  char current[4200];
  OK(esker_db_verify_directory(directory, NULL, NULL, no_damage));
  OK(esker_db_verify_directory(directory, NULL, NULL, NULL));
  CHECK_CODE(ESKER_NOT_FOUND, esker_db_verify_directory("/nowhere", NULL, NULL, no_damage));
  join(current, sizeof current, directory, "CURRENT");
  FILE *file = fopen(current, "w");
  CHECK(file != NULL && fputs("damaged", file) >= 0 && fclose(file) == 0);
  int damaged = 0;
  CHECK_CODE(ESKER_CORRUPTION, esker_db_verify_directory(directory, NULL, &damaged, count_damage));
  CHECK(damaged == 1 && strstr(esker_last_error_message(), "CURRENT") != NULL);
  CHECK_CODE(ESKER_CORRUPTION, esker_db_verify_directory(directory, NULL, NULL, NULL));
}

/* How far a follower is behind: `written` batches. */
static void lag(esker_follower *follower, uint64_t written) {
  bool known = false;
  uint64_t batches, log_bytes, sequence;
  OK(esker_follower_lag(follower, &known, &batches, &log_bytes, &sequence));
  CHECK(known && batches == written && (log_bytes > 0) == (written > 0) && sequence > 0);
  OK(esker_follower_lag(follower, NULL, NULL, NULL, NULL));
}

static void maintenance(esker_db *db, const char *directory) {
  esker_keyspace *loaded;
  uint64_t number;
  OK(esker_db_keyspace(db, "loaded", NULL, &loaded));
  int pairs = 1000;
  OK(esker_keyspace_ingest(loaded, &pairs, next_pair, &number));
  CHECK(number == 1000);
  OK(esker_keyspace_count(loaded, NULL, &number));
  CHECK(number == 1000);
  next_number = 0;
  OK(esker_keyspace_ingest(loaded, &pairs, next_pair, NULL));
  OK(esker_keyspace_destroy(loaded));

  OK(esker_db_sync(db));
  OK(esker_db_wait_idle(db));
  OK(esker_db_verify(db, NULL, no_damage));
  OK(esker_db_verify(db, NULL, NULL));
  char *text;
  OK(esker_db_stats(db, &text));
  CHECK(strstr(text, "loaded") != NULL);
  esker_free(text);
  OK(esker_db_explain(db, &text));
  CHECK(strstr(text, "write_buffer_bytes") != NULL);
  esker_free(text);
  OK(esker_db_property(db, "esker.health.writable", &text));
  CHECK(is_text(text, strlen(text), "true"));
  OK(esker_db_property(db, "no such property", &text));
  CHECK(text == NULL);
  OK(esker_db_properties(db, NULL, visit_text));
  CHECK(properties > 30);
  properties = 0;
  OK(esker_db_keyspaces(db, NULL, visit_text));
  CHECK(properties == 9);
  OK(esker_db_drop_keyspace(db, "scans"));
  esker_keyspace *gone;
  CHECK_CODE(ESKER_NOT_FOUND, esker_db_existing_keyspace(db, "scans", &gone));
  CHECK(gone == NULL);
  OK(esker_db_existing_keyspace(db, "names", &gone));
  OK(esker_keyspace_destroy(gone));
  OK(esker_db_path(db, &text));
  CHECK(is_text(text, strlen(text), path));

  char copy[4096];
  join(copy, sizeof copy, directory, "linked");
  OK(esker_db_checkpoint(db, copy, false));
  join(copy, sizeof copy, directory, "copied");
  OK(esker_db_checkpoint(db, copy, true));
  esker_db *copied;
  OK(esker_db_open_read_only(copy, NULL, &copied));
  OK(esker_db_existing_keyspace(copied, "loaded", &loaded));
  OK(esker_keyspace_count(loaded, NULL, &number));
  CHECK(number == 1000);
  CHECK_CODE(ESKER_READ_ONLY, esker_keyspace_put(loaded, TEXT("k"), TEXT("v"), NULL));
  OK(esker_keyspace_destroy(loaded));
  OK(esker_db_close(copied));
  OK(esker_db_repair(copy, NULL, &text));
  CHECK(strstr(text, "nothing is wrong") != NULL);
  esker_free(text);
  verify_directory(copy);

  esker_follower *follower;
  esker_db *followed;
  esker_keyspace *written, *read;
  bool found;
  OK(esker_follower_open(path, NULL, &follower));
  OK(esker_db_keyspace(db, "names", NULL, &written));
  OK(esker_keyspace_put(written, TEXT("followed"), TEXT("1"), NULL));
  lag(follower, 1);
  OK(esker_follower_catch_up(follower, &number));
  lag(follower, 0);
  OK(esker_follower_catch_up(follower, NULL));
  OK(esker_follower_db(follower, &followed));
  OK(esker_db_existing_keyspace(followed, "names", &read));
  OK(esker_keyspace_contains_key(read, TEXT("followed"), &found));
  CHECK(found && number > 0);
  OK(esker_keyspace_destroy(read));
  OK(esker_keyspace_destroy(written));
  OK(esker_db_close(followed));
  OK(esker_follower_destroy(follower));
}

/* An order: by length. */
static int32_t by_length(void *state, esker_bytes a, esker_bytes b) {
  CHECK(*(int *)state == 7);
  if (a.length != b.length) return a.length < b.length ? -1 : 1;
  return a.length == 0 ? 0 : memcmp(a.data, b.data, a.length);
}

static int denies = 0, asked = 0;

static bool count_keys(void *state, const esker_bytes *keys, size_t count, esker_output *output) {
  CHECK(*(int *)state == 7 && count > 0 && keys[0].length > 0);
  return esker_output_set(output, &count, sizeof count) == ESKER_OK;
}

static bool answer(void *state, esker_bytes key, esker_bytes filter) {
  CHECK(*(int *)state == 7 && key.length > 0 && filter.length == sizeof(size_t));
  __atomic_fetch_add(&asked, 1, __ATOMIC_SEQ_CST);
  return !__atomic_load_n(&denies, __ATOMIC_SEQ_CST);
}

/* Orders, filter policies, and the end of a database. */
static void orders(const char *directory) {
  char place[4096];
  join(place, sizeof place, directory, "orders");
  esker_options *options;
  OK(esker_options_create(&options));
  OK(esker_options_add_comparator(options, "by length", new_state(), by_length, end_state));
  OK(esker_options_set_filter_policy(options, "count", new_state(), count_keys, answer, end_state));
  esker_db *db;
  OK(esker_db_open(place, options, &db));
  esker_keyspace_options *keyspace_options;
  OK(esker_keyspace_options_create(&keyspace_options));
  OK(esker_keyspace_options_set_comparator(keyspace_options, "by length", new_state(), by_length, end_state));
  esker_keyspace *words, *latest;
  OK(esker_db_keyspace(db, "words", keyspace_options, &words));
  OK(esker_keyspace_options_set_reverse_order(keyspace_options));
  OK(esker_db_keyspace(db, "latest", keyspace_options, &latest));
  OK(esker_keyspace_options_destroy(keyspace_options));
  OK(esker_keyspace_put(words, TEXT("aaa"), TEXT("3"), NULL));
  OK(esker_keyspace_put(words, TEXT("b"), TEXT("1"), NULL));
  OK(esker_keyspace_put(latest, TEXT("a"), TEXT("1"), NULL));
  OK(esker_keyspace_put(latest, TEXT("b"), TEXT("2"), NULL));
  char *key, *value;
  size_t key_length, length;
  OK(esker_keyspace_first(words, &key, &key_length, &value, &length));
  CHECK(is_text(key, key_length, "b") && is_text(value, length, "1"));
  OK(esker_keyspace_first(latest, &key, &key_length, &value, &length));
  CHECK(is_text(key, key_length, "b") && is_text(value, length, "2"));
  OK(esker_keyspace_comparator(words, &value));
  CHECK(is_text(value, strlen(value), "by length"));
  OK(esker_db_flush(db));
  OK(esker_keyspace_get(words, TEXT("aaa"), &value, &length));
  CHECK(is_text(value, length, "3") && asked > 0);
  denies = 1;
  OK(esker_keyspace_get(words, TEXT("aaa"), &value, &length));
  CHECK(value == NULL);
  OK(esker_keyspace_destroy(words));
  OK(esker_keyspace_destroy(latest));
  CHECK_CODE(ESKER_LOCKED, esker_db_destroy(place, NULL));
  OK(esker_db_close(db));
  CHECK_CODE(ESKER_MISSING_COMPARATOR, esker_db_open(place, NULL, &db));
  OK(esker_options_set_error_if_exists(options, true));
  CHECK_CODE(ESKER_ALREADY_EXISTS, esker_db_open(place, options, &db));
  OK(esker_db_destroy(place, options));
  OK(esker_db_open(place, options, &db));
  OK(esker_db_close(db));
  OK(esker_options_destroy(options));
}

static int events = 0;

static void count_event(void *state, const char *name, const char *text) {
  CHECK(*(int *)state == 7 && *name != 0 && text != NULL);
  __atomic_fetch_add(&events, 1, __ATOMIC_SEQ_CST);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  join(path, sizeof path, argv[1], "db");
  CHECK(esker_abi_version() == ESKER_ABI_VERSION && *esker_version() != 0);
  CHECK(esker_last_error_code() == ESKER_OK && *esker_last_error_message() == 0);
  CHECK(strcmp(esker_code_name(ESKER_CORRUPTION), "ESKER_CORRUPTION") == 0);
  char *escaped;
  OK(esker_escape_key("a\0\xff", 3, &escaped));
  CHECK(is_text(escaped, strlen(escaped), "a\\x00\\xff"));

  esker_options *options;
  esker_db *db;
  OK(esker_options_create(&options));
  OK(esker_options_set_create_if_missing(options, false));
  CHECK_CODE(ESKER_NOT_FOUND, esker_db_open(path, options, &db));
  CHECK(!esker_last_error_is_disk_full());
  CHECK(db == NULL);
  OK(esker_options_set_create_if_missing(options, true));
  OK(esker_options_set_profile(options, "balanced"));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_options_set_profile(options, "none"));
  OK(esker_options_set_write_buffer_bytes(options, 1 << 20));
  OK(esker_options_set_block_cache_bytes(options, 1 << 20));
  OK(esker_options_set_block_bytes(options, 4096));
  OK(esker_options_set_compression(options, ESKER_COMPRESSION_LZ4));
  OK(esker_options_set_upper_compression(options, ESKER_COMPRESSION_NONE));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_options_set_compression(options, 99));
  OK(esker_options_set_filter_bits_per_key(options, 10));
  OK(esker_options_set_target_file_bytes(options, 1 << 20));
  OK(esker_options_set_min_blob_size(options, 1 << 16));
  OK(esker_options_set_wal_segment_bytes(options, 1 << 20));
  OK(esker_options_set_wal_mode(options, ESKER_WAL_PLAIN));
  OK(esker_options_set_read_mode(options, ESKER_READ_AUTO));
  OK(esker_options_set_background_threads(options, 1));
  OK(esker_options_set_compaction_bytes_per_second(options, 0));
  OK(esker_options_set_memory_budget_bytes(options, 64 << 20));
  OK(esker_options_set_latency_histograms(options, true));
  bool available;
  OK(esker_compression_is_available(ESKER_COMPRESSION_LZ4, &available));
  CHECK(available);
  OK(esker_options_validate(options));
  OK(esker_options_set_memory_budget_bytes(options, 10));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_options_validate(options));
  OK(esker_options_set_memory_budget_bytes(options, 64 << 20));
  char *explained;
  OK(esker_options_explain(options, &explained));
  CHECK(strstr(explained, "memory_budget_bytes = 64 MiB") != NULL);
  esker_free(explained);
  OK(esker_options_set_clock(options, new_state(), now, end_state));
  OK(esker_options_set_event_listener(options, new_state(), count_event, end_state));
  OK(esker_db_open(path, options, &db));
  OK(esker_options_destroy(options));

  values(db);
  scans(db);
  merges(db);
  expiries(db);
  later_operator(db);
  renaming(db);
  transactions(db);
  maintenance(db, argv[1]);
  OK(esker_db_close(db));
  orders(argv[1]);
  CHECK(events > 0);
  size_t unused;
  OK(esker_unused_memory_bytes(&unused));
  CHECK(unused > 0);
  OK(esker_release_unused_memory());
  OK(esker_unused_memory_bytes(&unused));
  CHECK(unused == 0);
  CHECK(states == 0);
  puts("whole: passed");
  return 0;
}
