/* What a program does wrong is told, and nothing worse happens. Takes an empty directory. */

#include <leveldb/c.h>

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);         \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

static char path[4096];
static char *err = NULL;

/* That there is an error with these words, which is taken. */
static void told(const char *words) {
  if (err == NULL || strstr(err, words) == NULL) {
    fprintf(stderr, "\"%s\" instead of \"%s\"\n", err != NULL ? err : "(no error)", words);
    exit(1);
  }
  leveldb_free(err);
  err = NULL;
}

static void write_file(const char *directory, const char *name, const char *text) {
  char file[8400];
  snprintf(file, sizeof file, "%s/%s", directory, name);
  FILE *out = fopen(file, "w");
  CHECK(out != NULL && fputs(text, out) >= 0 && fclose(out) == 0);
}

/* A directory that LevelDB wrote. */
static void foreign(leveldb_options_t *options) {
  char directory[4200];
  snprintf(directory, sizeof directory, "%s-of-leveldb", path);
  CHECK(mkdir(directory, 0755) == 0);
  write_file(directory, "CURRENT", "MANIFEST-000002\n");
  write_file(directory, "MANIFEST-000002", "x");
  write_file(directory, "000003.log", "x");
  CHECK(leveldb_open(options, directory, &err) == NULL);
  told("esker import --db NEW_DIRECTORY --from leveldb");
  leveldb_repair_db(options, directory, &err);
  told("esker import");
  leveldb_destroy_db(options, directory, &err);
  told("esker import");
  char file[4300];
  snprintf(file, sizeof file, "%s/000003.log", directory);
  CHECK(access(file, F_OK) == 0);
}

/* The names in a directory, one after the other. */
static void list(const char *directory, char *names, size_t size) {
  struct dirent **entries;
  int count = scandir(directory, &entries, NULL, alphasort);
  CHECK(count >= 0);
  *names = 0;
  for (int i = 0; i < count; i++) {
    strncat(names, entries[i]->d_name, size - strlen(names) - 1);
    strncat(names, " ", size - strlen(names) - 1);
    free(entries[i]);
  }
  free(entries);
}

/* The same where its CURRENT is damaged or missing, and one of the other files is left. */
static void foreign_damaged(leveldb_options_t *options) {
  static const char *const currents[] = {"", "MANIF", "MANIFEST-000002", NULL};
  static const char *const others[] = {"000003.log", "000003.ldb", "000003.sst", "LOG"};
  for (int i = 0; i < 16; i++) {
    const char *current = currents[i / 4];
    char directory[4200], before[4096], after[4096];
    snprintf(directory, sizeof directory, "%s-damaged-%d", path, i);
    CHECK(mkdir(directory, 0755) == 0);
    if (current != NULL) write_file(directory, "CURRENT", current);
    write_file(directory, "MANIFEST-000002", "x");
    write_file(directory, others[i % 4], "x");
    list(directory, before, sizeof before);
    leveldb_repair_db(options, directory, &err);
    told("esker import --db NEW_DIRECTORY --from leveldb");
    CHECK(leveldb_open(options, directory, &err) == NULL);
    told("esker import --db NEW_DIRECTORY --from leveldb");
    leveldb_destroy_db(options, directory, &err);
    told("esker import --db NEW_DIRECTORY --from leveldb");
    list(directory, after, sizeof after);
    CHECK(strcmp(before, after) == 0);
  }
}

/* The pointer to no bytes can be read, for the zero byte of an empty text. */
static int empty_seen = 0;

static void read_empty(const char *bytes, size_t length) {
  if (length == 0) {
    CHECK(*(const volatile char *)bytes == 0);
    empty_seen++;
  }
}

/* An iterator that the comparator uses while a call of it compares, and how often that was refused. */
static leveldb_iterator_t *used_within = NULL;
static int refused = 0;

static void use_within(void) {
  leveldb_iterator_t *iter = used_within;
  used_within = NULL;
  size_t length = 7;
  leveldb_iter_next(iter);
  leveldb_iter_destroy(iter);
  CHECK(!leveldb_iter_valid(iter));
  CHECK(leveldb_iter_key(iter, &length) != NULL && length == 0);
  char *error = NULL;
  leveldb_iter_get_error(iter, &error);
  CHECK(error != NULL && strstr(error, "in use by the call that this one is made from") != NULL);
  leveldb_free(error);
  refused++;
}

static int compare_read(void *state, const char *a, size_t a_length, const char *b, size_t b_length) {
  ++*(int *)state;
  if (used_within != NULL) use_within();
  read_empty(a, a_length);
  read_empty(b, b_length);
  int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
  return order != 0 ? order : a_length < b_length ? -1 : a_length > b_length;
}

static const char *name_bytewise(void *state) {
  (void)state;
  return "leveldb.BytewiseComparator";
}

static void put_read(void *state, const char *k, size_t klen, const char *v, size_t vlen) {
  (void)state;
  read_empty(k, klen);
  read_empty(v, vlen);
}

static void delete_read(void *state, const char *k, size_t klen) {
  (void)state;
  read_empty(k, klen);
}

static int ended = 0;

static void end(void *state) {
  (void)state;
  ended++;
}

static char *create_filter(void *state, const char *const *keys, const size_t *lengths, int count, size_t *length) {
  (void)state;
  for (int i = 0; i < count; i++) read_empty(keys[i], lengths[i]);
  *length = 0;
  return malloc(1);
}

static uint8_t may_match(void *state, const char *key, size_t key_length, const char *filter, size_t length) {
  (void)state;
  read_empty(key, key_length);
  read_empty(filter, length);
  return 1;
}

static const char *name_policy(void *state) {
  (void)state;
  return "everything";
}

/* Functions of the program: when they are called, with what, and when their state ends. */
static void functions(leveldb_readoptions_t *reads, leveldb_writeoptions_t *writes) {
  char directory[4200];
  snprintf(directory, sizeof directory, "%s-functions", path);
  int calls = 0;
  leveldb_comparator_t *order = leveldb_comparator_create(&calls, end, compare_read, name_bytewise);
  leveldb_filterpolicy_t *policy = leveldb_filterpolicy_create(NULL, end, create_filter, may_match, name_policy);
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_comparator(options, order);
  leveldb_options_set_filter_policy(options, policy);
  leveldb_t *db = leveldb_open(options, directory, &err);
  CHECK(err == NULL && db != NULL);
  leveldb_writebatch_t *batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "", 0, "", 0);
  leveldb_writebatch_put(batch, "a", 1, "", 0);
  leveldb_writebatch_delete(batch, "", 0);
  empty_seen = 0;
  leveldb_writebatch_iterate(batch, NULL, put_read, delete_read);
  CHECK(empty_seen == 4);
  leveldb_writebatch_destroy(batch);
  leveldb_put(db, writes, "", 0, "", 0, &err);
  leveldb_put(db, writes, "b", 1, "", 0, &err);
  leveldb_put(db, writes, "a", 1, "1", 1, &err);
  CHECK(err == NULL);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(calls > 0);
  size_t length;
  leveldb_free(leveldb_get(db, reads, "", 0, &length, &err));
  CHECK(err == NULL && length == 0);
  leveldb_iterator_t *iter = leveldb_create_iterator(db, reads);
  leveldb_iter_seek_to_first(iter);
  empty_seen = 0;
  for (; leveldb_iter_valid(iter); leveldb_iter_next(iter)) {
    const char *key = leveldb_iter_key(iter, &length);
    read_empty(key, length);
    const char *value = leveldb_iter_value(iter, &length);
    read_empty(value, length);
  }
  CHECK(empty_seen == 3);
  used_within = iter;
  leveldb_iter_seek(iter, "a", 1);
  CHECK(refused == 1 && leveldb_iter_valid(iter));
  CHECK(memcmp(leveldb_iter_key(iter, &length), "a", 1) == 0 && length == 1);
  leveldb_iter_destroy(iter);
  /* What an open database uses ends with it, though the handles are gone. */
  leveldb_comparator_destroy(order);
  leveldb_filterpolicy_destroy(policy);
  leveldb_put(db, writes, "c", 1, "", 0, &err);
  CHECK(err == NULL && ended == 0);
  leveldb_close(db);
  CHECK(ended == 2);
  /* Options do not keep them, and know that they are gone. */
  CHECK(leveldb_open(options, directory, &err) == NULL);
  told("the handle was closed before");
  leveldb_options_set_filter_policy(options, NULL);
  order = leveldb_comparator_create(&calls, end, compare_read, name_bytewise);
  policy = leveldb_filterpolicy_create(NULL, end, create_filter, may_match, name_policy);
  leveldb_options_set_comparator(options, order);
  leveldb_options_set_filter_policy(options, policy);
  leveldb_comparator_destroy(order);
  CHECK(ended == 3);
  leveldb_filterpolicy_destroy(policy);
  CHECK(ended == 4);
  /* Also where they were gone before they were set: never an order that is not meant. */
  leveldb_options_set_comparator(options, NULL);
  leveldb_options_set_filter_policy(options, NULL);
  leveldb_options_set_comparator(options, order);
  CHECK(leveldb_open(options, directory, &err) == NULL);
  told("the handle was closed before");
  leveldb_options_set_comparator(options, NULL);
  leveldb_options_set_filter_policy(options, (leveldb_filterpolicy_t *)reads);
  CHECK(leveldb_open(options, directory, &err) == NULL);
  told("a leveldb_readoptions_t instead of a leveldb_filterpolicy_t");
  /* The name is that of LevelDB's order, which opens what a program's was called for. */
  leveldb_options_set_comparator(options, NULL);
  leveldb_options_set_filter_policy(options, NULL);
  db = leveldb_open(options, directory, &err);
  CHECK(err == NULL && db != NULL);
  leveldb_close(db);
  leveldb_destroy_db(options, directory, &err);
  CHECK(err == NULL && access(directory, F_OK) != 0);
  leveldb_options_destroy(options);
}

/* Options do no harm to a child: only what works on a database does. */
static void fork_before_open(leveldb_options_t *options) {
  char directory[4200];
  snprintf(directory, sizeof directory, "%s-of-child", path);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    leveldb_t *db = leveldb_open(options, directory, &err);
    CHECK(err == NULL && db != NULL);
    leveldb_close(db);
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A process that ends with all open loses nothing, and leaves no lock. Returns the directory. */
static const char *exit_while_open(leveldb_options_t *options) {
  static char directory[4200];
  snprintf(directory, sizeof directory, "%s-of-exit", path);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    leveldb_t *db = leveldb_open(options, directory, &err);
    leveldb_readoptions_t *reads = leveldb_readoptions_create();
    leveldb_writeoptions_t *writes = leveldb_writeoptions_create();
    leveldb_put(db, writes, "k", 1, "v", 1, &err);
    CHECK(err == NULL);
    leveldb_iter_seek_to_first(leveldb_create_iterator(db, reads));
    CHECK(leveldb_create_snapshot(db) != NULL);
    exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return directory;
}

/* What such a process has left, and two opens at once. */
static void opens(const char *directory, leveldb_options_t *options, leveldb_readoptions_t *reads) {
  leveldb_t *db = leveldb_open(options, directory, &err);
  CHECK(err == NULL && db != NULL);
  size_t length;
  char *value = leveldb_get(db, reads, "k", 1, &length, &err);
  CHECK(value != NULL && length == 1 && *value == 'v');
  leveldb_free(value);
  CHECK(leveldb_open(options, directory, &err) == NULL);
  told("already held by process");
  leveldb_close(db);
  db = leveldb_open(options, directory, &err);
  CHECK(err == NULL && db != NULL);
  leveldb_close(db);
}

static void arguments(leveldb_t *db, leveldb_options_t *options, leveldb_readoptions_t *reads,
                      leveldb_writeoptions_t *writes) {
  static char long_key[(1 << 20) + 1];
  size_t length = 7;
  leveldb_put(db, writes, "k", (size_t)-1, "v", 1, &err);
  told("Invalid argument");
  leveldb_put(db, writes, "k", 1, "v", (size_t)1 << 40, &err);
  told("Invalid argument");
  leveldb_put(db, writes, NULL, 3, "v", 1, &err);
  told("NULL with a length of 3");
  leveldb_put(db, writes, long_key, sizeof long_key, "v", 1, &err);
  told("Invalid argument: the key has 1048577 bytes");
  CHECK(leveldb_get(db, reads, "k", (size_t)-1, &length, &err) == NULL && length == 0);
  told("Invalid argument");
  CHECK(leveldb_open(options, "", &err) == NULL);
  told("Invalid argument");
  CHECK(leveldb_open(options, NULL, &err) == NULL);
  told("Invalid argument");
  CHECK(leveldb_open(options, "/dev/null/db", &err) == NULL);
  told("IO error");
  /* Without a place for the error it goes to standard error. */
  leveldb_put(db, writes, NULL, 3, "v", 1, NULL);
  char *value = leveldb_get(db, reads, "k", 1, NULL, NULL);
  CHECK(value != NULL && *value == 'v');
  leveldb_free(value);
  CHECK(leveldb_property_value(db, NULL) == NULL);
  leveldb_free(NULL);
}

static void handles(leveldb_t *db, leveldb_options_t *options, leveldb_readoptions_t *reads,
                    leveldb_writeoptions_t *writes) {
  size_t length;
  /* NULL, another type, none, and what was closed. */
  leveldb_put(NULL, writes, "k", 1, "v", 1, &err);
  told("NULL instead of a leveldb_t");
  leveldb_put((leveldb_t *)writes, writes, "k", 1, "v", 1, &err);
  told("a leveldb_writeoptions_t instead of a leveldb_t");
  long own = 0;
  leveldb_put((leveldb_t *)&own, writes, "k", 1, "v", 1, &err);
  told("no handle");
  leveldb_put(db, NULL, "k", 1, "v", 1, &err);
  told("NULL instead of a leveldb_writeoptions_t");
  leveldb_close((leveldb_t *)options);
  leveldb_close(NULL);
  const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
  leveldb_release_snapshot(db, snapshot);
  leveldb_release_snapshot(db, snapshot);
  leveldb_readoptions_set_snapshot(reads, snapshot);
  CHECK(leveldb_get(db, reads, "k", 1, &length, &err) == NULL);
  told("the handle was closed before");
  leveldb_iterator_t *iter = leveldb_create_iterator(db, reads);
  leveldb_iter_seek_to_first(iter);
  CHECK(!leveldb_iter_valid(iter));
  leveldb_iter_get_error(iter, &err);
  told("the handle was closed before");
  leveldb_iter_destroy(iter);
  leveldb_iter_destroy(iter);
  leveldb_iter_next(iter);
  CHECK(!leveldb_iter_valid(iter));
  leveldb_iter_key(iter, &length);
  CHECK(length == 0);
  leveldb_iter_get_error(iter, &err);
  told("the handle was closed before");
  leveldb_readoptions_set_snapshot(reads, NULL);
  CHECK(leveldb_comparator_create(NULL, NULL, NULL, NULL) == NULL);
  CHECK(leveldb_filterpolicy_create(NULL, NULL, NULL, NULL, NULL) == NULL);
}

static void changes(void *batch, const char *k, size_t klen, const char *v, size_t vlen) {
  leveldb_writebatch_put(batch, k, klen, v, vlen);
  leveldb_writebatch_append(batch, batch);
}

static void deletes(void *batch, const char *k, size_t klen) {
  (void)k;
  (void)klen;
  leveldb_writebatch_clear(batch);
}

/* A batch that changes while it is gone through. */
static void changed_batches(void) {
  leveldb_writebatch_t *batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "a", 1, "1", 1);
  leveldb_writebatch_put(batch, "b", 1, "2", 1);
  leveldb_writebatch_delete(batch, "a", 1);
  leveldb_writebatch_iterate(batch, batch, changes, deletes);
  leveldb_writebatch_iterate(batch, NULL, NULL, NULL);
  leveldb_writebatch_destroy(batch);
  leveldb_writebatch_destroy(batch);
  leveldb_writebatch_put(batch, "a", 1, "1", 1);
}

/* What a batch lacks keeps all of it from being written, until it is cleared. */
static void refused_batches(leveldb_t *db, leveldb_readoptions_t *reads,
                            leveldb_writeoptions_t *writes) {
  static char none[] = "";
  for (int i = 0; i < 4; i++) {
    leveldb_writebatch_t *batch = leveldb_writebatch_create(), *other = leveldb_writebatch_create();
    leveldb_writebatch_put(batch, "refused", 7, "1", 1);
    if (i == 0) leveldb_writebatch_put(batch, "value", 5, none, ((size_t)1 << 30) + 1);
    if (i == 1) leveldb_writebatch_delete(batch, NULL, 3);
    if (i == 2) {
      leveldb_writebatch_put(other, NULL, 3, "v", 1);
      leveldb_writebatch_append(batch, other);
    }
    if (i == 3) {
      leveldb_writebatch_destroy(other);
      leveldb_writebatch_append(batch, other);
      other = leveldb_writebatch_create();
    }
    const char *const words[] = {"1 GiB", "NULL with a length of 3", "NULL with a length of 3",
                                 "closed before"};
    const char *const start = "Invalid argument: the batch lacks an operation that was refused: ";
    for (int again = 0; again < 2; again++) {
      leveldb_write(db, writes, batch, &err);
      CHECK(err != NULL && strncmp(err, start, strlen(start)) == 0);
      told(words[i]);
    }
    size_t length;
    CHECK(leveldb_get(db, reads, "refused", 7, &length, &err) == NULL && err == NULL);
    leveldb_writebatch_append(other, batch);
    leveldb_write(db, writes, other, &err);
    told("the batch lacks an operation");
    leveldb_writebatch_clear(batch);
    leveldb_writebatch_put(batch, "refused", 7, "1", 1);
    leveldb_write(db, writes, batch, &err);
    CHECK(err == NULL);
    leveldb_delete(db, writes, "refused", 7, &err);
    CHECK(err == NULL);
    leveldb_writebatch_destroy(batch);
    leveldb_writebatch_destroy(other);
  }
}

static void fork_after_open(leveldb_t *db, leveldb_options_t *options, leveldb_writeoptions_t *writes) {
  leveldb_readoptions_t *reads = leveldb_readoptions_create();
  leveldb_iterator_t *iter = leveldb_create_iterator(db, reads);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    leveldb_iter_get_error(iter, &err);
    told("a fork of one that used a database before");
    leveldb_put(db, writes, "child", 5, "1", 1, &err);
    told("a fork of one that used a database before");
    CHECK(leveldb_options_create() == NULL);
    CHECK(leveldb_open(options, path, &err) == NULL);
    told("a fork of one that used a database before");
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  leveldb_iter_destroy(iter);
  leveldb_readoptions_destroy(reads);
  leveldb_put(db, writes, "parent", 6, "1", 1, &err);
  CHECK(err == NULL);
}

struct shared {
  leveldb_t *db;
  leveldb_writeoptions_t *writes;
};

static void *put(void *argument) {
  struct shared *shared = argument;
  char *error = NULL;
  for (int i = 0; i < 5000 && error == NULL; i++) {
    leveldb_put(shared->db, shared->writes, "t", 1, "v", 1, &error);
  }
  leveldb_free(error);
  return NULL;
}

/* Iterators and snapshots that outlive their database, and threads that use it when it is closed. */
static void outlive(leveldb_t *db, leveldb_readoptions_t *reads, leveldb_writeoptions_t *writes) {
  leveldb_iterator_t *iter = leveldb_create_iterator(db, reads);
  const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
  leveldb_iter_seek_to_first(iter);
  CHECK(leveldb_iter_valid(iter));
  struct shared shared = {db, writes};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, put, &shared) == 0);
  leveldb_close(db);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  leveldb_iter_seek_to_last(iter);
  CHECK(leveldb_iter_valid(iter));
  size_t length;
  CHECK(leveldb_iter_key(iter, &length) != NULL && length > 0);
  leveldb_iter_destroy(iter);
  leveldb_release_snapshot(db, snapshot);
  leveldb_close(db);
  CHECK(leveldb_get(db, reads, "k", 1, &length, &err) == NULL);
  told("the handle was closed before");
  CHECK(leveldb_create_snapshot(db) == NULL);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  uint64_t sizes[1] = {7};
  const char *keys[1] = {"a"};
  size_t lengths[1] = {1};
  leveldb_approximate_sizes(db, 1, keys, lengths, keys, lengths, sizes);
  CHECK(sizes[0] == 0);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  snprintf(path, sizeof path, "%s/db", argv[1]);
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_readoptions_t *reads = leveldb_readoptions_create();
  leveldb_writeoptions_t *writes = leveldb_writeoptions_create();
  fork_before_open(options);
  const char *left = exit_while_open(options);
  opens(left, options, reads);
  foreign(options);
  foreign_damaged(options);
  functions(reads, writes);
  leveldb_t *db = leveldb_open(options, path, &err);
  CHECK(err == NULL && db != NULL);
  leveldb_put(db, writes, "k", 1, "v", 1, &err);
  CHECK(err == NULL);
  arguments(db, options, reads, writes);
  handles(db, options, reads, writes);
  changed_batches();
  refused_batches(db, reads, writes);
  fork_after_open(db, options, writes);
  outlive(db, reads, writes);
  leveldb_options_destroy(options);
  leveldb_readoptions_destroy(reads);
  leveldb_writeoptions_destroy(writes);
  puts("misuse: passed");
  return 0;
}
