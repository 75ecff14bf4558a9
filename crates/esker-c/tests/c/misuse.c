/* What a program does wrong is told, and nothing worse happens. Takes an empty directory. */

#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[4096];

static void wrong_handles(esker_db *db, esker_keyspace *names) {
  char *value;
  size_t length;
  bool found;
  /* NULL, another type, no handle at all. */
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_keyspace_get(NULL, TEXT("k"), &value, &length));
  CHECK(value == NULL && length == 0);
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_keyspace_get((esker_keyspace *)db, TEXT("k"), &value, &length));
  CHECK(strstr(esker_last_error_message(), "an esker_db instead of an esker_keyspace") != NULL);
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_db_close((esker_db *)names));
  long own = 0;
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_db_flush((esker_db *)&own));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_db_flush((esker_db *)(uintptr_t)0x1234567));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_db_flush((esker_db *)(uintptr_t)-1));
  CHECK(!esker_cursor_valid((esker_cursor *)db) && esker_cursor_key(NULL, &length) == NULL);
  esker_write_options *options = (esker_write_options *)names;
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_keyspace_put(names, TEXT("k"), TEXT("v"), options));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_output_set((esker_output *)db, TEXT("v")));

  /* Closed twice, and used when closed. */
  esker_snapshot *snapshot;
  OK(esker_db_snapshot(db, &snapshot));
  OK(esker_snapshot_destroy(snapshot));
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_snapshot_destroy(snapshot));
  esker_snapshot *next;
  OK(esker_db_snapshot(db, &next));
  CHECK(next != snapshot);
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_snapshot_contains_key(snapshot, names, TEXT("k"), &found));
  OK(esker_snapshot_destroy(next));
}

static void wrong_arguments(esker_db *db, esker_keyspace *names) {
  char *value;
  size_t length;
  static char long_key[(1 << 20) + 1];
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_get(names, NULL, 1, &value, &length));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_get(names, TEXT("k"), NULL, &length));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_get(names, TEXT("k"), &value, NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_put(names, "k", SIZE_MAX, TEXT("v"), NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_put(names, "k", (size_t)1 << 62, TEXT("v"), NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_put(names, TEXT("k"), "v", (size_t)-1, NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_keyspace_put(names, TEXT("k"), "v", ((size_t)1 << 30) + 1, NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_keyspace_put(names, long_key, sizeof long_key, TEXT("v"), NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_keyspace_multi_get(names, NULL, SIZE_MAX, &value, &length, NULL));
  esker_range range = {"k", SIZE_MAX, NULL, 0};
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_delete_range(names, &range, NULL));

  esker_keyspace *keyspace;
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_keyspace(db, NULL, NULL, &keyspace));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_keyspace(db, "", NULL, &keyspace));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_keyspace(db, "\xff\xfe", NULL, &keyspace));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_keyspace(db, "names", NULL, NULL));
  esker_db *other;
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_open(NULL, NULL, &other));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_open("", NULL, &other));
  CHECK(other == NULL);
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_ingest(names, NULL, NULL, NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_properties(db, NULL, NULL));
  CHECK_CODE(ESKER_IO, esker_db_open("/dev/null/db", NULL, &other));
  esker_keyspace_options *options;
  OK(esker_keyspace_options_create(&options));
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_keyspace_options_set_merge_operator(options, "none", NULL, NULL, NULL, NULL, NULL));
  OK(esker_keyspace_options_destroy(options));
  esker_options *db_options;
  OK(esker_options_create(&db_options));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_options_set_clock(db_options, NULL, NULL, NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_options_set_wal_mode(db_options, -1));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_options_explain(db_options, NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_unused_memory_bytes(NULL));
  bool answer = true;
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_compression_is_available(99, &answer));
  CHECK(!answer);
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_options_validate((esker_options *)names));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_options_validate(NULL));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_keyspace_options_drops_values_in_compaction(NULL, &answer));
  OK(esker_options_destroy(db_options));
  esker_free(NULL);
}

static bool bad_pair(void *state, esker_bytes *key, esker_bytes *value) {
  static int given = 0;
  (void)state;
  key->data = given++ == 0 ? "a" : NULL;
  key->length = 1;
  *value = *key;
  return true;
}

static void two_opens(esker_db *db) {
  esker_db *again;
  CHECK_CODE(ESKER_LOCKED, esker_db_open(path, NULL, &again));
  CHECK(again == NULL && esker_last_error_is_retryable());
  char *report;
  CHECK_CODE(ESKER_LOCKED, esker_db_repair(path, NULL, &report));
  OK(esker_db_open_read_only(path, NULL, &again));
  OK(esker_db_close(again));
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_db_close(again));
  (void)db;
}

static char garbage;

/* Makes a call whose results were garbage before, and checks that they are NULL after its failure. */
#define NULLS(expected, call)                                                          \
  do {                                                                                 \
    key = value = &garbage;                                                            \
    handle = &garbage;                                                                 \
    lent = &garbage;                                                                   \
    key_bytes.data = value_bytes.data = &garbage;                                      \
    CHECK_CODE(expected, call);                                                        \
    CHECK((key == NULL) == (strstr(#call, "&key,") != NULL));                          \
    CHECK((value == NULL) ==                                                           \
          (strstr(#call, "&value,") != NULL || strstr(#call, "&value)") != NULL));     \
    CHECK((handle == NULL) == (strstr(#call, "&handle") != NULL));                     \
    CHECK((lent == NULL) == (strstr(#call, "&lent") != NULL));                         \
    CHECK((key_bytes.data == NULL) == (strstr(#call, "&key_bytes") != NULL));          \
    CHECK((value_bytes.data == NULL) == (strstr(#call, "&value_bytes") != NULL));      \
  } while (0)

/* The objects that calls fail with. */
typedef struct {
  esker_db *db;
  esker_keyspace *keyspace;
  esker_snapshot *snapshot;
  esker_transaction *transaction;
  esker_iterator *iterator;
  esker_cursor *cursor;
  esker_changes *changes;
  esker_follower *follower;
  esker_options *options;
} objects;

/* Every function that returns a pointer, with objects that cannot be used. */
static void null_results(esker_code code, const objects *all) {
  char *key, *value;
  void *handle;
  const void *lent;
  size_t key_length, length, count;
  bool found;
  esker_bytes key_bytes, value_bytes, keys = {"k", 1};
  esker_keyspace *names = all->keyspace;
  esker_snapshot *snapshot = all->snapshot;
  esker_transaction *transaction = all->transaction;
  NULLS(code, esker_keyspace_get(names, TEXT("k"), &value, &length));
  NULLS(code, esker_keyspace_multi_get(names, &keys, 1, &value, &length, NULL));
  NULLS(code, esker_keyspace_first(names, &key, &key_length, &value, &length));
  NULLS(code, esker_keyspace_last(names, &key, &key_length, &value, &length));
  NULLS(code, esker_keyspace_pop_first(names, &key, &key_length, &value, &length));
  NULLS(code, esker_keyspace_put_if_absent(names, TEXT("k"), TEXT("v"), NULL, &value, &length));
  NULLS(code, esker_keyspace_compare_and_swap(names, TEXT("k"), NULL, 0, TEXT("v"), NULL, &found,
                                              &value, &length));
  NULLS(code, esker_keyspace_merge_and_get(names, TEXT("k"), TEXT("v"), NULL, &value, &length));
  NULLS(code, esker_keyspace_take(names, TEXT("k"), NULL, &value, &length));
  NULLS(code, esker_keyspace_name(names, &value));
  NULLS(code, esker_keyspace_comparator(names, &value));
  NULLS(code, esker_keyspace_merge_operator(names, &value));
  NULLS(code, esker_keyspace_watch(names, TEXT("k"), (esker_watch **)&handle));
  NULLS(code, esker_snapshot_get(snapshot, names, TEXT("k"), &value, &length));
  NULLS(code, esker_snapshot_multi_get(snapshot, names, &keys, 1, &value, &length, NULL));
  NULLS(code, esker_snapshot_first(snapshot, names, &key, &key_length, &value, &length));
  NULLS(code, esker_snapshot_last(snapshot, names, &key, &key_length, &value, &length));
  NULLS(code, esker_transaction_get(transaction, names, TEXT("k"), &value, &length));
  NULLS(code, esker_transaction_multi_get(transaction, names, &keys, 1, &value, &length, NULL));
  NULLS(code, esker_transaction_first(transaction, names, &key, &key_length, &value, &length));
  NULLS(code, esker_transaction_last(transaction, names, &key, &key_length, &value, &length));
  NULLS(code, esker_transaction_pop_first(transaction, names, &key, &key_length, &value, &length));
  NULLS(code, esker_cursor_create(names, snapshot, false, (esker_cursor **)&handle));
  NULLS(code, esker_cursor_create_within(names, snapshot, false, NULL, (esker_cursor **)&handle));
  NULLS(code, esker_iterator_create(names, snapshot, NULL, (esker_iterator **)&handle));
  NULLS(code, esker_iterator_create_prefix(names, snapshot, "", 0, (esker_iterator **)&handle));
  NULLS(code, esker_iterator_next(all->iterator, &key_bytes, &value_bytes, &found));
  NULLS(code, esker_iterator_next_back(all->iterator, &key_bytes, &value_bytes, &found));
  NULLS(code, esker_changes_next(all->changes, (const esker_change **)&lent, &count));
  NULLS(code, esker_changes_keyspace_settings(all->changes, 1, 1,
                                              (const esker_keyspace_settings **)&lent));
  NULLS(code, esker_follower_db(all->follower, (esker_db **)&handle));
  NULLS(code, esker_db_keyspace(all->db, "names", NULL, (esker_keyspace **)&handle));
  NULLS(code, esker_db_existing_keyspace(all->db, "names", (esker_keyspace **)&handle));
  NULLS(code, esker_db_snapshot(all->db, (esker_snapshot **)&handle));
  NULLS(code, esker_db_batch(all->db, (esker_batch **)&handle));
  NULLS(code, esker_db_transaction(all->db, (esker_transaction **)&handle));
  NULLS(code, esker_db_changes(all->db, 0, false, (esker_changes **)&handle));
  NULLS(code, esker_options_explain(all->options, &value));
  NULLS(code, esker_db_path(all->db, &value));
  NULLS(code, esker_db_stats(all->db, &value));
  NULLS(code, esker_db_explain(all->db, &value));
  NULLS(code, esker_db_metrics(all->db, &value));
  NULLS(code, esker_db_property(all->db, "esker.table_bytes", &value));
  CHECK(esker_cursor_key(all->cursor, &length) == NULL);
  CHECK(esker_cursor_value(all->cursor, &length) == NULL);
}

/* How far behind a follower is that there is not: no numbers are left of before. */
static void lag_of_no_follower(esker_db *db) {
  bool known = true;
  uint64_t batches = 7, log_bytes = 7, sequence = 7;
  CHECK_CODE(ESKER_WRONG_HANDLE,
             esker_follower_lag((esker_follower *)db, &known, &batches, &log_bytes, &sequence));
  CHECK(!known && batches == 0 && log_bytes == 0 && sequence == 0);
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_verify_directory(NULL, NULL, NULL, NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_db_verify_directory("", NULL, NULL, NULL));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_db_verify_directory(path, (esker_options *)db, NULL, NULL));
}

/* Results are NULL after a failure, whatever has failed. */
static void results_of_failures(esker_keyspace *names) {
  objects none = {0};
  null_results(ESKER_WRONG_HANDLE, &none);
  char *key, *value;
  void *handle;
  const void *lent;
  size_t length;
  esker_bytes key_bytes, value_bytes;
  NULLS(ESKER_INVALID_ARGUMENT, esker_escape_key(NULL, 1, &value));
  /* Also where another result has no place. */
  NULLS(ESKER_INVALID_ARGUMENT, esker_keyspace_first(names, NULL, &length, &value, &length));
  NULLS(ESKER_INVALID_ARGUMENT, esker_keyspace_first(names, &key, NULL, &value, &length));
  NULLS(ESKER_INVALID_ARGUMENT, esker_iterator_next(NULL, NULL, &value_bytes, NULL));
  NULLS(ESKER_INVALID_ARGUMENT, esker_keyspace_compare_and_swap(names, TEXT("k"), NULL, 0, TEXT("v"),
                                                                NULL, NULL, &value, &length));
  (void)handle, (void)lent, (void)key_bytes;
}

/* What only a child meets: functions without an object to fail with. */
static void null_results_of_opens(void) {
  char *key, *value;
  void *handle;
  const void *lent;
  esker_bytes key_bytes, value_bytes;
  NULLS(ESKER_FORKED, esker_db_open(path, NULL, (esker_db **)&handle));
  NULLS(ESKER_FORKED, esker_db_open_read_only(path, NULL, (esker_db **)&handle));
  NULLS(ESKER_FORKED, esker_follower_open(path, NULL, (esker_follower **)&handle));
  NULLS(ESKER_FORKED, esker_db_repair(path, NULL, &value));
  NULLS(ESKER_FORKED, esker_options_create((esker_options **)&handle));
  NULLS(ESKER_FORKED, esker_keyspace_options_create((esker_keyspace_options **)&handle));
  NULLS(ESKER_FORKED, esker_write_options_create((esker_write_options **)&handle));
  CHECK_CODE(ESKER_FORKED, esker_db_destroy(path, NULL));
  CHECK_CODE(ESKER_FORKED, esker_db_verify_directory(path, NULL, NULL, NULL));
  size_t bytes = 7;
  CHECK_CODE(ESKER_FORKED, esker_release_unused_memory());
  CHECK_CODE(ESKER_FORKED, esker_unused_memory_bytes(&bytes));
  CHECK(bytes == 0);
  /* That it is a child is told before any other mistake. */
  CHECK_CODE(ESKER_FORKED, esker_db_open(NULL, NULL, NULL));
  CHECK_CODE(ESKER_FORKED, esker_db_flush(NULL));
  (void)key, (void)lent, (void)key_bytes, (void)value_bytes;
}

static void in_child(esker_db *db, esker_keyspace *names, esker_cursor *cursor) {
  char *value;
  size_t length;
  CHECK_CODE(ESKER_FORKED, esker_keyspace_put(names, TEXT("child"), TEXT("1"), NULL));
  CHECK_CODE(ESKER_FORKED, esker_keyspace_get(names, TEXT("k"), &value, &length));
  CHECK_CODE(ESKER_FORKED, esker_cursor_next(cursor));
  CHECK_CODE(ESKER_FORKED, esker_db_close(db));
  esker_db *own;
  char other[4200];
  snprintf(other, sizeof other, "%s-of-child", path);
  CHECK_CODE(ESKER_FORKED, esker_db_open(path, NULL, &own));
  CHECK_CODE(ESKER_FORKED, esker_db_open(other, NULL, &own));
  CHECK(!esker_cursor_valid(cursor));
  CHECK(access(other, F_OK) != 0);
  objects all = {db, names, NULL, NULL, NULL, cursor, NULL, NULL, NULL};
  null_results(ESKER_FORKED, &all);
  null_results_of_opens();
}

/* Options do no harm to a child: only what works on a database does. */
static void fork_before_open(void) {
  esker_options *options;
  OK(esker_options_create(&options));
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_db_flush(NULL));
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    char other[4200];
    snprintf(other, sizeof other, "%s-before", path);
    esker_db *own;
    OK(esker_db_open(other, options, &own));
    OK(esker_db_close(own));
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  OK(esker_options_destroy(options));
}

/* A process that ends with all open loses nothing, and leaves no lock. */
static void exit_while_open(void) {
  char directory[4200];
  snprintf(directory, sizeof directory, "%s-exit", path);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    esker_db *db;
    esker_keyspace *names;
    esker_snapshot *snapshot;
    esker_cursor *cursor;
    OK(esker_db_open(directory, NULL, &db));
    OK(esker_db_keyspace(db, "names", NULL, &names));
    OK(esker_keyspace_put(names, TEXT("k"), TEXT("v"), NULL));
    OK(esker_db_snapshot(db, &snapshot));
    OK(esker_cursor_create(names, snapshot, false, &cursor));
    OK(esker_cursor_seek_to_first(cursor));
    exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void after_exit(void) {
  char directory[4200];
  snprintf(directory, sizeof directory, "%s-exit", path);
  esker_db *db;
  esker_keyspace *names;
  bool found;
  OK(esker_db_open(directory, NULL, &db));
  OK(esker_db_existing_keyspace(db, "names", &names));
  OK(esker_keyspace_contains_key(names, TEXT("k"), &found));
  CHECK(found);
  OK(esker_keyspace_destroy(names));
  OK(esker_db_close(db));
}

/* A destructor of the program runs behind those of the library. */
static int late_calls = 0;

static void call_late(void *argument) {
  (void)argument;
  CHECK(esker_last_error_message() != NULL);
  CHECK(esker_last_error_code() == ESKER_OK);
  CHECK(!esker_last_error_is_retryable());
  /* The code is told, and no message of it is kept. */
  CHECK(esker_db_flush(NULL) == ESKER_WRONG_HANDLE);
  CHECK(*esker_last_error_message() == 0);
  late_calls++;
}

static void *fail_and_end(void *key) {
  CHECK_CODE(ESKER_WRONG_HANDLE, esker_db_flush(NULL));
  CHECK(esker_last_error_code() == ESKER_WRONG_HANDLE);
  CHECK(pthread_setspecific(*(pthread_key_t *)key, key) == 0);
  return NULL;
}

static void end_of_thread(void) {
  pthread_key_t key;
  pthread_t thread;
  CHECK(pthread_key_create(&key, call_late) == 0);
  CHECK(pthread_create(&thread, NULL, fail_and_end, &key) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(late_calls == 1);
}

/* The pointer to no bytes can be read, for the zero byte of an empty text. */
static void empty_bytes(esker_db *db, esker_keyspace *names) {
  esker_iterator *iterator;
  esker_bytes key, value;
  bool found;
  OK(esker_keyspace_put(names, "", 0, "", 0, NULL));
  OK(esker_iterator_create(names, NULL, NULL, &iterator));
  OK(esker_iterator_next(iterator, &key, &value, &found));
  CHECK(found && key.length == 0 && value.length == 0);
  CHECK(*(const volatile char *)key.data == 0 && *(const volatile char *)value.data == 0);
  OK(esker_iterator_destroy(iterator));
  esker_cursor *cursor;
  size_t length;
  OK(esker_cursor_create(names, NULL, false, &cursor));
  OK(esker_cursor_seek_to_first(cursor));
  CHECK(*(const volatile char *)esker_cursor_key(cursor, &length) == 0 && length == 0);
  CHECK(*(const volatile char *)esker_cursor_value(cursor, &length) == 0 && length == 0);
  OK(esker_cursor_destroy(cursor));

  /* A result of a merge is in memory of its own, and has none where it is empty. */
  esker_keyspace_options *options;
  OK(esker_keyspace_options_create(&options));
  OK(esker_keyspace_options_set_built_in_operator(options, "put"));
  esker_keyspace *merged;
  OK(esker_db_keyspace(db, "empty", options, &merged));
  OK(esker_keyspace_options_destroy(options));
  OK(esker_keyspace_merge(merged, "", 0, "", 0, NULL));
  OK(esker_cursor_create(merged, NULL, false, &cursor));
  OK(esker_cursor_seek_to_first(cursor));
  CHECK(*(const volatile char *)esker_cursor_value(cursor, &length) == 0 && length == 0);
  OK(esker_cursor_destroy(cursor));
  OK(esker_keyspace_destroy(merged));
  OK(esker_keyspace_delete(names, "", 0, NULL));
}

static void fork_after_open(esker_db *db, esker_keyspace *names) {
  esker_cursor *cursor;
  OK(esker_cursor_create(names, NULL, false, &cursor));
  OK(esker_keyspace_put(names, TEXT("k"), TEXT("parent"), NULL));
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    in_child(db, names, cursor);
    /* Another program: what the threads of the parent had is nobody's here, and no leak. */
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  bool found;
  OK(esker_keyspace_contains_key(names, TEXT("child"), &found));
  CHECK(!found);
  OK(esker_keyspace_put(names, TEXT("k"), TEXT("still"), NULL));
  OK(esker_cursor_destroy(cursor));
}

struct shared {
  esker_keyspace *names;
  esker_batch *batch;
  int busy;
};

static void *add(void *argument) {
  struct shared *shared = argument;
  for (int i = 0; i < 2000; i++) {
    esker_code code = esker_batch_put(shared->batch, shared->names, TEXT("k"), TEXT("v"));
    CHECK(code == ESKER_OK || code == ESKER_BUSY_HANDLE || code == ESKER_CLOSED_HANDLE);
    code = esker_keyspace_put(shared->names, TEXT("t"), TEXT("v"), NULL);
    CHECK(code == ESKER_OK || code == ESKER_CLOSED_HANDLE);
    if (code == ESKER_CLOSED_HANDLE) break;
  }
  return NULL;
}

/* A batch in two threads at once, and handles that are closed under way. */
static void threads(esker_db *db) {
  struct shared shared = {NULL, NULL, 0};
  OK(esker_db_keyspace(db, "threads", NULL, &shared.names));
  OK(esker_db_batch(db, &shared.batch));
  pthread_t all[4];
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&all[i], NULL, add, &shared) == 0);
  add(&shared);
  OK(esker_batch_destroy(shared.batch));
  OK(esker_keyspace_destroy(shared.names));
  for (int i = 0; i < 4; i++) CHECK(pthread_join(all[i], NULL) == 0);
}

static esker_transaction *scanned;
static esker_keyspace *scanned_keyspace;

static bool use_the_transaction(void *state, esker_bytes key, esker_bytes value) {
  (void)key;
  (void)value;
  CHECK_CODE(ESKER_BUSY_HANDLE, esker_transaction_delete(scanned, scanned_keyspace, TEXT("k")));
  CHECK_CODE(ESKER_BUSY_HANDLE, esker_transaction_commit(scanned, NULL));
  ++*(int *)state;
  return true;
}

static esker_db *merging;
static esker_output *kept;

/* Calls its own database, and keeps its output. */
static bool rude(void *state, esker_bytes key, const esker_bytes *existing,
                 const esker_bytes *operands, size_t count, esker_output *output) {
  (void)existing;
  CHECK_CODE(ESKER_IN_CALLBACK, esker_keyspace_put(scanned_keyspace, TEXT("k"), TEXT("v"), NULL));
  CHECK_CODE(ESKER_IN_CALLBACK, esker_db_flush(merging));
  CHECK_CODE(ESKER_IN_CALLBACK, esker_keyspace_rename(scanned_keyspace, "other"));
  CHECK(key.length == 1 && count > 0);
  ++*(int *)state;
  kept = output;
  OK(esker_output_set(output, operands[0].data, operands[0].length));
  return true;
}

/* Returns true and sets nothing. */
static bool idle(void *state, esker_bytes key, const esker_bytes *existing,
                 const esker_bytes *operands, size_t count, esker_output *output) {
  (void)state, (void)key, (void)existing, (void)operands, (void)count, (void)output;
  return true;
}

/* What transactions are told about arguments, and the ones that have ended. */
static void wrong_transaction(esker_db *db, esker_keyspace *names) {
  char *value = NULL, buffer[1] = {'-'};
  size_t length = 7;
  uint64_t time = 7;
  bool found = true;
  esker_transaction *transaction;
  OK(esker_db_transaction(db, &transaction));
  OK(esker_transaction_put(transaction, names, TEXT("k"), TEXT("long")));
  CHECK_CODE(ESKER_BUFFER_TOO_SHORT,
             esker_transaction_get_into(transaction, names, TEXT("k"), buffer, 1, &length, &found));
  CHECK(found && length == 4 && buffer[0] == '-');
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_transaction_get_into(transaction, names, TEXT("k"), NULL, 9, &length, &found));
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_transaction_get_into(transaction, names, NULL, 1, buffer, 1, &length, &found));
  CHECK(!found && length == 0);
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_transaction_multi_get(transaction, names, NULL, 1, &value, &length, NULL));
  esker_bytes keys[2] = {{"k", 1}, {NULL, 1}};
  char *values[2];
  size_t lengths[2];
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_transaction_multi_get(transaction, names, keys, 2, values, lengths, NULL));
  CHECK(values[0] == NULL && values[1] == NULL);
  /* The time of what was written counts from the commit, and these keys never expire. */
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_transaction_expires_at(transaction, names, TEXT("k"), &found, &time));
  CHECK(!found && time == 0);
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_transaction_expires_at(transaction, names, TEXT("k"), &found, NULL));
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_transaction_merge_with_ttl(transaction, names, TEXT("k"), NULL, 1, 9));
  CHECK_CODE(ESKER_INVALID_ARGUMENT,
             esker_transaction_merge_with_ttl(transaction, names, TEXT("k"), TEXT("1"), 9));
  CHECK_CODE(ESKER_WRONG_HANDLE,
             esker_transaction_merge_with_ttl(transaction, (esker_keyspace *)db, TEXT("k"), TEXT("1"), 9));
  OK(esker_transaction_rollback(transaction));
  CHECK_CODE(ESKER_CLOSED_HANDLE,
             esker_transaction_get_into(transaction, names, TEXT("k"), buffer, 1, &length, &found));
  CHECK_CODE(ESKER_CLOSED_HANDLE,
             esker_transaction_multi_get(transaction, names, keys, 1, values, lengths, NULL));
  CHECK_CODE(ESKER_CLOSED_HANDLE,
             esker_transaction_expires_at(transaction, names, TEXT("k"), &found, &time));
  CHECK_CODE(ESKER_CLOSED_HANDLE,
             esker_transaction_merge_with_ttl(transaction, names, TEXT("k"), TEXT("1"), 9));
}

static void callbacks(esker_db *db, esker_keyspace *names) {
  int called = 0;
  OK(esker_keyspace_put(names, TEXT("k"), TEXT("v"), NULL));
  OK(esker_db_transaction(db, &scanned));
  scanned_keyspace = names;
  OK(esker_transaction_scan(scanned, names, NULL, false, &called, use_the_transaction));
  CHECK(called == 1);
  OK(esker_transaction_rollback(scanned));
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_transaction_commit(scanned, NULL));
  wrong_transaction(db, names);

  esker_keyspace_options *options;
  OK(esker_keyspace_options_create(&options));
  merging = db;
  OK(esker_keyspace_options_set_merge_operator(options, "rude", &called, rude, NULL, NULL, NULL));
  esker_keyspace *merged;
  OK(esker_db_keyspace(db, "rude", options, &merged));
  OK(esker_keyspace_merge(merged, TEXT("k"), TEXT("operand"), NULL));
  char *value;
  size_t length;
  OK(esker_keyspace_get(merged, TEXT("k"), &value, &length));
  CHECK(is_text(value, length, "operand") && called > 1);
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_output_set(kept, TEXT("too late")));
  OK(esker_keyspace_destroy(merged));
  OK(esker_keyspace_options_set_merge_operator(options, "idle", NULL, idle, NULL, NULL, NULL));
  OK(esker_db_keyspace(db, "idle", options, &merged));
  OK(esker_keyspace_options_destroy(options));
  OK(esker_keyspace_merge(merged, TEXT("k"), TEXT("operand"), NULL));
  CHECK_CODE(ESKER_MERGE_FAILED, esker_keyspace_get(merged, TEXT("k"), &value, &length));
  OK(esker_keyspace_destroy(merged));

  uint64_t entries = 7, count;
  esker_keyspace *loaded;
  OK(esker_db_keyspace(db, "loaded", NULL, &loaded));
  CHECK_CODE(ESKER_INVALID_ARGUMENT, esker_keyspace_ingest(loaded, NULL, bad_pair, &entries));
  OK(esker_keyspace_count(loaded, NULL, &count));
  CHECK(entries == 0 && count == 0);
  OK(esker_keyspace_destroy(loaded));
}

/* Handles that outlive their database read on, and write nothing. */
static void outlive(esker_db *db, esker_keyspace *names) {
  esker_snapshot *snapshot;
  esker_cursor *cursor;
  esker_iterator *iterator;
  esker_batch *batch;
  esker_transaction *transaction;
  OK(esker_keyspace_put(names, TEXT("k"), TEXT("v"), NULL));
  OK(esker_db_snapshot(db, &snapshot));
  OK(esker_cursor_create(names, snapshot, false, &cursor));
  OK(esker_iterator_create(names, NULL, NULL, &iterator));
  OK(esker_db_batch(db, &batch));
  OK(esker_batch_put(batch, names, TEXT("b"), TEXT("v")));
  OK(esker_db_transaction(db, &transaction));
  OK(esker_transaction_put(transaction, names, TEXT("t"), TEXT("v")));
  OK(esker_db_close(db));

  char *value;
  size_t length;
  bool found;
  esker_bytes key, bytes;
  OK(esker_keyspace_get(names, TEXT("k"), &value, &length));
  CHECK(is_text(value, length, "v"));
  CHECK_CODE(ESKER_READ_ONLY, esker_keyspace_put(names, TEXT("k"), TEXT("w"), NULL));
  CHECK_CODE(ESKER_READ_ONLY, esker_batch_commit(batch, NULL));
  CHECK_CODE(ESKER_READ_ONLY, esker_transaction_commit(transaction, NULL));
  OK(esker_cursor_seek_to_first(cursor));
  CHECK(esker_cursor_valid(cursor));
  OK(esker_iterator_next(iterator, &key, &bytes, &found));
  CHECK(found);
  OK(esker_keyspace_destroy(names));
  OK(esker_snapshot_destroy(snapshot));
  OK(esker_cursor_seek_to_first(cursor));
  CHECK(esker_cursor_valid(cursor));
  OK(esker_cursor_destroy(cursor));
  OK(esker_iterator_destroy(iterator));
  OK(esker_batch_destroy(batch));
  CHECK_CODE(ESKER_CLOSED_HANDLE, esker_db_flush(db));
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  join(path, sizeof path, argv[1], "db");
  esker_db *db;
  esker_keyspace *names;
  fork_before_open();
  exit_while_open();
  after_exit();
  end_of_thread();
  OK(esker_db_open(path, NULL, &db));
  OK(esker_db_keyspace(db, "names", NULL, &names));
  empty_bytes(db, names);
  wrong_handles(db, names);
  wrong_arguments(db, names);
  results_of_failures(names);
  lag_of_no_follower(db);
  two_opens(db);
  fork_after_open(db, names);
  callbacks(db, names);
  threads(db);
  outlive(db, names);
  puts("misuse: passed");
  return 0;
}
