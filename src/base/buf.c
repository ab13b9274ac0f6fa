/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum {
	BUF_FIRST = 256, /* bytes of the first allocation */
	STRV_FIRST = 8,  /* pointers */
};

int buf_reserve(struct buf *buf, size_t len)
{
	size_t want, cap = buf->cap ? buf->cap : BUF_FIRST;
	char *data;

	if (len > buf->max || buf->len > buf->max - len || len > SIZE_MAX - 1 - buf->len)
		return -E2BIG;
	want = buf->len + len + 1;
	if (want <= buf->cap)
		return 0;
	while (cap < want)
		cap = cap < (size_t) 1 << 30 ? cap * 2 : want;
	data = realloc(buf->data, cap);
	if (!data)
		return -ENOMEM;
	buf->data = data;
	buf->cap = cap;
	buf->data[buf->len] = '\0';
	return 0;
}

void buf_shrink(struct buf *buf)
{
	char *data = buf->data ? realloc(buf->data, buf->len + 1) : NULL;

	if (!data)
		return;
	buf->data = data;
	buf->cap = buf->len + 1;
}

int buf_add(struct buf *buf, const void *bytes, size_t len)
{
	int r = buf_reserve(buf, len);

	if (r < 0)
		return r;
	if (len > 0)
		memcpy(buf->data + buf->len, bytes, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
	return 0;
}

int buf_add_str(struct buf *buf, const char *text)
{
	return buf_add(buf, text, strlen(text));
}

int buf_addf(struct buf *buf, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	r = buf_reserve(buf, (size_t) n);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	vsnprintf(buf->data + buf->len, (size_t) n + 1, fmt, ap);
	va_end(ap);
	buf->len += (size_t) n;
	return 0;
}

void buf_drop_front(struct buf *buf, size_t len)
{
	if (len >= buf->len) {
		buf_clear(buf);
		return;
	}
	if (len == 0)
		return;
	memmove(buf->data, buf->data + len, buf->len - len + 1);
	buf->len -= len;
}

void buf_cut(struct buf *buf, size_t len)
{
	buf->len = len;
	if (buf->data)
		buf->data[len] = '\0';
}

void buf_clear(struct buf *buf)
{
	buf_cut(buf, 0);
}

char *buf_take(struct buf *buf)
{
	char *data;

	if (!buf->data && buf_reserve(buf, 0) < 0)
		return NULL;
	data = buf->data;
	*buf = BUF_INIT(buf->max);
	return data;
}

void buf_done(struct buf *buf)
{
	free(buf->data);
	*buf = BUF_INIT(buf->max);
}

/* Room for one more and the NULL. */
static int strv_reserve(struct strv *strv)
{
	size_t cap = strv->cap > STRV_FIRST / 2 ? strv->cap * 2 : STRV_FIRST;
	char **items;

	if (strv->count + 2 <= strv->cap)
		return 0;
	if (cap < strv->count + 2)
		cap = strv->count + 2;
	items = realloc(strv->items, cap * sizeof(*items));
	if (!items)
		return -ENOMEM;
	strv->items = items;
	strv->cap = cap;
	return 0;
}

/* text is taken, whatever happens. */
static int strv_add_owned(struct strv *strv, char *text)
{
	if (!text || strv_reserve(strv) < 0) {
		free(text);
		return -ENOMEM;
	}
	strv->items[strv->count++] = text;
	strv->items[strv->count] = NULL;
	return 0;
}

int strv_add(struct strv *strv, const char *text)
{
	return strv_add_owned(strv, strdup(text));
}

int strv_addf(struct strv *strv, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return strv_add_owned(strv, n < 0 ? NULL : text);
}

int strv_add_all(struct strv *strv, const char *const *items)
{
	for (; items && *items; items++) {
		int r = strv_add(strv, *items);

		if (r < 0)
			return r;
	}
	return 0;
}

bool strv_has(const char *const *items, const char *text)
{
	for (; items && *items; items++) {
		if (strcmp(*items, text) == 0)
			return true;
	}
	return false;
}

size_t strv_count(const char *const *items)
{
	size_t n = 0;

	while (items && items[n])
		n++;
	return n;
}

void strv_done(struct strv *strv)
{
	for (size_t i = 0; i < strv->count; i++)
		free(strv->items[i]);
	free(strv->items);
	*strv = (struct strv){ 0 };
}
