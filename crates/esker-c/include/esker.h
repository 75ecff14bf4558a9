/*
 * The C interface of Esker, an embedded key-value engine. doc/c.md is its page.
 * Generated from crates/esker-c/src by its test `header`; edit it there.
 *
 * Every function returns a code, but for those that only look: ESKER_OK, or what was wrong;
 * esker_last_error_message() says more, in the thread that made the call.
 *
 * Handles are opaque. They are made by a function whose last argument is a place for them, and end
 * with the function that says so. One that has ended, is NULL or of another type is told
 * (ESKER_CLOSED_HANDLE, ESKER_WRONG_HANDLE). A process that is a fork of one that has opened a
 * database, repaired or destroyed one, can use nothing (ESKER_FORKED) until it calls exec.
 * Any thread may use any handle; batches, cursors, iterators, transactions and readers of changes one
 * thread at a time (ESKER_BUSY_HANDLE).
 *
 * Keys and values are any bytes, with their length; names and paths are texts that end with a zero
 * byte. What a function returns in a `char **` is the caller's, to be freed with esker_free();
 * after a failure it is NULL. What it returns otherwise is lent, for as long as the function says.
 */


#ifndef ESKER_H
#define ESKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 Tables are not compressed.
 */
#define ESKER_COMPRESSION_NONE 0

/*
 LZ4.
 */
#define ESKER_COMPRESSION_LZ4 1

/*
 Zstandard, if the library was built with it.
 */
#define ESKER_COMPRESSION_ZSTD 2

/*
 The log is written through a mapping.
 */
#define ESKER_WAL_MAPPED 0

/*
 The log is written with `write`.
 */
#define ESKER_WAL_PLAIN 1

/*
 Tables are read through a mapping where they fit in memory.
 */
#define ESKER_READ_AUTO 0

/*
 Tables are read through a mapping.
 */
#define ESKER_READ_MMAP 1

/*
 Tables are read with `pread`.
 */
#define ESKER_READ_PREAD 2

/*
 Tables are read through a mapping, and every read is checked.
 */
#define ESKER_READ_MMAP_CHECKED 3

/*
 A few overlapping runs above one sorted run.
 */
#define ESKER_COMPACTION_LAZY_LEVELING 0

/*
 Levels, each of one sorted run.
 */
#define ESKER_COMPACTION_LEVELED 1

/*
 Runs of similar size.
 */
#define ESKER_COMPACTION_TIERED 2

/*
 The oldest tables are dropped: `esker_keyspace_options_set_fifo`.
 */
#define ESKER_COMPACTION_FIFO 3

/*
 A compaction filter keeps the value.
 */
#define ESKER_FILTER_KEEP 0

/*
 A compaction filter removes the key.
 */
#define ESKER_FILTER_REMOVE 1

/*
 A compaction filter replaces the value by that of its output.
 */
#define ESKER_FILTER_REPLACE 2

/*
 An operation that this version of the interface has no number for.
 */
#define ESKER_CHANGE_OTHER 0

/*
 The key has this value from here on. Also a change of its expiry.
 */
#define ESKER_CHANGE_PUT 1

/*
 The key has no value from here on.
 */
#define ESKER_CHANGE_DELETE 2

/*
 The operand was combined with what the key had.
 */
#define ESKER_CHANGE_MERGE 3

/*
 The keys of a range have no value from here on.
 */
#define ESKER_CHANGE_DELETE_RANGE 4

/*
 Pairs were loaded (`esker_keyspace_ingest`), which are not listed: read the keyspace.
 */
#define ESKER_CHANGE_LOAD 5

/*
 The keyspace was dropped.
 */
#define ESKER_CHANGE_DROP_KEYSPACE 6

/*
 The keyspace was renamed, or has another merge operator or time to live from here on.
 */
#define ESKER_CHANGE_ALTER_KEYSPACE 7

/*
 The time of expiry of a key that never expires.
 */
#define ESKER_NEVER UINT64_MAX

/*
 The version of the interface: the major part of the name of the shared library.
 */
#define ESKER_ABI_VERSION 0

/*
 Operations that are written together.
 */
typedef struct esker_batch esker_batch;

/*
 What was written, in order.
 */
typedef struct esker_changes esker_changes;

/*
 A position among the keys of a keyspace.
 */
typedef struct esker_cursor esker_cursor;

/*
 An open database.
 */
typedef struct esker_db esker_db;

/*
 A database that is read behind its writer.
 */
typedef struct esker_follower esker_follower;

/*
 The pairs of a range, from both ends.
 */
typedef struct esker_iterator esker_iterator;

/*
 A keyspace of an open database.
 */
typedef struct esker_keyspace esker_keyspace;

/*
 The options of a keyspace.
 */
typedef struct esker_keyspace_options esker_keyspace_options;

/*
 The options of a database.
 */
typedef struct esker_options esker_options;

/*
 Where a callback puts its result.
 */
typedef struct esker_output esker_output;

/*
 All keyspaces at one moment.
 */
typedef struct esker_snapshot esker_snapshot;

/*
 A transaction.
 */
typedef struct esker_transaction esker_transaction;

/*
 Waits for writes to some keys.
 */
typedef struct esker_watch esker_watch;

/*
 The options of a write.
 */
typedef struct esker_write_options esker_write_options;

/*
 What a call came to: `ESKER_OK`, or what was wrong. `esker_last_error_message` says more.
 */
typedef int32_t esker_code;

/*
 Bytes of the caller, or lent to it.
 */
typedef struct {
  /*
   The first byte; may be NULL if there is none.
   */
  const void *data;
  /*
   Their number.
   */
  size_t length;
} esker_bytes;

/*
 How two keys are ordered: negative if `a` comes first, positive if `b` does, 0 only if they are
 the same bytes. The same for ever, from any thread, with locks held.
 */
typedef int32_t (*esker_compare)(void *state, esker_bytes a, esker_bytes b);

/*
 Frees the state of a callback, when nothing uses it any more. May be NULL.
 */
typedef void (*esker_destroy)(void *state);

/*
 Makes the filter of a table of its keys, and puts it into the output. Returns whether it did; if
 not, the table is always searched.
 */
typedef bool (*esker_create_filter)(void *state,
                                    const esker_bytes *keys,
                                    size_t count,
                                    esker_output *output);

/*
 Whether the table with a filter may hold a key. A key that it denies is not found.
 */
typedef bool (*esker_key_may_match)(void *state, esker_bytes key, esker_bytes filter);

/*
 The time now, in milliseconds since 1970.
 */
typedef uint64_t (*esker_clock)(void *state);

/*
 Takes something that has happened in the background: its name, as "flush completed", and a text
 about it. Called in a thread of its own, with no lock held.
 */
typedef void (*esker_event)(void *state, const char *name, const char *text);

/*
 Combines a value with operands, oldest first, and puts the result into the output: a value, or
 that the key is deleted. `existing` is NULL if the key has no value. Returns whether it could;
 if not, reads of the key fail. Called from any thread, with locks held: short, and without
 writing to the database.
 */
typedef bool (*esker_full_merge)(void *state,
                                 esker_bytes key,
                                 const esker_bytes *existing,
                                 const esker_bytes *operands,
                                 size_t operand_count,
                                 esker_output *output);

/*
 Makes one operand of two, and puts it into the output. Returns whether it could; if not, both
 are kept.
 */
typedef bool (*esker_partial_merge)(void *state,
                                    esker_bytes key,
                                    esker_bytes older,
                                    esker_bytes newer,
                                    esker_output *output);

/*
 Returns whether an operand is one that `esker_full_merge` could take. One that is not is refused
 at the write.
 */
typedef bool (*esker_check_operand)(void *state, esker_bytes operand, esker_output *output);

/*
 Decides about a value while it is compacted: one of `ESKER_FILTER_...`. A replacement goes into
 the output.
 */
typedef int32_t (*esker_filter)(void *state,
                                esker_bytes key,
                                esker_bytes value,
                                esker_output *output);

/*
 Takes a text with its name. Returns whether to go on.
 */
typedef bool (*esker_visit_text)(void *state, const char *name, const char *text);

/*
 A range of keys: from `start`, which is in it, to `end`, which is not. The key behind a key k is
 k with a zero byte appended. Where a pointer to a range may be NULL, NULL is all keys.
 */
typedef struct {
  /*
   The first key; NULL for the first of all.
   */
  const void *start;
  /*
   Its length.
   */
  size_t start_length;
  /*
   The key before which the range ends; NULL for behind the last of all.
   */
  const void *end;
  /*
   Its length.
   */
  size_t end_length;
} esker_range;

/*
 Hands out the next pair: sets both and returns true, or returns false at the end. The bytes must
 stay until the next call.
 */
typedef bool (*esker_next_pair)(void *state, esker_bytes *key, esker_bytes *value);

/*
 Takes a pair. Returns whether to go on.
 */
typedef bool (*esker_visit_pair)(void *state, esker_bytes key, esker_bytes value);

/*
 One operation as it was committed. Which fields have a meaning says `operation`.
 */
typedef struct {
  /*
   Its place in the order of writes. Numbers ascend, with gaps.
   */
  uint64_t sequence;
  /*
   The name that the keyspace had then; where it was renamed, the new one.
   */
  const char *keyspace;
  /*
   The number of the keyspace, which no other keyspace of the database ever has.
   */
  uint64_t keyspace_id;
  /*
   What was done: one of `ESKER_CHANGE_...`.
   */
  int32_t operation;
  /*
   The key; of a delete of a range where it begins, without data if at the first key; of a
   keyspace that was altered the name that it had before.
   */
  esker_bytes key;
  /*
   The value or the operand; of a delete of a range where it ends, without data if behind the
   last key; of a keyspace that was altered the name of its merge operator, without data if it
   has none.
   */
  esker_bytes value;
  /*
   When the key expires, in milliseconds since 1970; ESKER_NEVER if it does not. Of a keyspace
   that was altered how many milliseconds its entries live by default: 0 if only writes say so,
   ESKER_NEVER if they cannot expire.
   */
  uint64_t expires_at_ms;
  /*
   Of a merge: the operand was combined with nothing.
   */
  bool is_first;
  /*
   Of a delete of a range: `key` is not in it.
   */
  bool start_is_excluded;
  /*
   Of a delete of a range: `value` is in it.
   */
  bool end_is_included;
} esker_change;

/*
 What a keyspace was at one place in the order of writes.
 */
typedef struct {
  /*
   Its name.
   */
  const char *name;
  /*
   The name of the order of its keys, which is "bytewise" without a comparator.
   */
  const char *comparator;
  /*
   The name of its merge operator; NULL if it had none.
   */
  const char *merge_operator;
  /*
   How many milliseconds its entries lived by default: 0 if only writes said so, ESKER_NEVER if
   they could not expire.
   */
  uint64_t default_ttl_ms;
} esker_keyspace_settings;

/*
 The call has done what it is for.
 */
#define ESKER_OK 0

/*
 The operating system refused an operation on a file.
 */
#define ESKER_IO 1

/*
 Stored bytes do not have the form they were written in.
 */
#define ESKER_CORRUPTION 2

/*
 A callback made a call of its own database that it may not make.
 */
#define ESKER_IN_CALLBACK 3

/*
 An argument is one that the call cannot take. Nothing was written.
 */
#define ESKER_INVALID_ARGUMENT 4

/*
 Another handle, in this process or another, has the database open for writing.
 */
#define ESKER_LOCKED 5

/*
 The keyspace was dropped.
 */
#define ESKER_KEYSPACE_DROPPED 6

/*
 The keyspace was created with a merge operator that was not supplied at this open.
 */
#define ESKER_MISSING_MERGE_OPERATOR 7

/*
 A merge operator could not combine an existing value with its operands.
 */
#define ESKER_MERGE_FAILED 8

/*
 Another writer wrote what the transaction has read or writes. Run it again.
 */
#define ESKER_CONFLICT 9

/*
 A read beside a writer met one that changes the files too fast.
 */
#define ESKER_STALLED 10

/*
 A write that is not to wait met stalled writes. Nothing was written.
 */
#define ESKER_WRITE_STALLED 11

/*
 The handle accepts no writes: it was opened so, closed, or the log or manifest failed.
 */
#define ESKER_READ_ONLY 12

/*
 The files have a newer format than this library.
 */
#define ESKER_UNSUPPORTED 13

/*
 The files are compressed in a way that this library was built without.
 */
#define ESKER_UNSUPPORTED_COMPRESSION 14

/*
 There is no database or keyspace of that name.
 */
#define ESKER_NOT_FOUND 15

/*
 The keyspace was created with a comparator that was not supplied at this open.
 */
#define ESKER_MISSING_COMPARATOR 16

/*
 A database that is not to be there is.
 */
#define ESKER_ALREADY_EXISTS 17

/*
 The changes that were to be read are not kept any more. Begin anew with a snapshot.
 */
#define ESKER_GONE 18

/*
 An error of the engine that this version of the interface has no code for.
 */
#define ESKER_OTHER 99

/*
 A handle was closed or destroyed before.
 */
#define ESKER_CLOSED_HANDLE 100

/*
 A handle is NULL, of another type, or none.
 */
#define ESKER_WRONG_HANDLE 101

/*
 Another call uses the batch, cursor, iterator, transaction or reader of changes at this moment.
 */
#define ESKER_BUSY_HANDLE 102

/*
 The process is a fork of one that used a database before: only `exec` helps.
 */
#define ESKER_FORKED 103

/*
 The library panicked: a defect of it. The call may have been done in part.
 */
#define ESKER_PANIC 104

/*
 There is no memory, or there are too many handles.
 */
#define ESKER_OUT_OF_MEMORY 105

/*
 A buffer of the caller is too short; the length that it needs was returned.
 */
#define ESKER_BUFFER_TOO_SHORT 106

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The message of the last call of this thread that failed: where something was wrong, and what to
 do about it. Empty if none has failed. It is valid until another call of this thread fails.
 */
const char *esker_last_error_message(void);

/*
 The code of the last call of this thread that failed; ESKER_OK if none has failed.
 */
esker_code esker_last_error_code(void);

/*
 Whether the last call of this thread that failed may succeed later without any change by the
 caller.
 */
bool esker_last_error_is_retryable(void);

/*
 Whether the last call of this thread that failed met a full disk or an exhausted quota.
 */
bool esker_last_error_is_disk_full(void);

/*
 After ESKER_GONE, the first write whose changes are kept; 0 after any other failure.
 */
uint64_t esker_last_error_oldest_write(void);

/*
 The name of a code, as `ESKER_CORRUPTION`.
 */
const char *esker_code_name(esker_code code);

/*
 The version of the library, as "0.1.0".
 */
const char *esker_version(void);

/*
 The version of the interface that the library has; ESKER_ABI_VERSION is that of the header.
 */
uint32_t esker_abi_version(void);

/*
 Frees what a call returned in memory: values, texts, lists. NULL does nothing. The same as
 `free`, where the program and the library have the same C library.
 */
void esker_free(void *memory);

/*
 A key for messages: printable ASCII as it is, every other byte as `\xNN`, long keys shortened;
 to be freed with `esker_free`.
 */
esker_code esker_escape_key(const void *key, size_t key_length, char **text);

/*
 Gives the memory that closed databases have left for the next one back to the system. While a
 database is open, that happens by itself once no open database has been written to for a second.
 */
esker_code esker_release_unused_memory(void);

/*
 Bytes that no memtable uses, kept for the next one, or for the next database.
 */
esker_code esker_unused_memory_bytes(size_t *bytes);

/*
 Puts a copy of a value, an operand or a replacement into the output of a callback. Valid in the
 callback only.
 */
esker_code esker_output_set(esker_output *output, const void *value, size_t length);

/*
 Says in `esker_full_merge` that the key has no value.
 */
esker_code esker_output_delete(esker_output *output);

/*
 Says why a callback fails, before it returns false.
 */
esker_code esker_output_fail(esker_output *output, const char *reason);

/*
 Makes options with their defaults. A database that is opened copies them: they can be changed
 and destroyed at once. Destroy them with `esker_options_destroy`.
 */
esker_code esker_options_create(esker_options **options);

/*
 Destroys options.
 */
esker_code esker_options_destroy(esker_options *options);

/*
 Refuses what cannot work, with ESKER_INVALID_ARGUMENT: the message names the option, its value
 and its limits. Every open begins with this.
 */
esker_code esker_options_validate(esker_options *options);

/*
 Every value that a database opened with these options would have, its origin and its trade-off,
 as a text to be freed with `esker_free`.
 */
esker_code esker_options_explain(esker_options *options, char **text);

/*
 Whether a missing database is created. Default: true.
 */
esker_code esker_options_set_create_if_missing(esker_options *options, bool yes);

/*
 Bytes of a memtable before it is flushed.
 */
esker_code esker_options_set_write_buffer_bytes(esker_options *options, size_t bytes);

/*
 Bytes of the cache of decompressed blocks.
 */
esker_code esker_options_set_block_cache_bytes(esker_options *options, size_t bytes);

/*
 Bytes of a block of a table.
 */
esker_code esker_options_set_block_bytes(esker_options *options, size_t bytes);

/*
 Whether the library was built with a compression: one of `ESKER_COMPRESSION_...`.
 */
esker_code esker_compression_is_available(int32_t number, bool *available);

/*
 The compression of the last run: one of `ESKER_COMPRESSION_...`.
 */
esker_code esker_options_set_compression(esker_options *options, int32_t number);

/*
 The compression of the runs above the last.
 */
esker_code esker_options_set_upper_compression(esker_options *options, int32_t number);

/*
 Bits of the filter of a table for each key; 0 for none.
 */
esker_code esker_options_set_filter_bits_per_key(esker_options *options, uint32_t bits);

/*
 Bytes of a table, about.
 */
esker_code esker_options_set_target_file_bytes(esker_options *options, uint64_t bytes);

/*
 The length from which values are stored in blob files.
 */
esker_code esker_options_set_min_blob_size(esker_options *options, size_t bytes);

/*
 Bytes of a segment of the log.
 */
esker_code esker_options_set_wal_segment_bytes(esker_options *options, uint64_t bytes);

/*
 How the log is written: one of `ESKER_WAL_...`.
 */
esker_code esker_options_set_wal_mode(esker_options *options, int32_t number);

/*
 How tables are read: one of `ESKER_READ_...`.
 */
esker_code esker_options_set_read_mode(esker_options *options, int32_t number);

/*
 Threads that flush and compact; 0 makes writes do it.
 */
esker_code esker_options_set_background_threads(esker_options *options, size_t threads);

/*
 The most bytes that compactions write in a second; 0 for no limit.
 */
esker_code esker_options_set_compaction_bytes_per_second(esker_options *options, uint64_t bytes);

/*
 The most bytes of memory of memtables, caches, indexes and filters together.
 */
esker_code esker_options_set_memory_budget_bytes(esker_options *options, size_t bytes);

/*
 Sets several options for a kind of use: "counters", "balanced", "read-heavy" or "large-values".
 */
esker_code esker_options_set_profile(esker_options *options, const char *profile);

/*
 Whether the time that calls take is measured.
 */
esker_code esker_options_set_latency_histograms(esker_options *options, bool yes);

/*
 Keeps the changes in the last so many bytes of the log, for `esker_db_changes`.
 */
esker_code esker_options_set_keep_changes_bytes(esker_options *options, uint64_t bytes);

/*
 Keeps the changes of the last so many milliseconds.
 */
esker_code esker_options_set_keep_changes_time(esker_options *options, uint64_t milliseconds);

/*
 Keeps the changes that are kept, all of them, as long as the database is open, and none where
 none are: for a program that opens the database of another one for a moment. Opened without any
 of the three, it would end the changes of the other.
 */
esker_code esker_options_set_keep_changes_as_before(esker_options *options);

/*
 Whether a database that is there is refused, with ESKER_ALREADY_EXISTS. Default: false.
 */
esker_code esker_options_set_error_if_exists(esker_options *options, bool yes);

/*
 Supplies a comparator for the keyspaces that were created with one of its name. Call it once for
 each. `destroy` gets the state when nothing uses it any more, also if this call fails.
 */
esker_code esker_options_add_comparator(esker_options *options,
                                        const char *name,
                                        void *state,
                                        esker_compare compare,
                                        esker_destroy destroy);

/*
 Asks functions, beside the engine's own filter, whether a get has to search a table. `destroy`
 gets the state as for a comparator.
 */
esker_code esker_options_set_filter_policy(esker_options *options,
                                           const char *name,
                                           void *state,
                                           esker_create_filter create_filter,
                                           esker_key_may_match key_may_match,
                                           esker_destroy destroy);

/*
 Takes the time from a function. For tests.
 */
esker_code esker_options_set_clock(esker_options *options,
                                   void *state,
                                   esker_clock now,
                                   esker_destroy destroy);

/*
 Tells a function about flushes, compactions, stalls and failures.
 */
esker_code esker_options_set_event_listener(esker_options *options,
                                            void *state,
                                            esker_event event,
                                            esker_destroy destroy);

/*
 Makes options with their defaults. A keyspace that is opened copies them. Destroy them with
 `esker_keyspace_options_destroy`.
 */
esker_code esker_keyspace_options_create(esker_keyspace_options **options);

/*
 Destroys options.
 */
esker_code esker_keyspace_options_destroy(esker_keyspace_options *options);

/*
 Gives a keyspace the merge operator that these options have, of which nothing else is used.
 Durable when it returns. In the place of another one it takes the time to rewrite the keyspace,
 whose operands are combined first. Does nothing where the keyspace has an operator of that name,
 but supply it if the keyspace was opened without. ESKER_INVALID_ARGUMENT if the options have
 none, and where operands cannot be combined, as where an iterator sees what is below them.
 */
esker_code esker_keyspace_set_merge_operator(esker_keyspace *keyspace,
                                             const esker_keyspace_options *options);

/*
 Takes a merge operator of the engine: "uint64add", "int64add", "max", "min", "put", "bytesxor",
 "bitor", or "stringappend:" with the delimiter in hexadecimal digits.
 */
esker_code esker_keyspace_options_set_built_in_operator(esker_keyspace_options *options,
                                                        const char *name);

/*
 Takes a merge operator of C functions, under a name that is stored with the keyspace.
 `partial_merge` and `check_operand` may be NULL. The engine calls the functions from any thread;
 `destroy` gets the state when nothing uses it any more, also if this call fails.
 */
esker_code esker_keyspace_options_set_merge_operator(esker_keyspace_options *options,
                                                     const char *name,
                                                     void *state,
                                                     esker_full_merge full_merge,
                                                     esker_partial_merge partial_merge,
                                                     esker_check_operand check_operand,
                                                     esker_destroy destroy);

/*
 Takes an order of the keys, under a name that is stored when the keyspace is created. Later
 opens of the database need it by `esker_options_add_comparator`. `destroy` gets the state as for
 a merge operator.
 */
esker_code esker_keyspace_options_set_comparator(esker_keyspace_options *options,
                                                 const char *name,
                                                 void *state,
                                                 esker_compare compare,
                                                 esker_destroy destroy);

/*
 Takes the reverse of the order of bytes: the greatest key comes first. Opens know it without
 `esker_options_add_comparator`.
 */
esker_code esker_keyspace_options_set_reverse_order(esker_keyspace_options *options);

/*
 Gives the keyspace a time to live; `default_ms` is that of writes that bring none, or 0 if those
 never expire.
 */
esker_code esker_keyspace_options_set_ttl(esker_keyspace_options *options,
                                          bool enabled,
                                          uint64_t default_ms);

/*
 How the keyspace is compacted: one of `ESKER_COMPACTION_...`.
 */
esker_code esker_keyspace_options_set_compaction_style(esker_keyspace_options *options,
                                                       int32_t number);

/*
 Keeps at most so many bytes of tables: the oldest ones are dropped with all that is in them.
 */
esker_code esker_keyspace_options_set_fifo(esker_keyspace_options *options, uint64_t max_bytes);

/*
 Takes a compaction filter. `destroy` gets the state as for a merge operator.
 */
esker_code esker_keyspace_options_set_compaction_filter(esker_keyspace_options *options,
                                                        const char *name,
                                                        void *state,
                                                        esker_filter filter,
                                                        esker_destroy destroy);

/*
 Whether compaction drops values by these options for other reasons than that they were deleted,
 overwritten or have expired: a compaction filter, or ESKER_COMPACTION_FIFO. When it does depends
 on how a database was compacted, so that two databases with the same writes differ.
 */
esker_code esker_keyspace_options_drops_values_in_compaction(esker_keyspace_options *options,
                                                             bool *drops);

/*
 Makes options with their defaults. Destroy them with `esker_write_options_destroy`.
 */
esker_code esker_write_options_create(esker_write_options **options);

/*
 Destroys options.
 */
esker_code esker_write_options_destroy(esker_write_options *options);

/*
 Whether the write, and everything before it, is on the device when the call returns.
 */
esker_code esker_write_options_set_sync(esker_write_options *options, bool yes);

/*
 Whether the log is left out: the write is lost with the process until a flush.
 */
esker_code esker_write_options_set_disable_wal(esker_write_options *options, bool yes);

/*
 The time to live of what is written, in milliseconds.
 */
esker_code esker_write_options_set_ttl(esker_write_options *options, uint64_t milliseconds);

/*
 Fails with ESKER_WRITE_STALLED where writes are stalled, after waiting for at most so many
 milliseconds; 0 does not wait. UINT64_MAX, the default, waits for as long as it takes.
 */
esker_code esker_write_options_set_stall(esker_write_options *options, uint64_t milliseconds);

/*
 Opens the database in a directory, or creates it. `options` may be NULL. Close it with
 `esker_db_close`. Any thread may use the handle; no other process may open it meanwhile
 (ESKER_LOCKED), and a child of fork cannot use the library (ESKER_FORKED).
 */
esker_code esker_db_open(const char *path, const esker_options *options, esker_db **db);

/*
 Opens a database for reading, beside a writer or not: it sees what was acknowledged before.
 */
esker_code esker_db_open_read_only(const char *path, const esker_options *options, esker_db **db);

/*
 Closes a database: flushes what was written without log, and releases the lock. The handle is
 closed in any case. Keyspaces, snapshots, cursors and iterators of it can be read until they are
 destroyed; their writes are ESKER_READ_ONLY.
 */
esker_code esker_db_close(esker_db *db);

/*
 Opens a keyspace, or creates it. `options` may be NULL. Destroy the handle with
 `esker_keyspace_destroy`.
 */
esker_code esker_db_keyspace(esker_db *db,
                             const char *name,
                             const esker_keyspace_options *options,
                             esker_keyspace **keyspace);

/*
 Opens a keyspace that exists: ESKER_NOT_FOUND if it does not.
 */
esker_code esker_db_existing_keyspace(esker_db *db, const char *name, esker_keyspace **keyspace);

/*
 Removes a keyspace with all that is in it.
 */
esker_code esker_db_drop_keyspace(esker_db *db, const char *name);

/*
 Calls a function for the name of each keyspace; the text is that of its merge operator, or
 empty.
 */
esker_code esker_db_keyspaces(esker_db *db, void *state, esker_visit_text visit);

/*
 The directory of the database, to be freed with `esker_free`.
 */
esker_code esker_db_path(esker_db *db, char **path);

/*
 Takes a snapshot of all keyspaces. Destroy it with `esker_snapshot_destroy`.
 */
esker_code esker_db_snapshot(esker_db *db, esker_snapshot **snapshot);

/*
 Makes an empty batch. Destroy it with `esker_batch_destroy`.
 */
esker_code esker_db_batch(esker_db *db, esker_batch **batch);

/*
 Begins a transaction. End it with `esker_transaction_commit` or `esker_transaction_rollback`.
 */
esker_code esker_db_transaction(esker_db *db, esker_transaction **transaction);

/*
 Destroys the handle of a keyspace; the keyspace stays.
 */
esker_code esker_keyspace_destroy(esker_keyspace *keyspace);

/*
 The name of a keyspace, to be freed with `esker_free`.
 */
esker_code esker_keyspace_name(esker_keyspace *keyspace, char **name);

/*
 The number of a keyspace, which no other keyspace of the database ever has, and which a rename
 does not change: the `keyspace_id` of its changes.
 */
esker_code esker_keyspace_id(esker_keyspace *keyspace, uint64_t *id);

/*
 Gives a keyspace another name, in one atomic step that is durable when it returns. All handles,
 snapshots, iterators, batches and transactions go on; the old name is free at once.
 ESKER_ALREADY_EXISTS if a keyspace has that name; its own name changes nothing.
 */
esker_code esker_keyspace_rename(esker_keyspace *keyspace, const char *name);

/*
 The name of the order of the keys, which is "bytewise" without a comparator, to be freed with
 `esker_free`.
 */
esker_code esker_keyspace_comparator(esker_keyspace *keyspace, char **name);

/*
 The name of the merge operator, to be freed with `esker_free`; NULL if there is none.
 */
esker_code esker_keyspace_merge_operator(esker_keyspace *keyspace, char **name);

/*
 How two keys are ordered in a keyspace, whether they have values or not: `*order` is -1 if `a`
 comes first, 1 if `b` does, 0 if they are the same.
 */
esker_code esker_keyspace_compare_keys(esker_keyspace *keyspace,
                                       const void *a,
                                       size_t a_length,
                                       const void *b,
                                       size_t b_length,
                                       int32_t *order);

/*
 Whether the entries of a keyspace can expire, and after how many milliseconds by default; 0 if
 writes that bring no time to live never expire.
 */
esker_code esker_keyspace_ttl(esker_keyspace *keyspace, bool *enabled, uint64_t *default_ms);

/*
 From now on entries of a keyspace can expire, after so many milliseconds by default; 0 is never.
 What was written before keeps the expiry that it has, or has none, and so do operations that
 were added to batches and transactions before. Durable when it returns. Waits for a flush or
 compaction that is under way. Where nothing could expire before, and the keyspace has a merge
 operator, its operands are combined first: as for `esker_keyspace_set_merge_operator`.
 */
esker_code esker_keyspace_set_ttl(esker_keyspace *keyspace, uint64_t default_ms);

/*
 How a keyspace is compacted: one of `ESKER_COMPACTION_...`, and of ESKER_COMPACTION_FIFO the
 most bytes of tables, otherwise 0.
 */
esker_code esker_keyspace_compaction_style(esker_keyspace *keyspace,
                                           int32_t *number,
                                           uint64_t *max_bytes);

/*
 About the bytes of a range on disk and in memory. `range` may be NULL.
 */
esker_code esker_keyspace_approximate_size(esker_keyspace *keyspace,
                                           const esker_range *range,
                                           uint64_t *bytes);

/*
 About how many entries there are in a range, without reading a file: a key counts once for each
 table and memtable that has a version of it, also where it was deleted or has expired, until
 compaction drops it. `range` may be NULL.
 */
esker_code esker_keyspace_approximate_count(esker_keyspace *keyspace,
                                            const esker_range *range,
                                            uint64_t *entries);

/*
 Flushes, and compacts a range into one run. `range` may be NULL.
 */
esker_code esker_keyspace_compact(esker_keyspace *keyspace, const esker_range *range);

/*
 Loads pairs with ascending keys straight into tables; all of them become visible and durable at
 once, or none. `entries` gets their number, and may be NULL.
 */
esker_code esker_keyspace_ingest(esker_keyspace *keyspace,
                                 void *state,
                                 esker_next_pair next,
                                 uint64_t *entries);

/*
 Sets the value of a key. `options` may be NULL.
 */
esker_code esker_keyspace_put(esker_keyspace *keyspace,
                              const void *key,
                              size_t key_length,
                              const void *value,
                              size_t value_length,
                              const esker_write_options *options);

/*
 Sets the value of a key until a time, in milliseconds since 1970; ESKER_NEVER is never.
 */
esker_code esker_keyspace_put_until(esker_keyspace *keyspace,
                                    const void *key,
                                    size_t key_length,
                                    const void *value,
                                    size_t value_length,
                                    uint64_t expires_at_ms);

/*
 Deletes a key, which need not exist. `options` may be NULL.
 */
esker_code esker_keyspace_delete(esker_keyspace *keyspace,
                                 const void *key,
                                 size_t key_length,
                                 const esker_write_options *options);

/*
 Combines an operand with what a key holds, without reading it. `options` may be NULL.
 */
esker_code esker_keyspace_merge(esker_keyspace *keyspace,
                                const void *key,
                                size_t key_length,
                                const void *operand,
                                size_t operand_length,
                                const esker_write_options *options);

/*
 Deletes every key of a range, for the price of a put. `range` and `options` may be NULL.
 */
esker_code esker_keyspace_delete_range(esker_keyspace *keyspace,
                                       const esker_range *range,
                                       const esker_write_options *options);

/*
 Deletes every key that begins with a prefix.
 */
esker_code esker_keyspace_delete_prefix(esker_keyspace *keyspace,
                                        const void *prefix,
                                        size_t prefix_length);

/*
 The value of a key, to be freed with `esker_free`. `*value` is NULL if the key has none; that of
 an empty value is not. A zero byte that is not counted follows the value.
 */
esker_code esker_keyspace_get(esker_keyspace *keyspace,
                              const void *key,
                              size_t key_length,
                              char **value,
                              size_t *value_length);

/*
 Copies the value of a key into a buffer. `found` says whether the key has one, `value_length`
 how long it is; if that is more than `buffer_length`, nothing is copied and the code is
 ESKER_BUFFER_TOO_SHORT.
 */
esker_code esker_keyspace_get_into(esker_keyspace *keyspace,
                                   const void *key,
                                   size_t key_length,
                                   void *buffer,
                                   size_t buffer_length,
                                   size_t *value_length,
                                   bool *found);

/*
 The values of many keys, all of one moment: as `esker_keyspace_get` for each. `codes` may be
 NULL; otherwise it gets what each came to. Returns the first that is not ESKER_OK.
 */
esker_code esker_keyspace_multi_get(esker_keyspace *keyspace,
                                    const esker_bytes *keys,
                                    size_t count,
                                    char **values,
                                    size_t *value_lengths,
                                    esker_code *codes);

/*
 Whether a key has a value.
 */
esker_code esker_keyspace_contains_key(esker_keyspace *keyspace,
                                       const void *key,
                                       size_t key_length,
                                       bool *found);

/*
 When a key expires, in milliseconds since 1970; ESKER_NEVER if it does not. `found` says whether
 it has a value.
 */
esker_code esker_keyspace_expires_at(esker_keyspace *keyspace,
                                     const void *key,
                                     size_t key_length,
                                     bool *found,
                                     uint64_t *expires_at_ms);

/*
 The least key that has a value, and the value, both to be freed with `esker_free`. `*key` is
 NULL if there is none.
 */
esker_code esker_keyspace_first(esker_keyspace *keyspace,
                                char **key,
                                size_t *key_length,
                                char **value,
                                size_t *value_length);

/*
 The greatest key that has a value, as `esker_keyspace_first`.
 */
esker_code esker_keyspace_last(esker_keyspace *keyspace,
                               char **key,
                               size_t *key_length,
                               char **value,
                               size_t *value_length);

/*
 Deletes the least key and returns it with its value, as `esker_keyspace_first`.
 */
esker_code esker_keyspace_pop_first(esker_keyspace *keyspace,
                                    char **key,
                                    size_t *key_length,
                                    char **value,
                                    size_t *value_length);

/*
 The number of keys in a range that have a value. `range` may be NULL.
 */
esker_code esker_keyspace_count(esker_keyspace *keyspace,
                                const esker_range *range,
                                uint64_t *count);

/*
 Sets the value of a key that has none. `*existing` is NULL if it did, or the value that the key
 has, to be freed with `esker_free`. `options` may be NULL.
 */
esker_code esker_keyspace_put_if_absent(esker_keyspace *keyspace,
                                        const void *key,
                                        size_t key_length,
                                        const void *value,
                                        size_t value_length,
                                        const esker_write_options *options,
                                        char **existing,
                                        size_t *existing_length);

/*
 Sets the value of a key that has the expected one, both of which may be NULL for none.
 `*swapped` says whether it did; if not, `*current` is the value that the key has, to be freed
 with `esker_free`, or NULL. `options` may be NULL.
 */
esker_code esker_keyspace_compare_and_swap(esker_keyspace *keyspace,
                                           const void *key,
                                           size_t key_length,
                                           const void *expected,
                                           size_t expected_length,
                                           const void *value,
                                           size_t value_length,
                                           const esker_write_options *options,
                                           bool *swapped,
                                           char **current,
                                           size_t *current_length);

/*
 Merges an operand, and returns what the key holds then, to be freed with `esker_free`, or NULL.
 `options` may be NULL.
 */
esker_code esker_keyspace_merge_and_get(esker_keyspace *keyspace,
                                        const void *key,
                                        size_t key_length,
                                        const void *operand,
                                        size_t operand_length,
                                        const esker_write_options *options,
                                        char **value,
                                        size_t *value_length);

/*
 Deletes a key, and returns the value that it had, to be freed with `esker_free`, or NULL.
 `options` may be NULL.
 */
esker_code esker_keyspace_take(esker_keyspace *keyspace,
                               const void *key,
                               size_t key_length,
                               const esker_write_options *options,
                               char **value,
                               size_t *value_length);

/*
 Gives the value of a key so many milliseconds to live from now on. `found` says whether it has
 one.
 */
esker_code esker_keyspace_touch(esker_keyspace *keyspace,
                                const void *key,
                                size_t key_length,
                                uint64_t ttl_ms,
                                bool *found);

/*
 Makes the value of a key expire at a time, in milliseconds since 1970; ESKER_NEVER
 is never.
 */
esker_code esker_keyspace_expire_at(esker_keyspace *keyspace,
                                    const void *key,
                                    size_t key_length,
                                    uint64_t expires_at_ms,
                                    bool *found);

/*
 Makes the value of a key one that never expires.
 */
esker_code esker_keyspace_persist(esker_keyspace *keyspace,
                                  const void *key,
                                  size_t key_length,
                                  bool *found);

/*
 Destroys a batch; what was not committed is not written.
 */
esker_code esker_batch_destroy(esker_batch *batch);

/*
 Adds a put.
 */
esker_code esker_batch_put(esker_batch *batch,
                           esker_keyspace *keyspace,
                           const void *key,
                           size_t key_length,
                           const void *value,
                           size_t value_length);

/*
 Adds a put with a time to live, which counts from the commit.
 */
esker_code esker_batch_put_with_ttl(esker_batch *batch,
                                    esker_keyspace *keyspace,
                                    const void *key,
                                    size_t key_length,
                                    const void *value,
                                    size_t value_length,
                                    uint64_t ttl_ms);

/*
 Adds a put until a time, in milliseconds since 1970; ESKER_NEVER is never.
 */
esker_code esker_batch_put_until(esker_batch *batch,
                                 esker_keyspace *keyspace,
                                 const void *key,
                                 size_t key_length,
                                 const void *value,
                                 size_t value_length,
                                 uint64_t expires_at_ms);

/*
 Adds a delete.
 */
esker_code esker_batch_delete(esker_batch *batch,
                              esker_keyspace *keyspace,
                              const void *key,
                              size_t key_length);

/*
 Adds a merge.
 */
esker_code esker_batch_merge(esker_batch *batch,
                             esker_keyspace *keyspace,
                             const void *key,
                             size_t key_length,
                             const void *operand,
                             size_t operand_length);

/*
 Adds a merge with a time to live.
 */
esker_code esker_batch_merge_with_ttl(esker_batch *batch,
                                      esker_keyspace *keyspace,
                                      const void *key,
                                      size_t key_length,
                                      const void *operand,
                                      size_t operand_length,
                                      uint64_t ttl_ms);

/*
 Adds a delete of a range. `range` may be NULL.
 */
esker_code esker_batch_delete_range(esker_batch *batch,
                                    esker_keyspace *keyspace,
                                    const esker_range *range);

/*
 Adds a delete of every key that begins with a prefix.
 */
esker_code esker_batch_delete_prefix(esker_batch *batch,
                                     esker_keyspace *keyspace,
                                     const void *prefix,
                                     size_t prefix_length);

/*
 Adds a change of the expiry of a key, to so many milliseconds from the commit on.
 */
esker_code esker_batch_touch(esker_batch *batch,
                             esker_keyspace *keyspace,
                             const void *key,
                             size_t key_length,
                             uint64_t ttl_ms);

/*
 Adds a change of the expiry of a key, to a time in milliseconds since 1970; ESKER_NEVER is
 never.
 */
esker_code esker_batch_expire_at(esker_batch *batch,
                                 esker_keyspace *keyspace,
                                 const void *key,
                                 size_t key_length,
                                 uint64_t expires_at_ms);

/*
 Adds that a key never expires.
 */
esker_code esker_batch_persist(esker_batch *batch,
                               esker_keyspace *keyspace,
                               const void *key,
                               size_t key_length);

/*
 The number of operations in a batch.
 */
esker_code esker_batch_count(esker_batch *batch, size_t *count);

/*
 Removes all operations.
 */
esker_code esker_batch_clear(esker_batch *batch);

/*
 Writes all operations in one atomic step, and empties the batch. After ESKER_WRITE_STALLED they
 are still there, to be committed again. `options` may be NULL.
 */
esker_code esker_batch_commit(esker_batch *batch, const esker_write_options *options);

/*
 Destroys a snapshot.
 */
esker_code esker_snapshot_destroy(esker_snapshot *snapshot);

/*
 The value of a key in a snapshot, as `esker_keyspace_get`.
 */
esker_code esker_snapshot_get(esker_snapshot *snapshot,
                              esker_keyspace *keyspace,
                              const void *key,
                              size_t key_length,
                              char **value,
                              size_t *value_length);

/*
 Copies the value of a key in a snapshot into a buffer, as `esker_keyspace_get_into`.
 */
esker_code esker_snapshot_get_into(esker_snapshot *snapshot,
                                   esker_keyspace *keyspace,
                                   const void *key,
                                   size_t key_length,
                                   void *buffer,
                                   size_t buffer_length,
                                   size_t *value_length,
                                   bool *found);

/*
 The values of many keys in a snapshot, as `esker_keyspace_multi_get`.
 */
esker_code esker_snapshot_multi_get(esker_snapshot *snapshot,
                                    esker_keyspace *keyspace,
                                    const esker_bytes *keys,
                                    size_t count,
                                    char **values,
                                    size_t *value_lengths,
                                    esker_code *codes);

/*
 Whether a key has a value in a snapshot.
 */
esker_code esker_snapshot_contains_key(esker_snapshot *snapshot,
                                       esker_keyspace *keyspace,
                                       const void *key,
                                       size_t key_length,
                                       bool *found);

/*
 When a key of a snapshot expires, as `esker_keyspace_expires_at`.
 */
esker_code esker_snapshot_expires_at(esker_snapshot *snapshot,
                                     esker_keyspace *keyspace,
                                     const void *key,
                                     size_t key_length,
                                     bool *found,
                                     uint64_t *expires_at_ms);

/*
 The least key of a snapshot that has a value, as `esker_keyspace_first`.
 */
esker_code esker_snapshot_first(esker_snapshot *snapshot,
                                esker_keyspace *keyspace,
                                char **key,
                                size_t *key_length,
                                char **value,
                                size_t *value_length);

/*
 The greatest key of a snapshot that has a value, as `esker_keyspace_last`.
 */
esker_code esker_snapshot_last(esker_snapshot *snapshot,
                               esker_keyspace *keyspace,
                               char **key,
                               size_t *key_length,
                               char **value,
                               size_t *value_length);

/*
 The number of keys in a range of a snapshot. `range` may be NULL.
 */
esker_code esker_snapshot_count(esker_snapshot *snapshot,
                                esker_keyspace *keyspace,
                                const esker_range *range,
                                uint64_t *count);

/*
 The sequence number of the last write that a snapshot sees.
 */
esker_code esker_snapshot_sequence(esker_snapshot *snapshot, uint64_t *sequence);

/*
 Makes a cursor over a keyspace, at no key: of a snapshot, or of this moment if `snapshot` is
 NULL. With `keys_only` its values are empty, and large ones are not loaded, unless operands are
 merged into them. Destroy it with `esker_cursor_destroy`. It may outlive the handles that it was
 made of.
 */
esker_code esker_cursor_create(esker_keyspace *keyspace,
                               esker_snapshot *snapshot,
                               bool keys_only,
                               esker_cursor **cursor);

/*
 As `esker_cursor_create`, for the keys of a range alone: no move finds one outside. `range` may
 be NULL.
 */
esker_code esker_cursor_create_within(esker_keyspace *keyspace,
                                      esker_snapshot *snapshot,
                                      bool keys_only,
                                      const esker_range *range,
                                      esker_cursor **cursor);

/*
 Destroys a cursor.
 */
esker_code esker_cursor_destroy(esker_cursor *cursor);

/*
 Moves to the first key. After a failure of this or any other move the cursor is at no key; after
 ESKER_MERGE_FAILED the next step goes on behind the key that failed.
 */
esker_code esker_cursor_seek_to_first(esker_cursor *cursor);

/*
 Moves to the last key.
 */
esker_code esker_cursor_seek_to_last(esker_cursor *cursor);

/*
 Moves to the first key at or after a key.
 */
esker_code esker_cursor_seek(esker_cursor *cursor, const void *key, size_t key_length);

/*
 Moves to the last key at or before a key.
 */
esker_code esker_cursor_seek_for_prev(esker_cursor *cursor, const void *key, size_t key_length);

/*
 Moves to the next key. At no key it does nothing.
 */
esker_code esker_cursor_next(esker_cursor *cursor);

/*
 Moves to the key before. At no key it does nothing.
 */
esker_code esker_cursor_prev(esker_cursor *cursor);

/*
 Whether the cursor is at a key; false also for a handle that is wrong.
 */
bool esker_cursor_valid(esker_cursor *cursor);

/*
 The key at the cursor, which is lent until the cursor moves or is destroyed; NULL at none, and
 for a handle that is wrong.
 */
const char *esker_cursor_key(esker_cursor *cursor, size_t *length);

/*
 The value at the cursor, lent as the key. It may lie in a mapped file: should its medium fail
 while it is read, the next move fails with ESKER_IO.
 */
const char *esker_cursor_value(esker_cursor *cursor, size_t *length);

/*
 Makes an iterator over a range of a keyspace: of a snapshot, or of this moment if `snapshot` is
 NULL. `range` may be NULL. Destroy it with `esker_iterator_destroy`. It may outlive the handles
 that it was made of.
 */
esker_code esker_iterator_create(esker_keyspace *keyspace,
                                 esker_snapshot *snapshot,
                                 const esker_range *range,
                                 esker_iterator **iterator);

/*
 As `esker_iterator_create`, over the keys that begin with a prefix.
 */
esker_code esker_iterator_create_prefix(esker_keyspace *keyspace,
                                        esker_snapshot *snapshot,
                                        const void *prefix,
                                        size_t prefix_length,
                                        esker_iterator **iterator);

/*
 Destroys an iterator.
 */
esker_code esker_iterator_destroy(esker_iterator *iterator);

/*
 From here on an iterator has no values: they are empty, and large ones are not loaded, unless
 operands are merged into them.
 */
esker_code esker_iterator_keys_only(esker_iterator *iterator);

/*
 The next pair from the front, which is lent until the next step or the end of the iterator.
 `found` is false at the end.
 */
esker_code esker_iterator_next(esker_iterator *iterator,
                               esker_bytes *key,
                               esker_bytes *value,
                               bool *found);

/*
 The next pair from the back.
 */
esker_code esker_iterator_next_back(esker_iterator *iterator,
                                    esker_bytes *key,
                                    esker_bytes *value,
                                    bool *found);

/*
 Writes all that a transaction has written in one atomic step, or fails with ESKER_CONFLICT and
 writes nothing. The handle is closed in any case but ESKER_BUSY_HANDLE. `options` may be NULL.
 */
esker_code esker_transaction_commit(esker_transaction *transaction,
                                    const esker_write_options *options);

/*
 Ends a transaction without writing.
 */
esker_code esker_transaction_rollback(esker_transaction *transaction);

/*
 The value of a key as the transaction sees it, as `esker_keyspace_get`.
 */
esker_code esker_transaction_get(esker_transaction *transaction,
                                 esker_keyspace *keyspace,
                                 const void *key,
                                 size_t key_length,
                                 char **value,
                                 size_t *value_length);

/*
 Copies the value of a key as the transaction sees it into a buffer, as
 `esker_keyspace_get_into`.
 */
esker_code esker_transaction_get_into(esker_transaction *transaction,
                                      esker_keyspace *keyspace,
                                      const void *key,
                                      size_t key_length,
                                      void *buffer,
                                      size_t buffer_length,
                                      size_t *value_length,
                                      bool *found);

/*
 The values of many keys as the transaction sees them, as `esker_keyspace_multi_get`. All of them
 count as read.
 */
esker_code esker_transaction_multi_get(esker_transaction *transaction,
                                       esker_keyspace *keyspace,
                                       const esker_bytes *keys,
                                       size_t count,
                                       char **values,
                                       size_t *value_lengths,
                                       esker_code *codes);

/*
 Whether a key has a value, as the transaction sees it.
 */
esker_code esker_transaction_contains_key(esker_transaction *transaction,
                                          esker_keyspace *keyspace,
                                          const void *key,
                                          size_t key_length,
                                          bool *found);

/*
 When a key expires, as of the beginning of the transaction, as `esker_keyspace_expires_at`.
 ESKER_INVALID_ARGUMENT for a key that the transaction has written: times count from the commit.
 */
esker_code esker_transaction_expires_at(esker_transaction *transaction,
                                        esker_keyspace *keyspace,
                                        const void *key,
                                        size_t key_length,
                                        bool *found,
                                        uint64_t *expires_at_ms);

/*
 The least key as the transaction sees it, as `esker_keyspace_first`.
 */
esker_code esker_transaction_first(esker_transaction *transaction,
                                   esker_keyspace *keyspace,
                                   char **key,
                                   size_t *key_length,
                                   char **value,
                                   size_t *value_length);

/*
 The greatest key as the transaction sees it, as `esker_keyspace_last`.
 */
esker_code esker_transaction_last(esker_transaction *transaction,
                                  esker_keyspace *keyspace,
                                  char **key,
                                  size_t *key_length,
                                  char **value,
                                  size_t *value_length);

/*
 Deletes the least key and returns it with its value, as `esker_keyspace_pop_first`.
 */
esker_code esker_transaction_pop_first(esker_transaction *transaction,
                                       esker_keyspace *keyspace,
                                       char **key,
                                       size_t *key_length,
                                       char **value,
                                       size_t *value_length);

/*
 The number of keys in a range, as the transaction sees it. `range` may be NULL.
 */
esker_code esker_transaction_count(esker_transaction *transaction,
                                   esker_keyspace *keyspace,
                                   const esker_range *range,
                                   uint64_t *count);

/*
 Sets the value of a key.
 */
esker_code esker_transaction_put(esker_transaction *transaction,
                                 esker_keyspace *keyspace,
                                 const void *key,
                                 size_t key_length,
                                 const void *value,
                                 size_t value_length);

/*
 Sets the value of a key with a time to live.
 */
esker_code esker_transaction_put_with_ttl(esker_transaction *transaction,
                                          esker_keyspace *keyspace,
                                          const void *key,
                                          size_t key_length,
                                          const void *value,
                                          size_t value_length,
                                          uint64_t ttl_ms);

/*
 Sets the value of a key until a time, in milliseconds since 1970; ESKER_NEVER is never.
 */
esker_code esker_transaction_put_until(esker_transaction *transaction,
                                       esker_keyspace *keyspace,
                                       const void *key,
                                       size_t key_length,
                                       const void *value,
                                       size_t value_length,
                                       uint64_t expires_at_ms);

/*
 Deletes a key.
 */
esker_code esker_transaction_delete(esker_transaction *transaction,
                                    esker_keyspace *keyspace,
                                    const void *key,
                                    size_t key_length);

/*
 Merges an operand.
 */
esker_code esker_transaction_merge(esker_transaction *transaction,
                                   esker_keyspace *keyspace,
                                   const void *key,
                                   size_t key_length,
                                   const void *operand,
                                   size_t operand_length);

/*
 Merges an operand with a time to live, which counts from the commit.
 */
esker_code esker_transaction_merge_with_ttl(esker_transaction *transaction,
                                            esker_keyspace *keyspace,
                                            const void *key,
                                            size_t key_length,
                                            const void *operand,
                                            size_t operand_length,
                                            uint64_t ttl_ms);

/*
 Deletes a range. `range` may be NULL.
 */
esker_code esker_transaction_delete_range(esker_transaction *transaction,
                                          esker_keyspace *keyspace,
                                          const esker_range *range);

/*
 Deletes every key that begins with a prefix.
 */
esker_code esker_transaction_delete_prefix(esker_transaction *transaction,
                                           esker_keyspace *keyspace,
                                           const void *prefix,
                                           size_t prefix_length);

/*
 Changes the expiry of a key to so many milliseconds from the commit on.
 */
esker_code esker_transaction_touch(esker_transaction *transaction,
                                   esker_keyspace *keyspace,
                                   const void *key,
                                   size_t key_length,
                                   uint64_t ttl_ms);

/*
 Changes the expiry of a key to a time in milliseconds since 1970; ESKER_NEVER is
 never.
 */
esker_code esker_transaction_expire_at(esker_transaction *transaction,
                                       esker_keyspace *keyspace,
                                       const void *key,
                                       size_t key_length,
                                       uint64_t expires_at_ms);

/*
 Makes the value of a key one that never expires.
 */
esker_code esker_transaction_persist(esker_transaction *transaction,
                                     esker_keyspace *keyspace,
                                     const void *key,
                                     size_t key_length);

/*
 Calls a function for each pair of a range as the transaction sees it, from the front or, with
 `reverse`, from the back, until it returns false. The function cannot use the transaction
 (ESKER_BUSY_HANDLE): collect what is to be written. `range` may be NULL.
 */
esker_code esker_transaction_scan(esker_transaction *transaction,
                                  esker_keyspace *keyspace,
                                  const esker_range *range,
                                  bool reverse,
                                  void *state,
                                  esker_visit_pair visit);

/*
 As `esker_transaction_scan`, for the keys that begin with a prefix.
 */
esker_code esker_transaction_scan_prefix(esker_transaction *transaction,
                                         esker_keyspace *keyspace,
                                         const void *prefix,
                                         size_t prefix_length,
                                         bool reverse,
                                         void *state,
                                         esker_visit_pair visit);

/*
 The sequence number of the last write that a transaction sees.
 */
esker_code esker_transaction_sequence(esker_transaction *transaction, uint64_t *sequence);

/*
 The number of operations that the transaction writes.
 */
esker_code esker_transaction_write_count(esker_transaction *transaction, size_t *count);

/*
 Begins to read what was written from the write with the number `from` on; 0 is all that is kept.
 The database must be one that keeps changes: `esker_options_set_keep_changes_bytes` or
 `..._time`. With `only_durable`, only what a power failure cannot take back is read. To keep
 something in step with the database, take over a snapshot, and go on from its sequence number
 plus 1. ESKER_GONE if the changes are not kept any more: `esker_last_error_oldest_write`.
 Destroy it with `esker_changes_destroy`.
 */
esker_code esker_db_changes(esker_db *db,
                            uint64_t from,
                            bool only_durable,
                            esker_changes **changes);

/*
 Destroys a reader of changes. A wait under way goes on to its end.
 */
esker_code esker_changes_destroy(esker_changes *changes);

/*
 The next committed batch: `*count` operations, in their order, which took effect together. They
 are lent, with all that they refer to, until the next `esker_changes_next` for this reader or
 its end. `*count` is 0 if there is no more for now; a later call may find more. After a failure
 the next call tries again.
 */
esker_code esker_changes_next(esker_changes *changes, const esker_change **batch, size_t *count);

/*
 Waits for a write, for at most so many milliseconds; UINT64_MAX waits for as long as it takes.
 `*more` says whether there may be more to read, also without a wait if something was written
 since the last one. Syncs end the wait of a reader of durable changes too.
 ESKER_READ_ONLY once the database is closed.
 */
esker_code esker_changes_wait(esker_changes *changes, uint64_t timeout_ms, bool *more);

/*
 The number to go on from with `esker_db_changes`: that of the next change, or a smaller one
 above all that were read.
 */
esker_code esker_changes_position(esker_changes *changes, uint64_t *sequence);

/*
 What the keyspace with that number, the `keyspace_id` of a change, was behind the write
 `sequence`. `*settings` is NULL if it is not known: the keyspace was dropped before the changes
 that are kept, or there never was one. What it was when it was created is taken for what it was
 before that. The settings are lent until the next such call for this reader or its end; a batch
 that is lent stays.
 */
esker_code esker_changes_keyspace_settings(esker_changes *changes,
                                           uint64_t keyspace_id,
                                           uint64_t sequence,
                                           const esker_keyspace_settings **settings);

/*
 Notes from here on whether keys that begin with a prefix are written, for `esker_watch_wait`;
 the empty prefix is all keys. Loads and the drop of the keyspace count as writes to all of its
 keys, expiry does not. Destroy it with `esker_watch_destroy`: while there is one, each write
 compares its keys with the prefixes.
 */
esker_code esker_keyspace_watch(esker_keyspace *keyspace,
                                const void *prefix,
                                size_t prefix_length,
                                esker_watch **watch);

/*
 Destroys a watch. A wait under way goes on to its end.
 */
esker_code esker_watch_destroy(esker_watch *watch);

/*
 Waits for a write, for at most so many milliseconds; UINT64_MAX waits for as long as it takes.
 `*written` says whether there was one since the last wait that said so, or since the watch was
 made; it may also be true without one. Any number of threads may wait; each write ends one wait
 of one of them. ESKER_READ_ONLY once the database is closed.
 */
esker_code esker_watch_wait(esker_watch *watch, uint64_t timeout_ms, bool *written);

/*
 Writes everything acknowledged before the call to tables, durably.
 */
esker_code esker_db_flush(esker_db *db);

/*
 Flushes everything, and compacts each keyspace into one run.
 */
esker_code esker_db_compact(esker_db *db);

/*
 Returns when an idle database would have nothing left to do.
 */
esker_code esker_db_wait_idle(esker_db *db);

/*
 Brings everything logged so far to the device.
 */
esker_code esker_db_sync(esker_db *db);

/*
 Makes a copy in a new or empty directory that opens as a database: by hard links where those
 work, or, with `copy`, of every file.
 */
esker_code esker_db_checkpoint(esker_db *db, const char *directory, bool copy);

/*
 Reads everything and checks it. `visit` gets all that is damaged, under the name "damage", and
 may be NULL; the first damage is the error. What the function returns changes nothing.
 */
esker_code esker_db_verify(esker_db *db, void *state, esker_visit_text visit);

/*
 The same of the database in a directory, without a lock and without a write: a writer may be at
 work beside it. Of one that does not open, every part is gone over on its own, so that `visit`
 gets each damaged place that can be found. `options` may be NULL; comparators are needed.
 */
esker_code esker_db_verify_directory(const char *path,
                                     const esker_options *options,
                                     void *state,
                                     esker_visit_text visit);

/*
 Makes a damaged database that is not open one that opens, with what can be read. `*report` is a
 text that names what is lost, to be freed with `esker_free`. `options` may be NULL.
 */
esker_code esker_db_repair(const char *path, const esker_options *options, char **report);

/*
 Removes the database in a directory that is not open, with all that is in it; the directory
 stays. `options` may be NULL.
 */
esker_code esker_db_destroy(const char *path, const esker_options *options);

/*
 Statistics as a text for people, to be freed with `esker_free`.
 */
esker_code esker_db_stats(esker_db *db, char **stats);

/*
 Every option with its value and its origin, as a text to be freed with `esker_free`.
 */
esker_code esker_db_explain(esker_db *db, char **options);

/*
 All metrics in the text format of Prometheus, to be freed with `esker_free`.
 */
esker_code esker_db_metrics(esker_db *db, char **metrics);

/*
 A property by name, as "esker.health.writable" or "esker.table_bytes", to be freed with
 `esker_free`; NULL if there is none of that name.
 */
esker_code esker_db_property(esker_db *db, const char *name, char **value);

/*
 Calls a function for every property, until it returns false.
 */
esker_code esker_db_properties(esker_db *db, void *state, esker_visit_text visit);

/*
 Opens a database for reading behind its writer. `options` may be NULL. Destroy the handle with
 `esker_follower_destroy`.
 */
esker_code esker_follower_open(const char *path,
                               const esker_options *options,
                               esker_follower **follower);

/*
 Destroys a follower. Handles that were made of it can be read until they are destroyed.
 */
esker_code esker_follower_destroy(esker_follower *follower);

/*
 Reads what the writer has written since. `*sequence` is the number of the last write that the
 follower has; it may be NULL.
 */
esker_code esker_follower_catch_up(esker_follower *follower, uint64_t *sequence);

/*
 How far the follower is behind what the writer has written: the batches and the bytes of log
 that it has not read, and the number of the last write in them, that which it has if there is
 none. It stays where it is. `*known` is false where the log from there on is gone, because it is
 in tables, which `esker_follower_catch_up` reads; the numbers are 0 then. Each of the last four
 may be NULL.
 */
esker_code esker_follower_lag(esker_follower *follower,
                              bool *known,
                              uint64_t *batches,
                              uint64_t *log_bytes,
                              uint64_t *sequence);

/*
 The database of a follower, to be read. Close it with `esker_db_close`, which ends the follower
 too.
 */
esker_code esker_follower_db(esker_follower *follower, esker_db **db);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ESKER_H */
