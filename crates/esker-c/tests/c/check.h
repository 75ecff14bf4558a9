/* What the test programs share. */

#ifndef CHECK_H
#define CHECK_H

#include "esker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                               \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition,      \
              esker_last_error_message());                                             \
      exit(1);                                                                         \
    }                                                                                  \
  } while (0)

#define OK(call) CHECK_CODE(ESKER_OK, call)

#define CHECK_CODE(expected, call)                                                     \
  do {                                                                                 \
    esker_code code_ = (call);                                                         \
    if (code_ != (expected)) {                                                         \
      fprintf(stderr, "%s:%d: %s instead of %s: %s: %s\n", __FILE__, __LINE__,         \
              esker_code_name(code_), #expected, #call, esker_last_error_message());   \
      exit(1);                                                                         \
    }                                                                                  \
    if (code_ != ESKER_OK) {                                                           \
      CHECK(esker_last_error_code() == code_ && *esker_last_error_message() != 0);     \
    }                                                                                  \
  } while (0)

/* A text as bytes, without the zero byte. */
#define TEXT(text) (text), strlen(text)

/* Whether a returned value is a text, and frees it. */
static inline int is_text(char *value, size_t length, const char *text) {
  int same = value != NULL && length == strlen(text) && memcmp(value, text, length) == 0 &&
             value[length] == 0;
  esker_free(value);
  return same;
}

static inline int is_bytes(esker_bytes bytes, const char *text) {
  return bytes.length == strlen(text) && memcmp(bytes.data, text, bytes.length) == 0;
}

static inline void join(char *path, size_t size, const char *directory, const char *name) {
  snprintf(path, size, "%s/%s", directory, name);
}

#endif
