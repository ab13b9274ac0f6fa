/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdout.c - the conduit "stdout": each object becomes one line of JSON on standard output.
 *
 *	{"key": KEY, "size": BYTES, "text": CONTENT}    content that is UTF-8 without NUL
 *	{"key": KEY, "size": BYTES, "b64": CONTENT}     any other
 *
 * A key that is not UTF-8 is told as "key_b64".  Lines are ASCII.  An object is held in memory
 * until it is complete, so that a line is whole or absent: at most STDOUT_OBJECT_MAX bytes of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "conduit/conduit_backend.h"
#include "wire/base64.h"
#include "wire/utf8.h"

enum {
	STDOUT_OBJECT_MAX = 16 * 1024 * 1024, /* bytes */
	COPY_SIZE = 64 * 1024,                /* bytes asked of a source at once */
};

struct out {
	struct resoluto_conduit base; /* first */
	int fd;                       /* owned */
};

static void json_done(json_t **json)
{
	json_decref(*json);
}

static int read_source(const struct resoluto_source *source, struct buf *bytes,
                       struct resoluto_err *err)
{
	CLEANUP(mem_free) char *piece = malloc(COPY_SIZE);

	if (!piece)
		return resoluto_fail(err, -ENOMEM, "read the source");
	for (;;) {
		ssize_t n = conduit_read_source(source, piece, COPY_SIZE, err);
		int r;

		if (n <= 0)
			return (int) n;
		r = buf_add(bytes, piece, (size_t) n);
		if (r == -E2BIG)
			return resoluto_fail(err, -EFBIG, "the object is larger than %d bytes",
			                     STDOUT_OBJECT_MAX);
		if (r < 0)
			return resoluto_fail(err, r, "read the source");
	}
}

/* NULL when out of memory. */
static json_t *base64(const char *bytes, size_t len)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(base64_size(len));

	return base64_add(&text, bytes, len) < 0 ? NULL : json_stringn(text.data, text.len);
}

/* Set name to the bytes as text where they are text, else name_b64 in base64. */
static int set_bytes(json_t *object, const char *name, const char *name_b64, const char *bytes,
                     size_t len)
{
	bool is_text = utf8_is_valid(bytes, len) && (len == 0 || !memchr(bytes, '\0', len));

	return is_text ? json_object_set_new(object, name, json_stringn(bytes, len))
	               : json_object_set_new(object, name_b64, base64(bytes, len));
}

/* The line without its '\n'; free().  NULL when out of memory. */
static char *object_line(const char *key, const struct buf *bytes)
{
	CLEANUP(json_done) json_t *object = json_object();
	const char *data = bytes->data ? bytes->data : "";

	if (!object || set_bytes(object, "key", "key_b64", key, strlen(key)) < 0 ||
	    json_object_set_new(object, "size", json_integer((json_int_t) bytes->len)) < 0 ||
	    set_bytes(object, "text", "b64", data, bytes->len) < 0)
		return NULL;
	return json_dumps(object, JSON_ENSURE_ASCII);
}

/* Standard output may be a pipe that somebody else made non-blocking. */
static int write_waiting(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd room = { .fd = fd, .events = POLLOUT };

			(void) poll(&room, 1, -1);
			continue;
		}
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t) n;
		}
	}
	return 0;
}

static int stdout_put(struct resoluto_conduit *conduit, const char *key,
                      const struct resoluto_source *source, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(STDOUT_OBJECT_MAX);
	CLEANUP(mem_free) char *line = NULL;
	size_t len;
	int r = read_source(source, &bytes, err);

	if (r < 0)
		return r;
	line = object_line(key, &bytes);
	if (!line)
		return resoluto_fail(err, -ENOMEM, "make the line");
	len = strlen(line);
	line[len] = '\n'; /* in place of the 0, so that the line goes out in one write */
	r = write_waiting(((struct out *) conduit)->fd, line, len + 1);
	return r < 0 ? resoluto_fail(err, r, "write") : 0;
}

static int cannot(struct resoluto_err *err)
{
	return resoluto_fail(err, -EOPNOTSUPP, "standard output can only be written");
}

static int stdout_get(struct resoluto_conduit *conduit, const char *key,
                      const struct resoluto_sink *sink, struct resoluto_err *err)
{
	return cannot(err);
}

static int stdout_list(struct resoluto_conduit *conduit, const char *prefix, const char *after,
                       resoluto_object_fn *each, void *ctx, struct resoluto_err *err)
{
	return cannot(err);
}

static int stdout_copy(struct resoluto_conduit *conduit, const char *from, const char *to,
                       struct resoluto_err *err)
{
	return cannot(err);
}

static int stdout_delete_beneath(struct resoluto_conduit *conduit, const char *prefix,
                                 struct resoluto_err *err)
{
	return cannot(err);
}

static int stdout_open(const char *place, struct resoluto_conduit **ret_conduit,
                       struct resoluto_err *err)
{
	struct out *out;

	if (place[0])
		return resoluto_fail(err, -EINVAL, "stdout:// takes no place");
	out = malloc(sizeof(*out));
	if (!out)
		return resoluto_fail(err, -ENOMEM, "open standard output");
	/* A descriptor of its own: what the program does to its standard output later is its matter. */
	*out = (struct out){ { &conduit_stdout }, fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) };
	if (out->fd < 0) {
		int r = -errno;

		free(out);
		return resoluto_fail(err, r, "open standard output");
	}
	*ret_conduit = &out->base;
	return 0;
}

static void stdout_close(struct resoluto_conduit *conduit)
{
	struct out *out = (struct out *) conduit;

	fd_close(&out->fd);
	free(out);
}

const struct conduit_ops conduit_stdout = {
	.open = stdout_open,
	.close = stdout_close,
	.put = stdout_put,
	.get = stdout_get,
	.list = stdout_list,
	.copy = stdout_copy,
	.delete_beneath = stdout_delete_beneath,
};
