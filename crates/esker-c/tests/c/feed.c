/* The change feed, watches, scans without values, and what a keyspace says of itself. Takes an empty
 * directory. */

#include "check.h"

#include <pthread.h>

static char path[4096];

static esker_db *open_with_feed(const char *name) {
  static char place[4200];
  join(place, sizeof place, path, name);
  esker_options *options;
  esker_db *db;
  OK(esker_options_create(&options));
  OK(esker_options_set_keep_changes_time(options, 86400000));
  OK(esker_options_set_keep_changes_bytes(options, 1 << 20));
  OK(esker_options_set_wal_segment_bytes(options, 64 << 10));
  OK(esker_db_open(place, options, &db));
  OK(esker_options_destroy(options));
  return db;
}

static bool one_pair(void *state, esker_bytes *key, esker_bytes *value) {
  if ((*(int *)state)++ > 0) return false;
  key->data = value->data = "loaded";
  key->length = value->length = 6;
  return true;
}

static const esker_change *next(esker_changes *changes, size_t expected) {
  const esker_change *batch;
  size_t count;
  OK(esker_changes_next(changes, &batch, &count));
  CHECK(count == expected && (batch == NULL) == (count == 0));
  return batch;
}

static void operations(void) {
  esker_db *db = open_with_feed("operations");
  esker_keyspace_options *options;
  esker_keyspace *names;
  OK(esker_keyspace_options_create(&options));
  OK(esker_keyspace_options_set_ttl(options, true, 0));
  OK(esker_keyspace_options_set_built_in_operator(options, "max"));
  OK(esker_db_keyspace(db, "names", options, &names));
  OK(esker_keyspace_options_destroy(options));
  esker_changes *changes;
  OK(esker_db_changes(db, 0, false, &changes));
  next(changes, 0);

  esker_batch *batch;
  OK(esker_db_batch(db, &batch));
  OK(esker_batch_put(batch, names, "a\0b", 3, TEXT("1")));
  OK(esker_batch_put_until(batch, names, TEXT("t"), TEXT("2"), UINT64_C(4102444800000)));
  OK(esker_batch_merge(batch, names, TEXT("m"), TEXT("3")));
  OK(esker_batch_delete(batch, names, TEXT("t")));
  OK(esker_batch_commit(batch, NULL));
  OK(esker_batch_destroy(batch));
  const esker_change *change = next(changes, 4);
  for (int i = 0; i < 4; i++) CHECK(strcmp(change[i].keyspace, "names") == 0);
  for (int i = 1; i < 4; i++) CHECK(change[i].sequence > change[i - 1].sequence);
  CHECK(change[0].operation == ESKER_CHANGE_PUT && change[0].expires_at_ms == ESKER_NEVER);
  CHECK(change[0].key.length == 3 && memcmp(change[0].key.data, "a\0b", 3) == 0);
  CHECK(is_bytes(change[0].value, "1") && change[0].keyspace_id == change[3].keyspace_id);
  CHECK(change[1].operation == ESKER_CHANGE_PUT);
  CHECK(change[1].expires_at_ms == UINT64_C(4102444800000));
  CHECK(change[2].operation == ESKER_CHANGE_MERGE && change[2].is_first);
  CHECK(is_bytes(change[2].key, "m") && is_bytes(change[2].value, "3"));
  CHECK(change[3].operation == ESKER_CHANGE_DELETE && is_bytes(change[3].key, "t"));
  CHECK(change[3].value.data == NULL);
  uint64_t last = change[3].sequence, position;
  OK(esker_changes_position(changes, &position));
  CHECK(position == last + 1);

  esker_range range = {TEXT("a"), TEXT("m")};
  OK(esker_keyspace_delete_range(names, &range, NULL));
  change = next(changes, 1);
  CHECK(change->operation == ESKER_CHANGE_DELETE_RANGE);
  CHECK(is_bytes(change->key, "a") && is_bytes(change->value, "m"));
  CHECK(!change->start_is_excluded && !change->end_is_included);
  OK(esker_keyspace_delete_range(names, NULL, NULL));
  change = next(changes, 1);
  CHECK(change->key.data == NULL && change->value.data == NULL);
  int given = 0;
  OK(esker_keyspace_ingest(names, &given, one_pair, NULL));
  CHECK(next(changes, 1)->operation == ESKER_CHANGE_LOAD);
  OK(esker_keyspace_destroy(names));
  OK(esker_db_drop_keyspace(db, "names"));
  change = next(changes, 1);
  CHECK(change->operation == ESKER_CHANGE_DROP_KEYSPACE && strcmp(change->keyspace, "names") == 0);
  next(changes, 0);
  OK(esker_changes_destroy(changes));

  /* Anew, from a number. */
  OK(esker_db_changes(db, last, false, &changes));
  CHECK(next(changes, 1)->operation == ESKER_CHANGE_DELETE);
  OK(esker_changes_destroy(changes));
  OK(esker_db_close(db));
}

/* Other names and settings have a place among the changes. */
static void alterations(void) {
  esker_db *db = open_with_feed("alterations");
  esker_keyspace *names;
  esker_keyspace_options *options;
  esker_changes *changes;
  uint64_t of_put, of_rename, id, number;
  OK(esker_db_keyspace(db, "names", NULL, &names));
  OK(esker_db_changes(db, 0, false, &changes));
  OK(esker_keyspace_put(names, TEXT("k"), TEXT("5"), NULL));
  OK(esker_keyspace_rename(names, "people"));
  OK(esker_keyspace_options_create(&options));
  OK(esker_keyspace_options_set_built_in_operator(options, "max"));
  OK(esker_keyspace_set_merge_operator(names, options));
  OK(esker_keyspace_options_destroy(options));
  /* Its operand is combined first. */
  OK(esker_keyspace_merge(names, TEXT("k"), TEXT("7"), NULL));
  OK(esker_keyspace_set_ttl(names, 5000));
  OK(esker_keyspace_set_ttl(names, 0));

  const esker_change *change = next(changes, 1);
  of_put = change->sequence;
  id = change->keyspace_id;
  CHECK(change->operation == ESKER_CHANGE_PUT && strcmp(change->keyspace, "names") == 0);
  change = next(changes, 1);
  of_rename = change->sequence;
  CHECK(change->operation == ESKER_CHANGE_ALTER_KEYSPACE && change->keyspace_id == id);
  CHECK(strcmp(change->keyspace, "people") == 0 && is_bytes(change->key, "names"));
  CHECK(change->value.data == NULL && change->expires_at_ms == ESKER_NEVER);
  change = next(changes, 1);
  CHECK(change->operation == ESKER_CHANGE_ALTER_KEYSPACE && is_bytes(change->key, "people"));
  CHECK(is_bytes(change->value, "max") && change->expires_at_ms == ESKER_NEVER);
  CHECK(next(changes, 1)->operation == ESKER_CHANGE_MERGE);
  change = next(changes, 1);
  CHECK(change->operation == ESKER_CHANGE_ALTER_KEYSPACE && change->expires_at_ms == 5000);
  CHECK(is_bytes(change->key, "people") && is_bytes(change->value, "max"));

  /* What it was at a place; the batch stays lent. */
  const esker_change *last = next(changes, 1);
  const esker_keyspace_settings *settings;
  OK(esker_changes_keyspace_settings(changes, id, of_put, &settings));
  CHECK(strcmp(settings->name, "names") == 0 && strcmp(settings->comparator, "bytewise") == 0);
  CHECK(settings->merge_operator == NULL && settings->default_ttl_ms == ESKER_NEVER);
  OK(esker_changes_keyspace_settings(changes, id, of_rename, &settings));
  CHECK(strcmp(settings->name, "people") == 0 && settings->merge_operator == NULL);
  OK(esker_changes_keyspace_settings(changes, id, last->sequence - 1, &settings));
  CHECK(strcmp(settings->merge_operator, "max") == 0 && settings->default_ttl_ms == 5000);
  OK(esker_changes_keyspace_settings(changes, id, last->sequence, &settings));
  CHECK(settings->default_ttl_ms == 0 && last->expires_at_ms == 0);
  CHECK(is_bytes(last->key, "people"));
  OK(esker_changes_keyspace_settings(changes, id + 1000, last->sequence, &settings));
  CHECK(settings == NULL);

  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_changes_keyspace_settings(changes, id, 0, NULL));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_changes_keyspace_settings(NULL, id, 0, &settings));
  OK(esker_keyspace_id(names, &number));
  CHECK(number == id);
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_id(names, NULL));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_keyspace_id(NULL, &number));
  CHECK(number == 0);
  OK(esker_db_close(db));
  CHECK_CODE(ESKER_READ_ONLY, esker_keyspace_rename(names, "closed"));
  OK(esker_changes_destroy(changes));
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_changes_keyspace_settings(changes, id, 0, &settings));
  CHECK(settings == NULL);
  OK(esker_keyspace_destroy(names));
}

static void durable(void) {
  esker_db *db = open_with_feed("durable");
  esker_keyspace *names;
  esker_changes *changes;
  OK(esker_db_keyspace(db, "names", NULL, &names));
  OK(esker_db_changes(db, 0, true, &changes));
  OK(esker_keyspace_put(names, TEXT("k"), TEXT("v"), NULL));
  next(changes, 0);
  OK(esker_db_sync(db));
  next(changes, 1);
  OK(esker_changes_destroy(changes));
  OK(esker_keyspace_destroy(names));
  OK(esker_db_close(db));
}

/* Changes that are not kept any more, and those of a database that keeps none. */
static void gone(void) {
  esker_db *db = open_with_feed("gone");
  esker_keyspace *names;
  esker_changes *changes, *early;
  OK(esker_db_keyspace(db, "names", NULL, &names));
  OK(esker_keyspace_put(names, TEXT("first"), TEXT("v"), NULL));
  OK(esker_db_changes(db, 1, false, &early));
  CHECK(esker_last_error_oldest_write() == 0);
  static char value[1 << 10];
  esker_code code = ESKER_OK;
  for (int i = 0; i < 20000 && code == ESKER_OK; i++) {
    OK(esker_keyspace_put(names, TEXT("k"), value, sizeof value, NULL));
    if (i % 1000 < 999) continue;
    OK(esker_db_flush(db));
    code = esker_db_changes(db, 1, false, &changes);
    if (code == ESKER_OK) OK(esker_changes_destroy(changes));
  }
  CHECK(code == ESKER_GONE && changes == NULL);
  uint64_t oldest = esker_last_error_oldest_write();
  CHECK(oldest > 1 && !esker_last_error_is_retryable());
  OK(esker_db_changes(db, oldest, false, &changes));
  OK(esker_changes_destroy(changes));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_changes(db, UINT64_MAX, false, &changes));
  CHECK(esker_last_error_oldest_write() == 0);
  OK(esker_changes_destroy(early));
  OK(esker_keyspace_destroy(names));
  OK(esker_db_close(db));

  char place[4200];
  join(place, sizeof place, path, "keeps-none");
  OK(esker_db_open(place, NULL, &db));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_changes(db, 0, false, &changes));
  CHECK(changes == NULL);
  OK(esker_db_close(db));
}

static esker_keyspace *written;

static void *write_one(void *argument) {
  OK(esker_keyspace_put(written, TEXT("key"), TEXT("v"), NULL));
  return argument;
}

static esker_watch *waited;

static void *wait_for_close(void *argument) {
  bool found;
  CHECK_CODE(ESKER_READ_ONLY, esker_watch_wait(waited, UINT64_MAX, &found));
  CHECK(!found);
  return argument;
}

static void waits(void) {
  esker_db *db = open_with_feed("waits");
  esker_watch *watch;
  esker_changes *changes;
  bool found;
  pthread_t thread;
  OK(esker_db_keyspace(db, "names", NULL, &written));
  OK(esker_keyspace_watch(written, TEXT("k"), &watch));
  OK(esker_watch_wait(watch, 0, &found));
  CHECK(!found);
  OK(esker_keyspace_put(written, TEXT("other"), TEXT("v"), NULL));
  OK(esker_watch_wait(watch, 1, &found));
  CHECK(!found);
  CHECK(pthread_create(&thread, NULL, write_one, NULL) == 0);
  OK(esker_watch_wait(watch, UINT64_MAX, &found));
  CHECK(found);
  CHECK(pthread_join(thread, NULL) == 0);
  OK(esker_watch_wait(watch, 0, &found));
  CHECK(!found);
  OK(esker_watch_destroy(watch));
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_watch_wait(watch, 0, &found));

  /* The first wait for changes begins to watch, and says that there may be more. */
  OK(esker_db_changes(db, 0, false, &changes));
  OK(esker_changes_wait(changes, 0, &found));
  CHECK(found);
  next(changes, 1);
  next(changes, 1);
  next(changes, 0);
  OK(esker_changes_wait(changes, 0, &found));
  CHECK(!found);
  CHECK(pthread_create(&thread, NULL, write_one, NULL) == 0);
  OK(esker_changes_wait(changes, UINT64_MAX, &found));
  CHECK(found);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(is_bytes(next(changes, 1)->key, "key"));

  /* The end of the database ends waits. What was committed before can be read. */
  OK(esker_keyspace_watch(written, NULL, 0, &waited));
  CHECK(pthread_create(&thread, NULL, wait_for_close, NULL) == 0);
  OK(esker_db_close(db));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_CODE(ESKER_READ_ONLY, esker_changes_wait(changes, UINT64_MAX, &found));
  CHECK_CODE(ESKER_READ_ONLY, esker_keyspace_watch(written, NULL, 0, &watch));
  CHECK(watch == NULL);
  next(changes, 0);
  OK(esker_changes_destroy(changes));
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_changes_destroy(changes));
  OK(esker_watch_destroy(waited));
  OK(esker_keyspace_destroy(written));
}

static void misuse(void) {
  esker_db *db = open_with_feed("misuse");
  esker_keyspace *names;
  esker_changes *changes;
  esker_watch *watch;
  const esker_change *batch;
  size_t count;
  bool found;
  uint64_t number;
  OK(esker_db_keyspace(db, "names", NULL, &names));
  OK(esker_db_changes(db, 0, false, &changes));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_changes(db, 0, false, NULL));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_db_changes((esker_db *)names, 0, false, &changes));
  CHECK(changes == NULL);
  OK(esker_db_changes(db, 0, false, &changes));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_changes_next(changes, NULL, &count));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_changes_next(changes, &batch, NULL));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_changes_next(NULL, &batch, &count));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_changes_position((esker_changes *)db, &number));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_changes_wait(changes, 0, NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_watch(names, NULL, 1, &watch));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_watch(names, "k", SIZE_MAX, &watch));
  CHECK(watch == NULL);
  OK(esker_keyspace_watch(names, TEXT("k"), &watch));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_watch_wait((esker_watch *)changes, 0, &found));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_watch_wait(watch, 0, NULL));
  OK(esker_db_drop_keyspace(db, "names"));
  OK(esker_watch_wait(watch, 0, &found));
  CHECK(found);
  OK(esker_watch_destroy(watch));
  CHECK_CODE(ESKER_KEYSPACE_DROPPED, esker_keyspace_watch(names, TEXT("k"), &watch));
  OK(esker_keyspace_destroy(names));
  OK(esker_changes_destroy(changes));
  OK(esker_db_close(db));
}

static int pairs_told = 0;

static bool tell_pair(void *state, esker_bytes key, esker_bytes value) {
  CHECK(is_bytes(key, state == NULL ? "b1" : "b2") && is_bytes(value, "v"));
  pairs_told++;
  return false;
}

static void scans(void) {
  esker_db *db = open_with_feed("scans");
  esker_keyspace *names;
  OK(esker_db_keyspace(db, "names", NULL, &names));
  const char *all[] = {"a1", "b1", "b2", "c1"};
  for (int i = 0; i < 4; i++) OK(esker_keyspace_put(names, TEXT(all[i]), TEXT("v"), NULL));

  esker_iterator *iterator;
  esker_bytes key, value;
  bool found;
  OK(esker_iterator_create(names, NULL, NULL, &iterator));
  OK(esker_iterator_next(iterator, &key, &value, &found));
  CHECK(found && is_bytes(key, "a1") && is_bytes(value, "v"));
  OK(esker_iterator_keys_only(iterator));
  OK(esker_iterator_keys_only(iterator));
  OK(esker_iterator_next(iterator, &key, &value, &found));
  CHECK(found && is_bytes(key, "b1") && value.length == 0 && value.data != NULL);
  OK(esker_iterator_next_back(iterator, &key, &value, &found));
  CHECK(found && is_bytes(key, "c1") && value.length == 0);
  OK(esker_iterator_next_back(iterator, &key, &value, &found));
  OK(esker_iterator_next_back(iterator, &key, &value, &found));
  CHECK(!found);
  OK(esker_iterator_destroy(iterator));
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_iterator_keys_only(iterator));

  esker_cursor *cursor;
  size_t length;
  esker_range range = {TEXT("b"), TEXT("c")};
  OK(esker_cursor_create_within(names, NULL, false, &range, &cursor));
  OK(esker_cursor_seek_to_first(cursor));
  CHECK(memcmp(esker_cursor_key(cursor, &length), "b1", 2) == 0);
  OK(esker_cursor_prev(cursor));
  CHECK(!esker_cursor_valid(cursor));
  OK(esker_cursor_seek_to_last(cursor));
  CHECK(memcmp(esker_cursor_key(cursor, &length), "b2", 2) == 0);
  OK(esker_cursor_destroy(cursor));
  OK(esker_cursor_create_within(names, NULL, true, NULL, &cursor));
  OK(esker_cursor_seek_to_last(cursor));
  CHECK(memcmp(esker_cursor_key(cursor, &length), "c1", 2) == 0);
  OK(esker_cursor_destroy(cursor));

  esker_transaction *transaction;
  uint64_t sequence, seen;
  esker_snapshot *snapshot;
  OK(esker_db_transaction(db, &transaction));
  OK(esker_transaction_scan_prefix(transaction, names, TEXT("b"), false, NULL, tell_pair));
  OK(esker_transaction_scan_prefix(transaction, names, TEXT("b"), true, db, tell_pair));
  CHECK(pairs_told == 2);
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_transaction_scan_prefix(transaction, names, TEXT("b"), false, NULL, NULL));
  OK(esker_db_snapshot(db, &snapshot));
  OK(esker_snapshot_sequence(snapshot, &sequence));
  OK(esker_transaction_sequence(transaction, &seen));
  CHECK(seen == sequence && seen >= 4);
  OK(esker_transaction_rollback(transaction));

  char buffer[1];
  OK(esker_keyspace_delete(names, TEXT("a1"), NULL));
  OK(esker_snapshot_get_into(snapshot, names, TEXT("a1"), buffer, 1, &length, &found));
  CHECK(found && length == 1 && buffer[0] == 'v');
  CHECK_CODE(ESKER_BUFFER_TOO_SHORT,
             esker_snapshot_get_into(snapshot, names, TEXT("a1"), buffer, 0, &length, &found));
  CHECK(found && length == 1);
  OK(esker_snapshot_get_into(snapshot, names, TEXT("z"), NULL, 0, &length, &found));
  CHECK(!found);
  OK(esker_snapshot_destroy(snapshot));

  char *text;
  OK(esker_db_metrics(db, &text));
  CHECK(strstr(text, "\n# TYPE esker_") != NULL);
  esker_free(text);
  OK(esker_keyspace_destroy(names));
  OK(esker_db_close(db));
}

static void properties(void) {
  esker_db *db = open_with_feed("properties");
  esker_keyspace_options *options;
  esker_keyspace *plain, *other;
  char *name;
  int32_t order, style;
  bool enabled;
  uint64_t number;
  OK(esker_db_keyspace(db, "plain", NULL, &plain));
  OK(esker_keyspace_options_create(&options));
  OK(esker_keyspace_options_set_built_in_operator(options, "max"));
  OK(esker_keyspace_options_set_reverse_order(options));
  OK(esker_keyspace_options_set_ttl(options, true, 5000));
  OK(esker_keyspace_options_set_fifo(options, 1 << 20));
  OK(esker_db_keyspace(db, "other", options, &other));
  OK(esker_keyspace_options_destroy(options));

  OK(esker_keyspace_merge_operator(plain, &name));
  CHECK(name == NULL);
  OK(esker_keyspace_merge_operator(other, &name));
  CHECK(is_text(name, strlen(name), "max"));
  OK(esker_keyspace_compare_keys(plain, TEXT("a"), TEXT("b"), &order));
  CHECK(order == -1);
  OK(esker_keyspace_compare_keys(plain, TEXT("b"), TEXT("a"), &order));
  CHECK(order == 1);
  OK(esker_keyspace_compare_keys(other, TEXT("a"), TEXT("b"), &order));
  CHECK(order == 1);
  OK(esker_keyspace_compare_keys(other, TEXT("a"), TEXT("a"), &order));
  CHECK(order == 0);
  OK(esker_keyspace_ttl(plain, &enabled, &number));
  CHECK(!enabled && number == 0);
  OK(esker_keyspace_ttl(other, &enabled, &number));
  CHECK(enabled && number == 5000);
  OK(esker_keyspace_compaction_style(plain, &style, &number));
  CHECK(style == ESKER_COMPACTION_LAZY_LEVELING && number == 0);
  OK(esker_keyspace_compaction_style(other, &style, &number));
  CHECK(style == ESKER_COMPACTION_FIFO && number == 1 << 20);
  OK(esker_keyspace_destroy(plain));
  OK(esker_keyspace_destroy(other));
  OK(esker_db_close(db));
}

/* A database that is opened in between keeps what is kept. */
static void as_before(void) {
  esker_db *db = open_with_feed("as before");
  char directory[4200];
  snprintf(directory, sizeof directory, "%s/as before", path);
  esker_keyspace *names;
  esker_options *options;
  OK(esker_db_keyspace(db, "names", NULL, &names));
  OK(esker_keyspace_put(names, TEXT("a"), TEXT("1"), NULL));
  OK(esker_keyspace_destroy(names));
  OK(esker_db_close(db));
  OK(esker_options_create(&options));
  OK(esker_options_set_keep_changes_as_before(options));
  OK(esker_db_open(directory, options, &db));
  OK(esker_options_destroy(options));
  OK(esker_db_existing_keyspace(db, "names", &names));
  OK(esker_keyspace_put(names, TEXT("b"), TEXT("2"), NULL));
  esker_changes *changes;
  OK(esker_db_changes(db, 0, false, &changes));
  const esker_change *batch;
  size_t count;
  for (int i = 0; i < 3; i++) {
    OK(esker_changes_next(changes, &batch, &count));
    CHECK(count == (i < 2 ? 1 : 0));
    CHECK(i == 2 || memcmp(batch[0].key.data, &"ab"[i], 1) == 0);
  }
  OK(esker_changes_destroy(changes));
  OK(esker_keyspace_destroy(names));
  OK(esker_db_close(db));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_options_set_keep_changes_as_before(NULL));
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  snprintf(path, sizeof path, "%s", argv[1]);
  operations();
  alterations();
  durable();
  gone();
  waits();
  misuse();
  scans();
  properties();
  as_before();
  puts("feed: passed");
  return 0;
}
