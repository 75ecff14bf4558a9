#include "shim.h"

#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

void go_pairs_free(go_pairs *pairs) {
  free(pairs->data);
  memset(pairs, 0, sizeof *pairs);
}

static bool add(go_pairs *pairs, const void *key, size_t key_length, const void *value,
                size_t value_length) {
  uint32_t lengths[2] = {(uint32_t)key_length, (uint32_t)value_length};
  size_t needed = pairs->length + sizeof lengths + key_length + value_length;
  if (needed > pairs->capacity) {
    size_t capacity = pairs->capacity * 2 > needed ? pairs->capacity * 2 : needed;
    char *data = realloc(pairs->data, capacity);
    if (data == NULL) {
      pairs->is_full = true;
      return false;
    }
    pairs->data = data;
    pairs->capacity = capacity;
  }
  char *at = pairs->data + pairs->length;
  memcpy(at, lengths, sizeof lengths);
  if (key_length > 0) memcpy(at + sizeof lengths, key, key_length);
  if (value_length > 0) memcpy(at + sizeof lengths + key_length, value, value_length);
  pairs->length = needed;
  pairs->count++;
  return true;
}

static esker_code done(const go_pairs *pairs, esker_code code) {
  return code == ESKER_OK && pairs->is_full ? GO_NO_MEMORY : code;
}

esker_code go_iterator_fill(esker_iterator *iterator, bool reverse, size_t most_pairs,
                            size_t most_bytes, go_pairs *pairs, bool *is_end) {
  *is_end = false;
  while (pairs->count < most_pairs && pairs->length < most_bytes) {
    esker_bytes key, value;
    bool found;
    esker_code code = reverse ? esker_iterator_next_back(iterator, &key, &value, &found)
                              : esker_iterator_next(iterator, &key, &value, &found);
    if (code != ESKER_OK) return code;
    if (!found) {
      *is_end = true;
      return ESKER_OK;
    }
    if (!add(pairs, key.data, key.length, value.data, value.length)) return GO_NO_MEMORY;
  }
  return ESKER_OK;
}

typedef struct {
  go_pairs *pairs;
  size_t most_pairs;
  size_t most_bytes;
  bool has_ended;
} visit_state;

static bool visit_pair(void *state, esker_bytes key, esker_bytes value) {
  visit_state *visit = state;
  if (!add(visit->pairs, key.data, key.length, value.data, value.length)) return false;
  visit->has_ended =
      visit->pairs->count < visit->most_pairs && visit->pairs->length < visit->most_bytes;
  return visit->has_ended;
}

esker_code go_transaction_fill(esker_transaction *transaction, esker_keyspace *keyspace, GO_RANGE,
                               bool reverse, size_t most_pairs, size_t most_bytes, go_pairs *pairs,
                               bool *is_end) {
  esker_range range = GO_MAKE_RANGE;
  visit_state visit = {pairs, most_pairs, most_bytes, true};
  esker_code code =
      esker_transaction_scan(transaction, keyspace, &range, reverse, &visit, visit_pair);
  *is_end = visit.has_ended;
  return done(pairs, code);
}

esker_code go_transaction_fill_prefix(esker_transaction *transaction, esker_keyspace *keyspace,
                                      go_data prefix, size_t length, bool reverse,
                                      size_t most_pairs, size_t most_bytes, go_pairs *pairs,
                                      bool *is_end) {
  visit_state visit = {pairs, most_pairs, most_bytes, true};
  esker_code code = esker_transaction_scan_prefix(transaction, keyspace, prefix, length, reverse,
                                                  &visit, visit_pair);
  *is_end = visit.has_ended;
  return done(pairs, code);
}

static esker_code multi_get(esker_keyspace *keyspace, esker_snapshot *snapshot,
                            esker_transaction *transaction, const esker_bytes *keys, size_t count,
                            char **values, size_t *lengths) {
  if (transaction != NULL) {
    return esker_transaction_multi_get(transaction, keyspace, keys, count, values, lengths, NULL);
  }
  if (snapshot != NULL) {
    return esker_snapshot_multi_get(snapshot, keyspace, keys, count, values, lengths, NULL);
  }
  return esker_keyspace_multi_get(keyspace, keys, count, values, lengths, NULL);
}

esker_code go_multi_get(esker_keyspace *keyspace, esker_snapshot *snapshot,
                        esker_transaction *transaction, go_data keys, const size_t *lengths,
                        size_t count, go_pairs *pairs) {
  if (count == 0) return ESKER_OK;
  esker_bytes *bytes = calloc(count, sizeof *bytes);
  char **values = calloc(count, sizeof *values);
  size_t *value_lengths = calloc(count, sizeof *value_lengths);
  esker_code code = GO_NO_MEMORY;
  if (bytes != NULL && values != NULL && value_lengths != NULL) {
    for (size_t i = 0; i < count; i++) {
      bytes[i].data = keys;
      bytes[i].length = lengths[i];
      keys += lengths[i];
    }
    code = multi_get(keyspace, snapshot, transaction, bytes, count, values, value_lengths);
    for (size_t i = 0; i < count; i++) {
      if (code == ESKER_OK) add(pairs, "v", values[i] != NULL, values[i], value_lengths[i]);
      esker_free(values[i]);
    }
    code = done(pairs, code);
  }
  free(bytes);
  free(values);
  free(value_lengths);
  return code;
}

static bool visit_text(void *state, const char *name, const char *text) {
  return add(state, name, strlen(name), text, strlen(text));
}

esker_code go_db_properties(esker_db *db, go_pairs *pairs) {
  return done(pairs, esker_db_properties(db, pairs, visit_text));
}

esker_code go_db_keyspaces(esker_db *db, go_pairs *pairs) {
  return done(pairs, esker_db_keyspaces(db, pairs, visit_text));
}

esker_code go_db_verify(esker_db *db, go_pairs *pairs) {
  return done(pairs, esker_db_verify(db, pairs, visit_text));
}

esker_code go_db_verify_directory(const char *path, const esker_options *options, go_pairs *pairs) {
  return done(pairs, esker_db_verify_directory(path, options, pairs, visit_text));
}

esker_code go_write_options(bool sync, bool disable_wal, bool has_ttl, uint64_t ttl_ms,
                            uint64_t stall_ms, esker_write_options **options) {
  esker_code code = esker_write_options_create(options);
  if (code == ESKER_OK && sync) code = esker_write_options_set_sync(*options, true);
  if (code == ESKER_OK && disable_wal) code = esker_write_options_set_disable_wal(*options, true);
  if (code == ESKER_OK && has_ttl) code = esker_write_options_set_ttl(*options, ttl_ms);
  if (code == ESKER_OK && stall_ms != UINT64_MAX) {
    code = esker_write_options_set_stall(*options, stall_ms);
  }
  return code;
}

/* Callbacks. The state is a number, never a pointer. */

static void destroy(void *state) { eskerGoDestroy((uintptr_t)state); }

static bool full_merge(void *state, esker_bytes key, const esker_bytes *existing,
                       const esker_bytes *operands, size_t count, esker_output *output) {
  return eskerGoFullMerge((uintptr_t)state, key, (esker_bytes *)existing, (esker_bytes *)operands,
                          count, output);
}

static bool partial_merge(void *state, esker_bytes key, esker_bytes older, esker_bytes newer,
                          esker_output *output) {
  return eskerGoPartialMerge((uintptr_t)state, key, older, newer, output);
}

static bool check_operand(void *state, esker_bytes operand, esker_output *output) {
  return eskerGoCheckOperand((uintptr_t)state, operand, output);
}

static int32_t compare(void *state, esker_bytes a, esker_bytes b) {
  return eskerGoCompare((uintptr_t)state, a, b);
}

static int32_t filter(void *state, esker_bytes key, esker_bytes value, esker_output *output) {
  return eskerGoFilter((uintptr_t)state, key, value, output);
}

static bool create_filter(void *state, const esker_bytes *keys, size_t count,
                          esker_output *output) {
  return eskerGoCreateFilter((uintptr_t)state, (esker_bytes *)keys, count, output);
}

static bool key_may_match(void *state, esker_bytes key, esker_bytes filter) {
  return eskerGoKeyMayMatch((uintptr_t)state, key, filter);
}

static uint64_t now(void *state) { return eskerGoNow((uintptr_t)state); }

static void event(void *state, const char *name, const char *text) {
  eskerGoEvent((uintptr_t)state, (char *)name, (char *)text);
}

esker_code go_set_merge_operator(esker_keyspace_options *options, const char *name, uintptr_t state,
                                 bool has_partial, bool has_check) {
  return esker_keyspace_options_set_merge_operator(
      options, name, (void *)state, full_merge, has_partial ? partial_merge : NULL,
      has_check ? check_operand : NULL, destroy);
}

esker_code go_set_comparator(esker_keyspace_options *options, const char *name, uintptr_t state) {
  return esker_keyspace_options_set_comparator(options, name, (void *)state, compare, destroy);
}

esker_code go_set_compaction_filter(esker_keyspace_options *options, const char *name,
                                    uintptr_t state) {
  return esker_keyspace_options_set_compaction_filter(options, name, (void *)state, filter,
                                                      destroy);
}

esker_code go_add_comparator(esker_options *options, const char *name, uintptr_t state) {
  return esker_options_add_comparator(options, name, (void *)state, compare, destroy);
}

esker_code go_set_filter_policy(esker_options *options, const char *name, uintptr_t state) {
  return esker_options_set_filter_policy(options, name, (void *)state, create_filter,
                                         key_may_match, destroy);
}

esker_code go_set_clock(esker_options *options, uintptr_t state) {
  return esker_options_set_clock(options, (void *)state, now, destroy);
}

esker_code go_set_event_listener(esker_options *options, uintptr_t state) {
  return esker_options_set_event_listener(options, (void *)state, event, destroy);
}

/* A pair of `eskerGoNextPair` is in memory of C, and freed when the next one is there. */
typedef struct {
  uintptr_t state;
  char *pair;
} ingestion;

static bool next_pair(void *state, esker_bytes *key, esker_bytes *value) {
  ingestion *ingestion = state;
  free(ingestion->pair);
  ingestion->pair = NULL;
  size_t key_length = 0, value_length = 0;
  int32_t given = eskerGoNextPair(ingestion->state, &ingestion->pair, &key_length, &value_length);
  if (given == 0) return false;
  if (given < 0) {
    /* Bytes that cannot be: nothing is loaded. */
    key->data = NULL;
    key->length = 1;
    return true;
  }
  key->data = ingestion->pair;
  key->length = key_length;
  value->data = ingestion->pair + key_length;
  value->length = value_length;
  return true;
}

esker_code go_ingest(esker_keyspace *keyspace, uintptr_t state, uint64_t *entries) {
  ingestion ingestion = {state, NULL};
  esker_code code = esker_keyspace_ingest(keyspace, &ingestion, next_pair, entries);
  free(ingestion.pair);
  return code;
}
