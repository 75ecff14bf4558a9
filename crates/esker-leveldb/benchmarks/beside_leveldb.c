/* The cost of each call of LevelDB's C interface, by two libraries in one process.
 *
 *   cargo build --release --package esker-leveldb
 *   cc -O2 crates/esker-leveldb/benchmarks/beside_leveldb.c -ldl -o beside_leveldb
 *   ./beside_leveldb DIRECTORY libleveldb.so.1 target/release/libesker_leveldb.so [ENTRIES [ROUNDS]]
 *
 * In each round every library makes a database, does all the work on it, and is closed; which of
 * the two comes first changes from round to round. Both have the same options: a write buffer of
 * 4 MiB, a cache of 8 MiB, compression, a filter of 10 bits, no sync. The table has the median of
 * the rounds in nanoseconds for each call or entry, with the least and most, and the median of the
 * ratios of each round: above 1, the second library is that many times as fast. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VALUE_BYTES = 100, KEY_BYTES = 16, VALUES = 4096, BATCH = 1000, MOST_ROUNDS = 99 };

/* The functions that are measured, and those that are needed for it. */
#define FUNCTIONS(X)                                                                                  \
    X(void *, open, (const void *, const char *, char **))                                            \
    X(void, close, (void *))                                                                          \
    X(void, put, (void *, const void *, const char *, size_t, const char *, size_t, char **))         \
    X(void, delete, (void *, const void *, const char *, size_t, char **))                            \
    X(void, write, (void *, const void *, void *, char **))                                           \
    X(char *, get, (void *, const void *, const char *, size_t, size_t *, char **))                   \
    X(void *, create_iterator, (void *, const void *))                                                \
    X(const void *, create_snapshot, (void *))                                                        \
    X(void, release_snapshot, (void *, const void *))                                                 \
    X(void, compact_range, (void *, const char *, size_t, const char *, size_t))                      \
    X(void, destroy_db, (const void *, const char *, char **))                                        \
    X(void, iter_destroy, (void *))                                                                   \
    X(unsigned char, iter_valid, (const void *))                                                      \
    X(void, iter_seek_to_first, (void *))                                                             \
    X(void, iter_seek_to_last, (void *))                                                              \
    X(void, iter_seek, (void *, const char *, size_t))                                                \
    X(void, iter_next, (void *))                                                                      \
    X(void, iter_prev, (void *))                                                                      \
    X(const char *, iter_key, (const void *, size_t *))                                               \
    X(const char *, iter_value, (const void *, size_t *))                                             \
    X(void *, writebatch_create, (void))                                                              \
    X(void, writebatch_destroy, (void *))                                                             \
    X(void, writebatch_clear, (void *))                                                               \
    X(void, writebatch_put, (void *, const char *, size_t, const char *, size_t))                     \
    X(void *, options_create, (void))                                                                 \
    X(void, options_set_create_if_missing, (void *, unsigned char))                                   \
    X(void, options_set_write_buffer_size, (void *, size_t))                                          \
    X(void, options_set_cache, (void *, void *))                                                      \
    X(void, options_set_filter_policy, (void *, void *))                                              \
    X(void, options_set_compression, (void *, int))                                                   \
    X(void *, cache_create_lru, (size_t))                                                             \
    X(void *, filterpolicy_create_bloom, (int))                                                       \
    X(void *, readoptions_create, (void))                                                             \
    X(void *, writeoptions_create, (void))                                                            \
    X(void, free, (void *))

#define DECLARE(result, name, arguments) result(*name) arguments;
typedef struct {
    FUNCTIONS(DECLARE)
} Library;

enum { PUT, PUT_BATCH, GET, GET_ABSENT, DELETE, SNAPSHOT, SCAN, SCAN_BACK, SEEK, WORKS };
static const char *const NAMES[WORKS] = {
    "put", "put, 1000 in a batch", "get", "get of an absent key", "delete",
    "snapshot", "scan, an entry", "scan backward, an entry", "seek and ten entries",
};

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(char *error) {
    if (error != NULL) fail("the database", error);
}

static Library load(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) fail(path, dlerror());
    Library library;
#define RESOLVE(result, name, arguments)                                       \
    *(void **)&library.name = dlsym(handle, "leveldb_" #name);                 \
    if (library.name == NULL) fail(path, "it lacks leveldb_" #name);
    FUNCTIONS(RESOLVE)
    return library;
}

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The keys in an order that looks random and is the same in every run: the step is a prime. */
static void key_at(char *key, uint64_t index, uint64_t entries) {
    uint64_t number = index * 7919 % entries;
    for (int at = KEY_BYTES; at-- > 0; number /= 10) key[at] = (char)('0' + number % 10);
}

/* Values of which half can be compressed, made before anything is measured. */
static char pool[VALUES][VALUE_BYTES];

static void fill_pool(void) {
    uint64_t state = 1;
    for (int value = 0; value < VALUES; value++) {
        for (int at = 0; at < VALUE_BYTES; at++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            pool[value][at] = at < VALUE_BYTES / 2 ? (char)(state >> 56) : 'x';
        }
    }
}

static volatile size_t consumed;

static void run(const Library *l, const char *directory, uint64_t entries, double *ns) {
    char *error = NULL;
    void *options = l->options_create();
    l->options_set_create_if_missing(options, 1);
    l->options_set_write_buffer_size(options, 4 << 20);
    l->options_set_cache(options, l->cache_create_lru(8 << 20));
    l->options_set_filter_policy(options, l->filterpolicy_create_bloom(10));
    l->options_set_compression(options, 1);
    l->destroy_db(options, directory, &error);
    error = NULL; /* There may be none. */
    void *db = l->open(options, directory, &error);
    check(error);
    void *reads = l->readoptions_create();
    void *writes = l->writeoptions_create();
    char key[KEY_BYTES + 8];
    size_t length;

    double start = now_ns();
    for (uint64_t i = 0; i < entries; i++) {
        key_at(key, i, entries);
        l->put(db, writes, key, KEY_BYTES, pool[i % VALUES], VALUE_BYTES, &error);
    }
    ns[PUT] = (now_ns() - start) / (double)entries;
    check(error);

    void *batch = l->writebatch_create();
    start = now_ns();
    for (uint64_t i = 0; i < entries; i++) {
        key_at(key, i, entries);
        l->writebatch_put(batch, key, KEY_BYTES, pool[i % VALUES], VALUE_BYTES);
        if ((i + 1) % BATCH == 0) {
            l->write(db, writes, batch, &error);
            l->writebatch_clear(batch);
        }
    }
    ns[PUT_BATCH] = (now_ns() - start) / (double)entries;
    check(error);
    l->writebatch_destroy(batch);
    /* What follows reads what is settled. */
    l->compact_range(db, NULL, 0, NULL, 0);

    start = now_ns();
    for (uint64_t i = 0; i < entries; i++) {
        key_at(key, i * 31 + 7, entries);
        char *found = l->get(db, reads, key, KEY_BYTES, &length, &error);
        if (found == NULL) fail("get", "a key is absent");
        consumed += length;
        l->free(found);
    }
    ns[GET] = (now_ns() - start) / (double)entries;

    start = now_ns();
    for (uint64_t i = 0; i < entries; i++) {
        key_at(key, i, entries);
        memcpy(key + KEY_BYTES, "-", 2);
        char *found = l->get(db, reads, key, KEY_BYTES + 1, &length, &error);
        if (found != NULL) fail("get", "an absent key is there");
    }
    ns[GET_ABSENT] = (now_ns() - start) / (double)entries;
    check(error);

    start = now_ns();
    for (uint64_t i = 0; i < entries; i++) {
        l->release_snapshot(db, l->create_snapshot(db));
    }
    ns[SNAPSHOT] = (now_ns() - start) / (double)entries;

    void *iterator = l->create_iterator(db, reads);
    start = now_ns();
    uint64_t count = 0;
    for (l->iter_seek_to_first(iterator); l->iter_valid(iterator); l->iter_next(iterator), count++) {
        l->iter_key(iterator, &length);
        consumed += length;
        l->iter_value(iterator, &length);
        consumed += length;
    }
    ns[SCAN] = (now_ns() - start) / (double)entries;
    if (count != entries) fail("scan", "entries are missing");
    start = now_ns();
    for (l->iter_seek_to_last(iterator); l->iter_valid(iterator); l->iter_prev(iterator)) {
        l->iter_key(iterator, &length);
        l->iter_value(iterator, &length);
        consumed += length;
    }
    ns[SCAN_BACK] = (now_ns() - start) / (double)entries;
    uint64_t seeks = entries / 10;
    start = now_ns();
    for (uint64_t i = 0; i < seeks; i++) {
        key_at(key, i, entries);
        l->iter_seek(iterator, key, KEY_BYTES);
        for (int at = 0; at < 10 && l->iter_valid(iterator); at++, l->iter_next(iterator)) {
            l->iter_value(iterator, &length);
            consumed += length;
        }
    }
    ns[SEEK] = (now_ns() - start) / (double)seeks;
    l->iter_destroy(iterator);

    start = now_ns();
    for (uint64_t i = 0; i < entries; i++) {
        key_at(key, i, entries);
        l->delete(db, writes, key, KEY_BYTES, &error);
    }
    ns[DELETE] = (now_ns() - start) / (double)entries;
    check(error);
    l->close(db);
    l->destroy_db(options, directory, &error);
    check(error);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int count) {
    double sorted[MOST_ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

int main(int argc, char **argv) {
    if (argc < 4) fail("usage", "beside_leveldb DIRECTORY LIBRARY LIBRARY [ENTRIES [ROUNDS]]");
    uint64_t entries = argc > 4 ? strtoull(argv[4], NULL, 10) : 200000;
    int rounds = argc > 5 ? atoi(argv[5]) : 9;
    if (entries < BATCH || entries % 7919 == 0) fail("ENTRIES", "at least 1000, and no multiple of 7919");
    if (rounds < 1 || rounds > MOST_ROUNDS) fail("ROUNDS", "1 to 99");
    fill_pool();
    Library libraries[2] = {load(argv[2]), load(argv[3])};
    static double ns[2][WORKS][MOST_ROUNDS];
    for (int round = 0; round < rounds; round++) {
        for (int turn = 0; turn < 2; turn++) {
            int which = (round + turn) % 2;
            double took[WORKS];
            run(&libraries[which], argv[1], entries, took);
            for (int work = 0; work < WORKS; work++) ns[which][work][round] = took[work];
        }
    }
    printf("%llu entries, keys of %d bytes, values of %d, %d rounds\n\n", (unsigned long long)entries, KEY_BYTES,
           VALUE_BYTES, rounds);
    printf("| ns for each | %s | least, most | %s | least, most | ratio |\n", argv[2], argv[3]);
    printf("| --- | ---: | --- | ---: | --- | ---: |\n");
    for (int work = 0; work < WORKS; work++) {
        double ratios[MOST_ROUNDS];
        printf("| %s |", NAMES[work]);
        for (int which = 0; which < 2; which++) {
            double least = ns[which][work][0], most = least;
            for (int round = 0; round < rounds; round++) {
                double took = ns[which][work][round];
                least = took < least ? took : least;
                most = took > most ? took : most;
            }
            printf(" %.0f | %.0f, %.0f |", median(ns[which][work], rounds), least, most);
        }
        for (int round = 0; round < rounds; round++) ratios[round] = ns[0][work][round] / ns[1][work][round];
        printf(" %.2f |\n", median(ratios, rounds));
    }
    return 0;
}
