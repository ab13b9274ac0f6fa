/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * buf.h - a growing byte buffer with a bound, and a growing list of strings.
 *
 * Every buffer has a bound given at its birth; going over it is -E2BIG and leaves
 * the content as it was.  buf.data always has a 0 behind its last byte, so that a
 * buffer of text is a C string (NULL only before the first byte was added).
 */

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* owned; NULL while nothing was added */
	size_t len; /* bytes in use, the 0 behind them not counted */
	size_t cap; /* bytes allocated */
	size_t max; /* bound on len, bytes */
};

#define BUF_INIT(bound) ((struct buf){ .max = (bound) })

/* 0, -E2BIG or -ENOMEM. */
int buf_add(struct buf *buf, const void *bytes, size_t len);
int buf_add_str(struct buf *buf, const char *text);
int buf_addf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Make room for len more bytes behind buf->len; the caller writes them, then adds to len. */
int buf_reserve(struct buf *buf, size_t len);
/* Give back what is not used: for bytes that are kept. */
void buf_shrink(struct buf *buf);
/* Drop the first len bytes (all if len is larger). */
void buf_drop_front(struct buf *buf, size_t len);
/* Keep only the first len bytes; len is at most buf->len. */
void buf_cut(struct buf *buf, size_t len);
void buf_clear(struct buf *buf);
/* The bytes, now the caller's; an empty buffer gives "" on the heap, NULL when out of memory. */
char *buf_take(struct buf *buf);
void buf_done(struct buf *buf);

/* A NULL-terminated list of strings that owns them. */
struct strv {
	char **items; /* NULL while empty; else items[count] == NULL */
	size_t count;
	size_t cap; /* pointers allocated; 0 is fine for a list made by hand */
};

int strv_add(struct strv *strv, const char *text);
int strv_addf(struct strv *strv, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int strv_add_all(struct strv *strv, const char *const *items); /* NULL allowed */
bool strv_has(const char *const *items, const char *text);     /* items may be NULL */
size_t strv_count(const char *const *items);                   /* items may be NULL */
void strv_done(struct strv *strv);
