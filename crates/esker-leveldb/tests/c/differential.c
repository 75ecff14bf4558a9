/*
 * Goes through all of leveldb/c.h and prints what it sees. The output on LevelDB itself and on Esker
 * is the same. Takes an empty directory.
 */

#include <leveldb/c.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char path[4096];

/* Prints an error by its kind: the rest of the text is the library's own. */
static void error(const char *what, char **err) {
  if (*err == NULL) {
    printf("%s: ok\n", what);
    return;
  }
  printf("%s: %.*s\n", what, (int)strcspn(*err, ":"), *err);
  leveldb_free(*err);
  *err = NULL;
}

/* Prints all of an error. */
static void whole_error(const char *what, char **err) {
  printf("%s: %s\n", what, *err == NULL ? "ok" : *err);
  leveldb_free(*err);
  *err = NULL;
}

static void print_bytes(const char *bytes, size_t length) {
  for (size_t i = 0; i < length && i < 40; i++) {
    unsigned char byte = (unsigned char)bytes[i];
    if (byte >= ' ' && byte < 127) putchar(byte);
    else printf("\\x%02x", byte);
  }
  if (length > 40) printf("... (%zu)", length);
}

static void get(leveldb_t *db, leveldb_readoptions_t *options, const char *key, size_t length) {
  char *err = NULL;
  size_t value_length = 77;
  char *value = leveldb_get(db, options, key, length, &value_length, &err);
  printf("get ");
  print_bytes(key, length);
  if (value == NULL) {
    printf(": none, %zu\n", value_length);
  } else {
    printf(" = ");
    print_bytes(value, value_length);
    printf("\n");
  }
  leveldb_free(value);
  if (err != NULL) error("get", &err);
}

static void scan(leveldb_t *db, leveldb_readoptions_t *options, int backwards) {
  leveldb_iterator_t *iter = leveldb_create_iterator(db, options);
  char *err = NULL;
  int pairs = 0;
  unsigned sum = 0;
  printf("scan%s: valid %d:", backwards ? " backwards" : "", leveldb_iter_valid(iter));
  if (backwards) leveldb_iter_seek_to_last(iter);
  else leveldb_iter_seek_to_first(iter);
  while (leveldb_iter_valid(iter)) {
    size_t key_length, value_length;
    const char *key = leveldb_iter_key(iter, &key_length);
    const char *value = leveldb_iter_value(iter, &value_length);
    if (pairs++ < 12) {
      printf(" ");
      print_bytes(key, key_length);
      printf("=");
      print_bytes(value, value_length);
    }
    for (size_t i = 0; i < key_length; i++) sum = sum * 31 + (unsigned char)key[i];
    for (size_t i = 0; i < value_length; i++) sum = sum * 31 + (unsigned char)value[i];
    if (backwards) leveldb_iter_prev(iter);
    else leveldb_iter_next(iter);
  }
  printf("; %d pairs, sum %u\n", pairs, sum);
  leveldb_iter_get_error(iter, &err);
  error("scan", &err);
  leveldb_iter_destroy(iter);
}

static void seek(leveldb_iterator_t *iter, const char *key, size_t length) {
  leveldb_iter_seek(iter, key, length);
  printf("seek ");
  print_bytes(key, length);
  if (leveldb_iter_valid(iter)) {
    size_t found;
    const char *at = leveldb_iter_key(iter, &found);
    printf(": ");
    print_bytes(at, found);
  } else {
    printf(": none");
  }
  printf("\n");
}

static uint32_t state = 1;

static uint32_t draw(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

static void told_put(void *to, const char *key, size_t key_length, const char *value, size_t value_length) {
  ++*(int *)to;
  printf("  put ");
  print_bytes(key, key_length);
  printf(" ");
  print_bytes(value, value_length);
  printf("\n");
}

static void told_delete(void *to, const char *key, size_t length) {
  *(int *)to += 100;
  printf("  delete ");
  print_bytes(key, length);
  printf("\n");
}

/* Opening: what must and must not be there. */
static void opening(leveldb_options_t *options) {
  char *err = NULL;
  leveldb_destroy_db(options, path, &err);
  error("destroy nothing", &err);
  leveldb_t *db = leveldb_open(options, path, &err);
  printf("open missing: %s\n", db == NULL ? "none" : "opened");
  error("open missing", &err);
  leveldb_options_set_create_if_missing(options, 1);
  db = leveldb_open(options, path, &err);
  error("open", &err);
  leveldb_t *again = leveldb_open(options, path, &err);
  printf("open twice: %s\n", again == NULL ? "none" : "opened");
  error("open twice", &err);
  /* An error takes the place of the one before. */
  err = strdup("before");
  again = leveldb_open(options, path, &err);
  error("open again", &err);
  leveldb_destroy_db(options, path, &err);
  error("destroy open", &err);
  leveldb_close(db);
  leveldb_options_set_error_if_exists(options, 1);
  db = leveldb_open(options, path, &err);
  printf("open existing: %s\n", db == NULL ? "none" : "opened");
  error("open existing", &err);
  leveldb_options_set_error_if_exists(options, 0);
  leveldb_destroy_db(options, path, &err);
  error("destroy closed", &err);
  struct stat status;
  printf("directory: %s\n", stat(path, &status) == 0 ? "there" : "gone");
}

static void pairs(leveldb_t *db, leveldb_readoptions_t *reads, leveldb_writeoptions_t *writes) {
  char *err = NULL;
  leveldb_put(db, writes, "ada", 3, "1815", 4, &err);
  error("put", &err);
  leveldb_put(db, writes, "", 0, "empty key", 9, &err);
  leveldb_put(db, writes, "empty", 5, "", 0, &err);
  leveldb_put(db, writes, "a\0b", 3, "c\0d", 3, &err);
  leveldb_put(db, writes, "\xff\xff", 2, "last", 4, &err);
  leveldb_put(db, writes, "ada", 3, "1816", 4, &err);
  leveldb_put(db, writes, "gone", 4, "x", 1, &err);
  leveldb_delete(db, writes, "gone", 4, &err);
  leveldb_delete(db, writes, "never", 5, &err);
  error("delete", &err);
  get(db, reads, "ada", 3);
  get(db, reads, "", 0);
  get(db, reads, "empty", 5);
  get(db, reads, "a\0b", 3);
  get(db, reads, "a", 1);
  get(db, reads, "gone", 4);
  leveldb_writeoptions_set_sync(writes, 1);
  leveldb_put(db, writes, "synced", 6, "1", 1, &err);
  error("put synced", &err);
  leveldb_writeoptions_set_sync(writes, 0);
  char *large = malloc(300000);
  memset(large, 'x', 300000);
  leveldb_put(db, writes, "large", 5, large, 300000, &err);
  get(db, reads, "large", 5);
  free(large);
  scan(db, reads, 0);
  scan(db, reads, 1);
}

static void batches(leveldb_t *db, leveldb_readoptions_t *reads, leveldb_writeoptions_t *writes) {
  char *err = NULL;
  leveldb_writebatch_t *one = leveldb_writebatch_create(), *other = leveldb_writebatch_create();
  leveldb_write(db, writes, one, &err);
  error("write nothing", &err);
  leveldb_writebatch_put(one, "cleared", 7, "x", 1);
  leveldb_writebatch_clear(one);
  leveldb_writebatch_put(one, "b1", 2, "1", 1);
  leveldb_writebatch_put(one, "b2", 2, "", 0);
  leveldb_writebatch_put(one, "", 0, "other", 5);
  leveldb_writebatch_put(one, "b1", 2, "2", 1);
  leveldb_writebatch_delete(other, "b2", 2);
  leveldb_writebatch_put(other, "b3", 2, "\0\n", 2);
  leveldb_writebatch_append(one, other);
  leveldb_writebatch_append(other, other);
  int seen = 0;
  leveldb_writebatch_iterate(one, &seen, told_put, told_delete);
  printf("iterate: %d\n", seen);
  seen = 0;
  leveldb_writebatch_iterate(other, &seen, told_put, told_delete);
  printf("iterate: %d\n", seen);
  leveldb_write(db, writes, one, &err);
  error("write", &err);
  /* A batch stays as it is when it was written. */
  leveldb_write(db, writes, one, &err);
  leveldb_writebatch_destroy(one);
  leveldb_writebatch_destroy(other);
  get(db, reads, "b1", 2);
  get(db, reads, "b2", 2);
  get(db, reads, "b3", 2);
  get(db, reads, "", 0);
  get(db, reads, "cleared", 7);
}

static void positions(leveldb_t *db, leveldb_readoptions_t *reads, leveldb_writeoptions_t *writes) {
  char *err = NULL;
  leveldb_iterator_t *iter = leveldb_create_iterator(db, reads);
  /* It sees what was there when it was made. */
  leveldb_put(db, writes, "b", 1, "later", 5, &err);
  seek(iter, "b", 1);
  seek(iter, "", 0);
  seek(iter, "\xff\xff\xff", 3);
  seek(iter, "b2", 2);
  leveldb_iter_next(iter);
  leveldb_iter_prev(iter);
  leveldb_iter_prev(iter);
  size_t length;
  const char *key = leveldb_iter_key(iter, &length);
  printf("stepped to ");
  print_bytes(key, length);
  printf("\n");
  leveldb_iter_seek_to_first(iter);
  leveldb_iter_prev(iter);
  printf("before the first: %d\n", leveldb_iter_valid(iter));
  leveldb_iter_seek_to_last(iter);
  leveldb_iter_next(iter);
  printf("behind the last: %d\n", leveldb_iter_valid(iter));
  leveldb_iter_get_error(iter, &err);
  error("positions", &err);
  leveldb_iter_destroy(iter);
}

static void snapshots(leveldb_t *db, leveldb_readoptions_t *reads, leveldb_writeoptions_t *writes) {
  char *err = NULL;
  const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
  leveldb_put(db, writes, "ada", 3, "after", 5, &err);
  leveldb_delete(db, writes, "b1", 2, &err);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  leveldb_readoptions_set_snapshot(reads, snapshot);
  get(db, reads, "ada", 3);
  get(db, reads, "b1", 2);
  scan(db, reads, 0);
  leveldb_readoptions_set_snapshot(reads, NULL);
  leveldb_release_snapshot(db, snapshot);
  get(db, reads, "ada", 3);
  get(db, reads, "b1", 2);
}

/* Many random operations, read back at every thousand. */
static void much(leveldb_t *db, leveldb_readoptions_t *reads, leveldb_writeoptions_t *writes) {
  char *err = NULL;
  char key[32], value[2000];
  for (int i = 0; i < 20000; i++) {
    int length = snprintf(key, sizeof key, "k%05u", draw() % 3000);
    if (draw() % 4 == 0) {
      leveldb_delete(db, writes, key, (size_t)length, &err);
    } else {
      size_t bytes = draw() % (draw() % 50 == 0 ? sizeof value : 60);
      memset(value, 'a' + (int)(draw() % 26), bytes);
      leveldb_put(db, writes, key, (size_t)length, value, bytes, &err);
    }
    if (i % 5000 == 2500) leveldb_compact_range(db, "k00500", 6, "k01500", 6);
    if (i % 5000 == 4999) {
      scan(db, reads, 0);
      scan(db, reads, 1);
    }
  }
  error("much", &err);
}

static void size(leveldb_t *db, const char *start, const char *limit) {
  const char *starts[] = {start}, *limits[] = {limit};
  size_t start_lengths[] = {strlen(start)}, limit_lengths[] = {strlen(limit)};
  uint64_t sizes[] = {77};
  leveldb_approximate_sizes(db, 1, starts, start_lengths, limits, limit_lengths, sizes);
  printf("size from \"%s\" to \"%s\": %s\n", start, limit, sizes[0] == 0 ? "0" : "something");
}

/* A database without pairs, and what has no bytes. */
static void nothing(leveldb_t *db, leveldb_readoptions_t *reads, leveldb_writeoptions_t *writes) {
  char *err = NULL;
  size(db, "", "zzz");
  size(db, "z", "a");
  size(db, "a", "a");
  leveldb_compact_range(db, "a", 1, NULL, 0);
  leveldb_compact_range(db, NULL, 0, "a", 1);
  leveldb_compact_range(db, "z", 1, "a", 1);
  leveldb_compact_range(db, "", 0, "", 0);
  scan(db, reads, 0);
  scan(db, reads, 1);
  leveldb_put(db, writes, NULL, 0, NULL, 0, &err);
  error("put no bytes", &err);
  get(db, reads, "", 0);
  leveldb_writebatch_t *batch = leveldb_writebatch_create();
  int seen = 0;
  leveldb_writebatch_iterate(batch, &seen, told_put, told_delete);
  leveldb_writebatch_delete(batch, NULL, 0);
  leveldb_writebatch_put(batch, "k", 1, NULL, 0);
  leveldb_writebatch_delete(batch, "k", 1);
  leveldb_writebatch_iterate(batch, &seen, told_put, told_delete);
  leveldb_write(db, writes, batch, &err);
  error("write no bytes", &err);
  leveldb_writebatch_destroy(batch);
  scan(db, reads, 0);
}

static void properties(leveldb_t *db) {
  const char *names[] = {"leveldb.num-files-at-level-1", "leveldb.num-files-at-level00",
                         "leveldb.num-files-at-level 1", "leveldb.num-files-at-level99999999999999999999",
                         "LEVELDB.stats", "leveldb.", "leveldb.stats ", "leveldb.stats", "leveldb.sstables", "leveldb.num-files-at-level0",
                         "leveldb.num-files-at-level6", "leveldb.num-files-at-level7",
                         "leveldb.num-files-at-level", "leveldb.num-files-at-level0x",
                         "leveldb.approximate-memory-usage", "leveldb.nothing", "stats", ""};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char *value = leveldb_property_value(db, names[i]);
    printf("property %s: %s\n", names[i], value != NULL ? "there" : "none");
    leveldb_free(value);
  }
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  const char *starts[] = {"", "k00000", "k02999", "x"}, *limits[] = {"zzz", "k02000", "k03000", "y"};
  size_t start_lengths[] = {0, 6, 6, 1}, limit_lengths[] = {3, 6, 6, 1};
  uint64_t sizes[4];
  leveldb_approximate_sizes(db, 4, starts, start_lengths, limits, limit_lengths, sizes);
  printf("sizes: %d %d %d\n", sizes[0] > 50000, sizes[1] > 20000 && sizes[1] <= sizes[0], sizes[3] < 10000);
  leveldb_approximate_sizes(db, 0, NULL, NULL, NULL, NULL, NULL);
}

/* A comparator: the order of the reversed text. */
static int destroyed = 0;

static void destroy(void *kept) { ++*(int *)kept; }

static int compare_reversed(void *kept, const char *a, size_t a_length, const char *b, size_t b_length) {
  (void)kept;
  while (a_length > 0 && b_length > 0) {
    unsigned char x = (unsigned char)a[--a_length], y = (unsigned char)b[--b_length];
    if (x != y) return x < y ? -1 : 1;
  }
  return a_length == b_length ? 0 : a_length < b_length ? -1 : 1;
}

static const char *name_reversed(void *kept) {
  (void)kept;
  return "reversed text";
}

static const char *name_other(void *kept) {
  (void)kept;
  return "another order";
}

static void orders(leveldb_readoptions_t *reads, leveldb_writeoptions_t *writes) {
  char *err = NULL;
  leveldb_options_t *options = leveldb_options_create();
  leveldb_comparator_t *order = leveldb_comparator_create(&destroyed, destroy, compare_reversed, name_reversed);
  leveldb_comparator_t *other = leveldb_comparator_create(&destroyed, destroy, compare_reversed, name_other);
  leveldb_options_set_comparator(options, order);
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t *db = leveldb_open(options, path, &err);
  error("open with an order", &err);
  char key[32];
  for (int i = 0; i < 3000; i++) {
    int length = snprintf(key, sizeof key, "%d", i);
    leveldb_put(db, writes, key, (size_t)length, key, (size_t)length, &err);
  }
  scan(db, reads, 0);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  scan(db, reads, 1);
  leveldb_iterator_t *iter = leveldb_create_iterator(db, reads);
  seek(iter, "5", 1);
  seek(iter, "x1", 2);
  seek(iter, "12345", 5);
  leveldb_iter_destroy(iter);
  leveldb_close(db);
  db = leveldb_open(options, path, &err);
  error("open with the order again", &err);
  scan(db, reads, 0);
  leveldb_close(db);
  leveldb_options_set_comparator(options, other);
  db = leveldb_open(options, path, &err);
  printf("with another order: %s\n", db == NULL ? "none" : "opened");
  whole_error("open with another order", &err);
  leveldb_options_t *without = leveldb_options_create();
  db = leveldb_open(without, path, &err);
  leveldb_options_destroy(without);
  printf("without an order: %s\n", db == NULL ? "none" : "opened");
  whole_error("open without an order", &err);
  leveldb_options_set_comparator(options, NULL);
  leveldb_options_set_comparator(options, order);
  leveldb_repair_db(options, path, &err);
  error("repair with an order", &err);
  db = leveldb_open(options, path, &err);
  scan(db, reads, 0);
  leveldb_close(db);
  leveldb_destroy_db(options, path, &err);
  error("destroy with an order", &err);
  leveldb_options_destroy(options);
  leveldb_comparator_destroy(order);
  leveldb_comparator_destroy(other);
  printf("destroyed: %d\n", destroyed);
}

static int calls = 0;

static int compare_counted(void *kept, const char *a, size_t a_length, const char *b, size_t b_length) {
  calls++;
  return compare_reversed(kept, a, a_length, b, b_length);
}

static const char *name_bytewise(void *kept) {
  (void)kept;
  return "leveldb.BytewiseComparator";
}

/* Names of orders, and when orders end. */
static void order_names(leveldb_readoptions_t *reads, leveldb_writeoptions_t *writes) {
  char *err = NULL;
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t *db = leveldb_open(options, path, &err);
  whole_error("open in the order of bytes", &err);
  leveldb_close(db);
  leveldb_comparator_t *order = leveldb_comparator_create(&destroyed, destroy, compare_reversed, name_reversed);
  leveldb_options_set_comparator(options, order);
  db = leveldb_open(options, path, &err);
  printf("with a first order: %s\n", db == NULL ? "none" : "opened");
  whole_error("open with a first order", &err);
  leveldb_comparator_destroy(order);
  printf("destroyed before the options: %d\n", destroyed);
  leveldb_destroy_db(options, path, &err);
  error("destroy with an order that is gone", &err);
  /* One of the name of LevelDB's own is called all the same. */
  order = leveldb_comparator_create(&destroyed, destroy, compare_counted, name_bytewise);
  leveldb_options_set_comparator(options, order);
  db = leveldb_open(options, path, &err);
  whole_error("open with an order of the name", &err);
  leveldb_put(db, writes, "az", 2, "1", 1, &err);
  leveldb_put(db, writes, "ba", 2, "2", 1, &err);
  leveldb_put(db, writes, "cm", 2, "3", 1, &err);
  scan(db, reads, 0);
  printf("called: %d\n", calls > 0);
  leveldb_close(db);
  leveldb_destroy_db(options, path, &err);
  error("destroy with an order of the name", &err);
  leveldb_comparator_destroy(order);
  leveldb_options_destroy(options);
  printf("destroyed: %d\n", destroyed);
}

/* A directory without a database, with a file of others: it stays. */
static void destroy_nothing(leveldb_options_t *options) {
  char *err = NULL;
  char directory[4200], file[4300];
  snprintf(directory, sizeof directory, "%s-of-others", path);
  printf("mkdir: %d\n", mkdir(directory, 0755));
  leveldb_destroy_db(options, directory, &err);
  error("destroy an empty directory", &err);
  struct stat status;
  printf("directory: %s\n", stat(directory, &status) == 0 ? "there" : "gone");
  printf("mkdir: %d\n", mkdir(directory, 0755));
  snprintf(file, sizeof file, "%s/notes.txt", directory);
  FILE *out = fopen(file, "w");
  printf("closed: %d\n", out == NULL ? -1 : fclose(out));
  leveldb_destroy_db(options, directory, &err);
  error("destroy a directory of others", &err);
  printf("file: %s\n", stat(file, &status) == 0 ? "there" : "gone");
  leveldb_destroy_db(options, file, &err);
  error("destroy a file", &err);
  printf("file: %s\n", stat(file, &status) == 0 ? "there" : "gone");
  leveldb_repair_db(options, file, &err);
  error("repair a file", &err);
  leveldb_t *db = leveldb_open(options, file, &err);
  printf("open a file: %s\n", db == NULL ? "none" : "opened");
  error("open a file", &err);
  printf("remove: %d\n", remove(file));
  printf("remove: %d\n", remove(directory));
}

/* A filter policy whose filter is the number of its keys, and which can be told to say no. */
static int answers = 1;
static int created = 0, asked = 0;

static char *create_filter(void *kept, const char *const *keys, const size_t *lengths, int count, size_t *length) {
  (void)kept;
  for (int i = 0; i < count; i++) {
    if (lengths[i] != 6 || keys[i][0] != 'f') printf("a key that was not put\n");
  }
  created += count;
  char *filter = malloc(8);
  snprintf(filter, 8, "%06d", count);
  *length = 6;
  return filter;
}

static uint8_t may_match(void *kept, const char *key, size_t length, const char *filter, size_t filter_length) {
  (void)kept;
  asked++;
  if (length != 6 || key[0] != 'f' || filter_length != 6 || filter[0] != '0') printf("another filter\n");
  return (uint8_t)answers;
}

static const char *name_filter(void *kept) {
  (void)kept;
  return "a count";
}

static void filters(leveldb_readoptions_t *reads, leveldb_writeoptions_t *writes) {
  for (int run = 0; run < 2; run++) {
    char *err = NULL;
    int ended = 0;
    leveldb_filterpolicy_t *policy =
        run == 0 ? leveldb_filterpolicy_create(&ended, destroy, create_filter, may_match, name_filter)
                 : leveldb_filterpolicy_create_bloom(10);
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_options_set_filter_policy(options, policy);
    leveldb_t *db = leveldb_open(options, path, &err);
    error("open with a filter", &err);
    char key[16];
    for (int i = 0; i < 500; i++) {
      snprintf(key, sizeof key, "f%05d", i);
      leveldb_put(db, writes, key, 6, key, 6, &err);
    }
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    answers = 1;
    asked = 0;
    get(db, reads, "f00007", 6);
    get(db, reads, "f00700", 6);
    if (run == 0) printf("created %d, asked %d\n", created >= 500, asked > 0);
    answers = 0;
    get(db, reads, "f00007", 6);
    scan(db, reads, 0);
    leveldb_put(db, writes, "f00007", 6, "in memory", 9, &err);
    get(db, reads, "f00007", 6);
    answers = 1;
    get(db, reads, "f00008", 6);
    leveldb_close(db);
    /* Without the policy its filters are not used, with it they are again. */
    leveldb_options_set_filter_policy(options, NULL);
    db = leveldb_open(options, path, &err);
    answers = 0;
    get(db, reads, "f00009", 6);
    leveldb_close(db);
    leveldb_options_set_filter_policy(options, policy);
    db = leveldb_open(options, path, &err);
    get(db, reads, "f00009", 6);
    leveldb_close(db);
    answers = 1;
    leveldb_destroy_db(options, path, &err);
    error("destroy with a filter", &err);
    leveldb_options_destroy(options);
    leveldb_filterpolicy_destroy(policy);
    printf("ended: %d\n", ended);
  }
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  snprintf(path, sizeof path, "%s/db", argv[1]);
  char *err = NULL;
  printf("version %d.%d\n", leveldb_major_version(), leveldb_minor_version());
  leveldb_env_t *env = leveldb_create_default_env();
  char *test_directory = leveldb_env_get_test_directory(env);
  printf("test directory: %s\n", test_directory);
  leveldb_free(test_directory);
  leveldb_cache_t *cache = leveldb_cache_create_lru(1 << 20);
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_env(options, env);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_options_set_write_buffer_size(options, 100000);
  leveldb_options_set_max_open_files(options, 10);
  leveldb_options_set_block_size(options, 1024);
  leveldb_options_set_block_restart_interval(options, 8);
  leveldb_options_set_max_file_size(options, 1 << 20);
  leveldb_options_set_compression(options, leveldb_snappy_compression);
  leveldb_options_set_compression(options, leveldb_no_compression);
  leveldb_readoptions_t *reads = leveldb_readoptions_create();
  leveldb_readoptions_set_verify_checksums(reads, 1);
  leveldb_readoptions_set_fill_cache(reads, 0);
  leveldb_writeoptions_t *writes = leveldb_writeoptions_create();

  opening(options);
  leveldb_t *db = leveldb_open(options, path, &err);
  error("open for pairs", &err);
  nothing(db, reads, writes);
  pairs(db, reads, writes);
  batches(db, reads, writes);
  positions(db, reads, writes);
  snapshots(db, reads, writes);
  much(db, reads, writes);
  properties(db);
  leveldb_close(db);
  db = leveldb_open(options, path, &err);
  error("open again", &err);
  scan(db, reads, 0);
  leveldb_close(db);
  leveldb_repair_db(options, path, &err);
  error("repair", &err);
  db = leveldb_open(options, path, &err);
  scan(db, reads, 1);
  leveldb_close(db);
  leveldb_destroy_db(options, path, &err);
  error("destroy", &err);
  orders(reads, writes);
  order_names(reads, writes);
  destroy_nothing(options);
  filters(reads, writes);

  leveldb_options_destroy(options);
  leveldb_readoptions_destroy(reads);
  leveldb_writeoptions_destroy(writes);
  leveldb_cache_destroy(cache);
  leveldb_env_destroy(env);
  printf("end\n");
  return 0;
}
