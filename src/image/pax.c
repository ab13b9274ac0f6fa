/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/pax.h"

struct ustar {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char target[100], magic[6], version[2], user[32], group[32], major[8], minor[8],
		prefix[155], rest[12];
};

_Static_assert(sizeof(struct ustar) == PAX_BLOCK, "a header is one block");

enum {
	ID_MAX = 07777777,     /* that 7 octal digits hold */
	RECORD_DIGITS_MAX = 8, /* of the length of a PAX record */
};

#define SIZE_MAX_OCTAL 077777777777ull /* that 11 octal digits hold */

unsigned pax_padding(uint64_t size)
{
	return (unsigned) (-size % PAX_BLOCK);
}

/* "LENGTH key=value\n", where LENGTH counts itself. */
static int add_record(struct buf *records, const char *key, const void *value, size_t value_len)
{
	size_t body = 1 + strlen(key) + 1 + value_len + 1, total = 0;
	int r;

	for (size_t digits = 1; digits <= RECORD_DIGITS_MAX; digits++) {
		char text[32];

		total = body + digits;
		if ((size_t) snprintf(text, sizeof(text), "%zu", total) == digits)
			break;
	}
	r = buf_addf(records, "%zu %s=", total, key);
	if (r == 0)
		r = buf_add(records, value, value_len);
	return r < 0 ? r : buf_add(records, "\n", 1);
}

static int add_number_record(struct buf *records, const char *key, uint64_t number)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%llu", (unsigned long long) number);

	return add_record(records, key, text, (size_t) n);
}

static int add_xattr_records(struct buf *records, const struct tree_xattr *xattrs)
{
	char key[300];

	for (; xattrs; xattrs = xattrs->next) {
		int r;

		snprintf(key, sizeof(key), "SCHILY.xattr.%s", xattrs->name);
		r = add_record(records, key, xattrs->value, xattrs->value_len);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What does not fit the ustar header. */
static int add_records(struct buf *records, const struct pax_member *member, const char *path)
{
	int r = 0;

	if (strlen(path) >= sizeof(((struct ustar *) 0)->name))
		r = add_record(records, "path", path, strlen(path));
	if (r == 0 && member->target &&
	    strlen(member->target) >= sizeof(((struct ustar *) 0)->target))
		r = add_record(records, "linkpath", member->target, strlen(member->target));
	if (r == 0 && member->uid > ID_MAX)
		r = add_number_record(records, "uid", member->uid);
	if (r == 0 && member->gid > ID_MAX)
		r = add_number_record(records, "gid", member->gid);
	if (r == 0 && member->size > SIZE_MAX_OCTAL)
		r = add_number_record(records, "size", member->size);
	return r < 0 ? r : add_xattr_records(records, member->xattrs);
}

static void put_octal(char *field, size_t size, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%0*llo", (int) size - 1, (unsigned long long) number);
	memcpy(field, text, size);
}

static void put_text(char *field, size_t size, const char *text)
{
	size_t n = strlen(text);

	memcpy(field, text, n < size ? n : size - 1);
}

static void put_checksum(struct ustar *header)
{
	const unsigned char *bytes = (const unsigned char *) header;
	unsigned sum = 0;

	memset(header->checksum, ' ', sizeof(header->checksum));
	for (size_t i = 0; i < sizeof(*header); i++)
		sum += bytes[i];
	put_octal(header->checksum, sizeof(header->checksum) - 1, sum);
}

static int add_block(struct buf *out, char type, const char *path, const struct pax_member *member,
                     uint64_t size)
{
	struct ustar header = { .magic = "ustar", .version = { '0', '0' }, .type = type };

	put_text(header.name, sizeof(header.name), path);
	put_octal(header.mode, sizeof(header.mode), member->mode);
	put_octal(header.uid, sizeof(header.uid), member->uid > ID_MAX ? 0 : member->uid);
	put_octal(header.gid, sizeof(header.gid), member->gid > ID_MAX ? 0 : member->gid);
	put_octal(header.size, sizeof(header.size), size > SIZE_MAX_OCTAL ? 0 : size);
	put_octal(header.mtime, sizeof(header.mtime), member->mtime);
	if (member->target)
		put_text(header.target, sizeof(header.target), member->target);
	put_checksum(&header);
	return buf_add(out, &header, sizeof(header));
}

static int add_pax(struct buf *out, const struct buf *records)
{
	static const char zeros[PAX_BLOCK];
	const struct pax_member plain = { .mode = 0644 };
	int r = add_block(out, 'x', "PaxHeader", &plain, records->len);

	if (r == 0)
		r = buf_add(out, records->data, records->len);
	return r < 0 ? r : buf_add(out, zeros, pax_padding(records->len));
}

static char type_flag(enum tree_type type)
{
	switch (type) {
	case TREE_DIR:
		return '5';
	case TREE_SYMLINK:
		return '2';
	case TREE_HARDLINK:
		return '1';
	case TREE_FIFO:
		return '6';
	case TREE_FILE:
	case TREE_DEVICE:
		break;
	}
	return '0';
}

int pax_add_header(struct buf *out, const struct pax_member *member)
{
	CLEANUP(buf_done) struct buf records = BUF_INIT(PAX_HEADER_MAX);
	const char *path = member->path[0] ? member->path : "./";
	int r = add_records(&records, member, path);

	if (r == 0 && records.len > 0)
		r = add_pax(out, &records);
	return r < 0 ? r : add_block(out, type_flag(member->type), path, member, member->size);
}
