/* What stands between the package and esker.h.
 *
 * Memory of Go is passed as `const unsigned char *`: for a `void *`, cgo looks for pointers in the
 * whole object that the bytes are a part of, and refuses one that has any. Results come back by
 * value, so that no variable of Go has to escape for them. */

#ifndef ESKER_GO_SHIM_H
#define ESKER_GO_SHIM_H

#include <esker.h>

typedef const unsigned char *go_data;

typedef struct {
  esker_code code;
  char *data;
  size_t length;
} go_value;

typedef struct {
  esker_code code;
  char *key;
  size_t key_length;
  char *value;
  size_t value_length;
} go_pair;

typedef struct {
  esker_code code;
  bool yes;
  char *data;
  size_t length;
} go_swap;

typedef struct {
  esker_code code;
  bool yes;
  uint64_t number;
} go_answer;

/* Pairs one behind the other: the lengths of key and value as uint32_t, and the bytes of both. */
typedef struct {
  char *data;
  size_t length;
  size_t capacity;
  size_t count;
  bool is_full;
} go_pairs;

/* The code of a call that had no memory for its pairs. */
#define GO_NO_MEMORY (-1)

#define GO_RANGE go_data start, size_t start_length, go_data end, size_t end_length
#define GO_MAKE_RANGE {start, start_length, end, end_length}

/* Reads. */

static inline go_value go_keyspace_get(esker_keyspace *keyspace, go_data key, size_t length) {
  go_value result = {0};
  result.code = esker_keyspace_get(keyspace, key, length, &result.data, &result.length);
  return result;
}

static inline go_value go_snapshot_get(esker_snapshot *snapshot, esker_keyspace *keyspace,
                                       go_data key, size_t length) {
  go_value result = {0};
  result.code = esker_snapshot_get(snapshot, keyspace, key, length, &result.data, &result.length);
  return result;
}

static inline go_value go_transaction_get(esker_transaction *transaction, esker_keyspace *keyspace,
                                          go_data key, size_t length) {
  go_value result = {0};
  result.code =
      esker_transaction_get(transaction, keyspace, key, length, &result.data, &result.length);
  return result;
}

static inline go_answer go_keyspace_get_into(esker_keyspace *keyspace, go_data key,
                                             size_t key_length, unsigned char *buffer,
                                             size_t buffer_length) {
  go_answer r = {0};
  size_t length = 0;
  r.code = esker_keyspace_get_into(keyspace, key, key_length, buffer, buffer_length, &length, &r.yes);
  r.number = length;
  return r;
}

static inline go_answer go_snapshot_get_into(esker_snapshot *snapshot, esker_keyspace *keyspace,
                                             go_data key, size_t key_length, unsigned char *buffer,
                                             size_t buffer_length) {
  go_answer r = {0};
  size_t length = 0;
  r.code = esker_snapshot_get_into(snapshot, keyspace, key, key_length, buffer, buffer_length,
                                   &length, &r.yes);
  r.number = length;
  return r;
}

static inline go_answer go_transaction_get_into(esker_transaction *transaction,
                                                esker_keyspace *keyspace, go_data key,
                                                size_t key_length, unsigned char *buffer,
                                                size_t buffer_length) {
  go_answer r = {0};
  size_t length = 0;
  r.code = esker_transaction_get_into(transaction, keyspace, key, key_length, buffer, buffer_length,
                                      &length, &r.yes);
  r.number = length;
  return r;
}

static inline go_answer go_keyspace_contains_key(esker_keyspace *keyspace, go_data key,
                                                 size_t length) {
  go_answer result = {0};
  result.code = esker_keyspace_contains_key(keyspace, key, length, &result.yes);
  return result;
}

static inline go_answer go_snapshot_contains_key(esker_snapshot *snapshot, esker_keyspace *keyspace,
                                                 go_data key, size_t length) {
  go_answer result = {0};
  result.code = esker_snapshot_contains_key(snapshot, keyspace, key, length, &result.yes);
  return result;
}

static inline go_answer go_transaction_contains_key(esker_transaction *transaction,
                                                    esker_keyspace *keyspace, go_data key,
                                                    size_t length) {
  go_answer result = {0};
  result.code = esker_transaction_contains_key(transaction, keyspace, key, length, &result.yes);
  return result;
}

static inline go_answer go_keyspace_expires_at(esker_keyspace *keyspace, go_data key,
                                               size_t length) {
  go_answer result = {0};
  result.code = esker_keyspace_expires_at(keyspace, key, length, &result.yes, &result.number);
  return result;
}

static inline go_answer go_snapshot_expires_at(esker_snapshot *snapshot, esker_keyspace *keyspace,
                                               go_data key, size_t length) {
  go_answer result = {0};
  result.code =
      esker_snapshot_expires_at(snapshot, keyspace, key, length, &result.yes, &result.number);
  return result;
}

static inline go_answer go_transaction_expires_at(esker_transaction *transaction,
                                                  esker_keyspace *keyspace, go_data key,
                                                  size_t length) {
  go_answer result = {0};
  result.code =
      esker_transaction_expires_at(transaction, keyspace, key, length, &result.yes, &result.number);
  return result;
}

static inline go_pair go_keyspace_first(esker_keyspace *keyspace) {
  go_pair r = {0};
  r.code = esker_keyspace_first(keyspace, &r.key, &r.key_length, &r.value, &r.value_length);
  return r;
}

static inline go_pair go_keyspace_last(esker_keyspace *keyspace) {
  go_pair r = {0};
  r.code = esker_keyspace_last(keyspace, &r.key, &r.key_length, &r.value, &r.value_length);
  return r;
}

static inline go_pair go_keyspace_pop_first(esker_keyspace *keyspace) {
  go_pair r = {0};
  r.code = esker_keyspace_pop_first(keyspace, &r.key, &r.key_length, &r.value, &r.value_length);
  return r;
}

static inline go_pair go_snapshot_first(esker_snapshot *snapshot, esker_keyspace *keyspace) {
  go_pair r = {0};
  r.code = esker_snapshot_first(snapshot, keyspace, &r.key, &r.key_length, &r.value,
                                &r.value_length);
  return r;
}

static inline go_pair go_snapshot_last(esker_snapshot *snapshot, esker_keyspace *keyspace) {
  go_pair r = {0};
  r.code =
      esker_snapshot_last(snapshot, keyspace, &r.key, &r.key_length, &r.value, &r.value_length);
  return r;
}

static inline go_pair go_transaction_first(esker_transaction *transaction,
                                           esker_keyspace *keyspace) {
  go_pair r = {0};
  r.code = esker_transaction_first(transaction, keyspace, &r.key, &r.key_length, &r.value,
                                   &r.value_length);
  return r;
}

static inline go_pair go_transaction_last(esker_transaction *transaction,
                                          esker_keyspace *keyspace) {
  go_pair r = {0};
  r.code = esker_transaction_last(transaction, keyspace, &r.key, &r.key_length, &r.value,
                                  &r.value_length);
  return r;
}

static inline go_pair go_transaction_pop_first(esker_transaction *transaction,
                                               esker_keyspace *keyspace) {
  go_pair r = {0};
  r.code = esker_transaction_pop_first(transaction, keyspace, &r.key, &r.key_length, &r.value,
                                       &r.value_length);
  return r;
}

static inline go_answer go_keyspace_count(esker_keyspace *keyspace, GO_RANGE) {
  esker_range range = GO_MAKE_RANGE;
  go_answer result = {0};
  result.code = esker_keyspace_count(keyspace, &range, &result.number);
  return result;
}

static inline go_answer go_snapshot_count(esker_snapshot *snapshot, esker_keyspace *keyspace,
                                          GO_RANGE) {
  esker_range range = GO_MAKE_RANGE;
  go_answer result = {0};
  result.code = esker_snapshot_count(snapshot, keyspace, &range, &result.number);
  return result;
}

static inline go_answer go_transaction_count(esker_transaction *transaction,
                                             esker_keyspace *keyspace, GO_RANGE) {
  esker_range range = GO_MAKE_RANGE;
  go_answer result = {0};
  result.code = esker_transaction_count(transaction, keyspace, &range, &result.number);
  return result;
}

static inline go_answer go_keyspace_approximate_size(esker_keyspace *keyspace, GO_RANGE) {
  esker_range range = GO_MAKE_RANGE;
  go_answer result = {0};
  result.code = esker_keyspace_approximate_size(keyspace, &range, &result.number);
  return result;
}

static inline go_answer go_keyspace_approximate_count(esker_keyspace *keyspace, GO_RANGE) {
  esker_range range = GO_MAKE_RANGE;
  go_answer result = {0};
  result.code = esker_keyspace_approximate_count(keyspace, &range, &result.number);
  return result;
}

static inline int32_t go_keyspace_compare_keys(esker_keyspace *keyspace, go_data a, size_t a_length,
                                               go_data b, size_t b_length, esker_code *code) {
  int32_t order = 0;
  *code = esker_keyspace_compare_keys(keyspace, a, a_length, b, b_length, &order);
  return order;
}

/* Writes. */

static inline esker_code go_keyspace_put(esker_keyspace *keyspace, go_data key, size_t key_length,
                                         go_data value, size_t value_length,
                                         const esker_write_options *options) {
  return esker_keyspace_put(keyspace, key, key_length, value, value_length, options);
}

static inline esker_code go_keyspace_put_until(esker_keyspace *keyspace, go_data key,
                                               size_t key_length, go_data value,
                                               size_t value_length, uint64_t expires_at_ms) {
  return esker_keyspace_put_until(keyspace, key, key_length, value, value_length, expires_at_ms);
}

static inline esker_code go_keyspace_delete(esker_keyspace *keyspace, go_data key, size_t length,
                                            const esker_write_options *options) {
  return esker_keyspace_delete(keyspace, key, length, options);
}

static inline esker_code go_keyspace_merge(esker_keyspace *keyspace, go_data key,
                                           size_t key_length, go_data operand,
                                           size_t operand_length,
                                           const esker_write_options *options) {
  return esker_keyspace_merge(keyspace, key, key_length, operand, operand_length, options);
}

static inline esker_code go_keyspace_delete_range(esker_keyspace *keyspace, GO_RANGE,
                                                  const esker_write_options *options) {
  esker_range range = GO_MAKE_RANGE;
  return esker_keyspace_delete_range(keyspace, &range, options);
}

static inline esker_code go_keyspace_delete_prefix(esker_keyspace *keyspace, go_data prefix,
                                                   size_t length) {
  return esker_keyspace_delete_prefix(keyspace, prefix, length);
}

static inline go_value go_keyspace_put_if_absent(esker_keyspace *keyspace, go_data key,
                                                 size_t key_length, go_data value,
                                                 size_t value_length,
                                                 const esker_write_options *options) {
  go_value r = {0};
  r.code = esker_keyspace_put_if_absent(keyspace, key, key_length, value, value_length, options,
                                        &r.data, &r.length);
  return r;
}

static inline go_swap go_keyspace_compare_and_swap(esker_keyspace *keyspace, go_data key,
                                                   size_t key_length, go_data expected,
                                                   size_t expected_length, go_data value,
                                                   size_t value_length,
                                                   const esker_write_options *options) {
  go_swap r = {0};
  r.code = esker_keyspace_compare_and_swap(keyspace, key, key_length, expected, expected_length,
                                           value, value_length, options, &r.yes, &r.data,
                                           &r.length);
  return r;
}

static inline go_value go_keyspace_merge_and_get(esker_keyspace *keyspace, go_data key,
                                                 size_t key_length, go_data operand,
                                                 size_t operand_length,
                                                 const esker_write_options *options) {
  go_value r = {0};
  r.code = esker_keyspace_merge_and_get(keyspace, key, key_length, operand, operand_length, options,
                                        &r.data, &r.length);
  return r;
}

static inline go_value go_keyspace_take(esker_keyspace *keyspace, go_data key, size_t length,
                                        const esker_write_options *options) {
  go_value r = {0};
  r.code = esker_keyspace_take(keyspace, key, length, options, &r.data, &r.length);
  return r;
}

static inline go_answer go_keyspace_touch(esker_keyspace *keyspace, go_data key, size_t length,
                                          uint64_t ttl_ms) {
  go_answer r = {0};
  r.code = esker_keyspace_touch(keyspace, key, length, ttl_ms, &r.yes);
  return r;
}

static inline go_answer go_keyspace_expire_at(esker_keyspace *keyspace, go_data key, size_t length,
                                              uint64_t expires_at_ms) {
  go_answer r = {0};
  r.code = esker_keyspace_expire_at(keyspace, key, length, expires_at_ms, &r.yes);
  return r;
}

static inline go_answer go_keyspace_persist(esker_keyspace *keyspace, go_data key, size_t length) {
  go_answer r = {0};
  r.code = esker_keyspace_persist(keyspace, key, length, &r.yes);
  return r;
}

static inline esker_code go_keyspace_compact(esker_keyspace *keyspace, GO_RANGE) {
  esker_range range = GO_MAKE_RANGE;
  return esker_keyspace_compact(keyspace, start == NULL && end == NULL ? NULL : &range);
}

static inline esker_code go_keyspace_watch(esker_keyspace *keyspace, go_data prefix, size_t length,
                                           esker_watch **watch) {
  return esker_keyspace_watch(keyspace, prefix, length, watch);
}

/* Batches. */

static inline esker_code go_batch_put(esker_batch *batch, esker_keyspace *keyspace, go_data key,
                                      size_t key_length, go_data value, size_t value_length) {
  return esker_batch_put(batch, keyspace, key, key_length, value, value_length);
}

static inline esker_code go_batch_put_with_ttl(esker_batch *batch, esker_keyspace *keyspace,
                                               go_data key, size_t key_length, go_data value,
                                               size_t value_length, uint64_t ttl_ms) {
  return esker_batch_put_with_ttl(batch, keyspace, key, key_length, value, value_length, ttl_ms);
}

static inline esker_code go_batch_put_until(esker_batch *batch, esker_keyspace *keyspace,
                                            go_data key, size_t key_length, go_data value,
                                            size_t value_length, uint64_t expires_at_ms) {
  return esker_batch_put_until(batch, keyspace, key, key_length, value, value_length,
                               expires_at_ms);
}

static inline esker_code go_batch_delete(esker_batch *batch, esker_keyspace *keyspace, go_data key,
                                         size_t length) {
  return esker_batch_delete(batch, keyspace, key, length);
}

static inline esker_code go_batch_merge(esker_batch *batch, esker_keyspace *keyspace, go_data key,
                                        size_t key_length, go_data operand,
                                        size_t operand_length) {
  return esker_batch_merge(batch, keyspace, key, key_length, operand, operand_length);
}

static inline esker_code go_batch_merge_with_ttl(esker_batch *batch, esker_keyspace *keyspace,
                                                 go_data key, size_t key_length, go_data operand,
                                                 size_t operand_length, uint64_t ttl_ms) {
  return esker_batch_merge_with_ttl(batch, keyspace, key, key_length, operand, operand_length,
                                    ttl_ms);
}

static inline esker_code go_batch_delete_range(esker_batch *batch, esker_keyspace *keyspace,
                                               GO_RANGE) {
  esker_range range = GO_MAKE_RANGE;
  return esker_batch_delete_range(batch, keyspace, &range);
}

static inline esker_code go_batch_delete_prefix(esker_batch *batch, esker_keyspace *keyspace,
                                                go_data prefix, size_t length) {
  return esker_batch_delete_prefix(batch, keyspace, prefix, length);
}

static inline esker_code go_batch_touch(esker_batch *batch, esker_keyspace *keyspace, go_data key,
                                        size_t length, uint64_t ttl_ms) {
  return esker_batch_touch(batch, keyspace, key, length, ttl_ms);
}

static inline esker_code go_batch_expire_at(esker_batch *batch, esker_keyspace *keyspace,
                                            go_data key, size_t length, uint64_t expires_at_ms) {
  return esker_batch_expire_at(batch, keyspace, key, length, expires_at_ms);
}

static inline esker_code go_batch_persist(esker_batch *batch, esker_keyspace *keyspace, go_data key,
                                          size_t length) {
  return esker_batch_persist(batch, keyspace, key, length);
}

/* Transactions. */

static inline esker_code go_transaction_put(esker_transaction *transaction,
                                            esker_keyspace *keyspace, go_data key,
                                            size_t key_length, go_data value,
                                            size_t value_length) {
  return esker_transaction_put(transaction, keyspace, key, key_length, value, value_length);
}

static inline esker_code go_transaction_put_with_ttl(esker_transaction *transaction,
                                                     esker_keyspace *keyspace, go_data key,
                                                     size_t key_length, go_data value,
                                                     size_t value_length, uint64_t ttl_ms) {
  return esker_transaction_put_with_ttl(transaction, keyspace, key, key_length, value, value_length,
                                        ttl_ms);
}

static inline esker_code go_transaction_put_until(esker_transaction *transaction,
                                                  esker_keyspace *keyspace, go_data key,
                                                  size_t key_length, go_data value,
                                                  size_t value_length, uint64_t expires_at_ms) {
  return esker_transaction_put_until(transaction, keyspace, key, key_length, value, value_length,
                                     expires_at_ms);
}

static inline esker_code go_transaction_delete(esker_transaction *transaction,
                                               esker_keyspace *keyspace, go_data key,
                                               size_t length) {
  return esker_transaction_delete(transaction, keyspace, key, length);
}

static inline esker_code go_transaction_merge(esker_transaction *transaction,
                                              esker_keyspace *keyspace, go_data key,
                                              size_t key_length, go_data operand,
                                              size_t operand_length) {
  return esker_transaction_merge(transaction, keyspace, key, key_length, operand, operand_length);
}

static inline esker_code go_transaction_merge_with_ttl(esker_transaction *transaction,
                                                       esker_keyspace *keyspace, go_data key,
                                                       size_t key_length, go_data operand,
                                                       size_t operand_length, uint64_t ttl_ms) {
  return esker_transaction_merge_with_ttl(transaction, keyspace, key, key_length, operand,
                                          operand_length, ttl_ms);
}

static inline esker_code go_transaction_delete_range(esker_transaction *transaction,
                                                     esker_keyspace *keyspace, GO_RANGE) {
  esker_range range = GO_MAKE_RANGE;
  return esker_transaction_delete_range(transaction, keyspace, &range);
}

static inline esker_code go_transaction_delete_prefix(esker_transaction *transaction,
                                                      esker_keyspace *keyspace, go_data prefix,
                                                      size_t length) {
  return esker_transaction_delete_prefix(transaction, keyspace, prefix, length);
}

static inline esker_code go_transaction_touch(esker_transaction *transaction,
                                              esker_keyspace *keyspace, go_data key, size_t length,
                                              uint64_t ttl_ms) {
  return esker_transaction_touch(transaction, keyspace, key, length, ttl_ms);
}

static inline esker_code go_transaction_expire_at(esker_transaction *transaction,
                                                  esker_keyspace *keyspace, go_data key,
                                                  size_t length, uint64_t expires_at_ms) {
  return esker_transaction_expire_at(transaction, keyspace, key, length, expires_at_ms);
}

static inline esker_code go_transaction_persist(esker_transaction *transaction,
                                                esker_keyspace *keyspace, go_data key,
                                                size_t length) {
  return esker_transaction_persist(transaction, keyspace, key, length);
}

/* Cursors and iterators. */

static inline esker_code go_cursor_create(esker_keyspace *keyspace, esker_snapshot *snapshot,
                                          bool keys_only, GO_RANGE, esker_cursor **cursor) {
  esker_range range = GO_MAKE_RANGE;
  return esker_cursor_create_within(keyspace, snapshot, keys_only, &range, cursor);
}

static inline esker_code go_cursor_seek(esker_cursor *cursor, go_data key, size_t length) {
  return esker_cursor_seek(cursor, key, length);
}

static inline esker_code go_cursor_seek_for_prev(esker_cursor *cursor, go_data key, size_t length) {
  return esker_cursor_seek_for_prev(cursor, key, length);
}

static inline esker_code go_iterator_create(esker_keyspace *keyspace, esker_snapshot *snapshot,
                                            bool keys_only, GO_RANGE, esker_iterator **iterator) {
  esker_range range = GO_MAKE_RANGE;
  esker_code code = esker_iterator_create(keyspace, snapshot, &range, iterator);
  return code == ESKER_OK && keys_only ? esker_iterator_keys_only(*iterator) : code;
}

static inline esker_code go_iterator_create_prefix(esker_keyspace *keyspace,
                                                   esker_snapshot *snapshot, bool keys_only,
                                                   go_data prefix, size_t length,
                                                   esker_iterator **iterator) {
  esker_code code = esker_iterator_create_prefix(keyspace, snapshot, prefix, length, iterator);
  return code == ESKER_OK && keys_only ? esker_iterator_keys_only(*iterator) : code;
}

static inline esker_code go_escape_key(go_data key, size_t length, char **text) {
  return esker_escape_key(key, length, text);
}

static inline esker_code go_output_set(esker_output *output, go_data value, size_t length) {
  return esker_output_set(output, value, length);
}

/* In shim.c. A call that fails may have put pairs before. */

void go_pairs_free(go_pairs *pairs);

/* Up to so many pairs; `*is_end` says whether there are no more. */
esker_code go_iterator_fill(esker_iterator *iterator, bool reverse, size_t most_pairs,
                            size_t most_bytes, go_pairs *pairs, bool *is_end);

esker_code go_transaction_fill(esker_transaction *transaction, esker_keyspace *keyspace, GO_RANGE,
                               bool reverse, size_t most_pairs, size_t most_bytes, go_pairs *pairs,
                               bool *is_end);

esker_code go_transaction_fill_prefix(esker_transaction *transaction, esker_keyspace *keyspace,
                                      go_data prefix, size_t length, bool reverse,
                                      size_t most_pairs, size_t most_bytes, go_pairs *pairs,
                                      bool *is_end);

/* The key that stands at the front of `lengths[i]` bytes of `keys`, and so on. A pair for each key:
 * an empty key where there is no value, otherwise a byte. Of a snapshot or a transaction, unless
 * both are NULL. */
esker_code go_multi_get(esker_keyspace *keyspace, esker_snapshot *snapshot,
                        esker_transaction *transaction, go_data keys, const size_t *lengths,
                        size_t count, go_pairs *pairs);

esker_code go_db_properties(esker_db *db, go_pairs *pairs);
esker_code go_db_keyspaces(esker_db *db, go_pairs *pairs);
esker_code go_db_verify(esker_db *db, go_pairs *pairs);
esker_code go_db_verify_directory(const char *path, const esker_options *options, go_pairs *pairs);

esker_code go_write_options(bool sync, bool disable_wal, bool has_ttl, uint64_t ttl_ms,
                            uint64_t stall_ms, esker_write_options **options);

/* Callbacks: `state` is a cgo.Handle. */
esker_code go_set_merge_operator(esker_keyspace_options *options, const char *name, uintptr_t state,
                                 bool has_partial, bool has_check);
esker_code go_set_comparator(esker_keyspace_options *options, const char *name, uintptr_t state);
esker_code go_set_compaction_filter(esker_keyspace_options *options, const char *name,
                                    uintptr_t state);
esker_code go_add_comparator(esker_options *options, const char *name, uintptr_t state);
esker_code go_set_filter_policy(esker_options *options, const char *name, uintptr_t state);
esker_code go_set_clock(esker_options *options, uintptr_t state);
esker_code go_set_event_listener(esker_options *options, uintptr_t state);
esker_code go_ingest(esker_keyspace *keyspace, uintptr_t state, uint64_t *entries);

#endif
