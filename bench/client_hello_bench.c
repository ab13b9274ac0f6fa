/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_hello_bench.c - how fast ClientHellos are read.
 *
 * usage: client_hello_bench FOLDER ROUNDS     FOLDER: what real clients said, tests/fuzz/samples/client_hello
 *
 * Each round reads the first hello of each client again and again for a second: all at once, then in segments of
 * 100 bytes as they come from a slow network.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "egress/client_hello.h"

enum {
	CLIENTS_MAX = 200,
	SAMPLE_MAX = 65536, /* bytes */
	ROUNDS_MAX = 100,
	SEGMENT = 100, /* bytes */
	ROUND_MS = 1000,
};

struct client {
	uint8_t *bytes;
	size_t len; /* of the first hello */
};

static struct client clients[CLIENTS_MAX];
static size_t client_count;

static void fail(const char *what)
{
	fprintf(stderr, "client_hello_bench: %s\n", what);
	exit(1);
}

static void add_client(int dirfd, const char *name)
{
	struct buf bytes = BUF_INIT(SAMPLE_MAX);
	const uint8_t *at;
	size_t len;

	if (client_count == CLIENTS_MAX || read_file_at(dirfd, name, SAMPLE_MAX, &bytes, NULL) < 0)
		fail(name);
	at = (const uint8_t *) bytes.data;
	len = bytes.len < 5 ? 0 : 5 + ((size_t) at[3] << 8 | at[4]);
	if (len == 0 || len > bytes.len)
		fail(name);
	clients[client_count++] = (struct client){ (uint8_t *) buf_take(&bytes), len };
}

static void read_clients(const char *folder)
{
	CLEANUP(dir_close) DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.' && strncmp(entry->d_name, "made-", 5) != 0)
			add_client(dirfd(dir), entry->d_name);
	}
	if (client_count == 0)
		fail("no samples");
}

static void read_hello(const struct client *client, size_t segment)
{
	enum egress_reason reason = EGRESS_NONE;
	struct client_hello hello;
	size_t pass = 0;

	client_hello_init(&hello, 1);
	for (size_t end = 0; end < client->len && reason == EGRESS_NONE;) {
		end = client->len - end < segment ? client->len : end + segment;
		reason = client_hello_look(&hello, client->bytes, end, 0, &pass);
	}
	if (reason != EGRESS_NONE || pass != client->len)
		fail("a hello was refused");
}

/* Hellos in a second. */
static double measure(size_t segment)
{
	const uint64_t start = clock_mono_ms();
	uint64_t now = start, count = 0;

	while (now - start < ROUND_MS) {
		for (int i = 0; i < 100; i++) {
			for (size_t n = 0; n < client_count; n++)
				read_hello(&clients[n], segment);
		}
		count += 100 * client_count;
		now = clock_mono_ms();
	}
	return (double) count * 1000 / (double) (now - start);
}

static int by_rate(const void *a, const void *b)
{
	const double one = *(const double *) a, other = *(const double *) b;

	return one < other ? -1 : one > other;
}

static double median(double *rates, size_t count)
{
	qsort(rates, count, sizeof(*rates), by_rate);
	return rates[count / 2];
}

int main(int argc, char *argv[])
{
	double whole[ROUNDS_MAX], cut[ROUNDS_MAX];
	size_t rounds = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: client_hello_bench FOLDER ROUNDS\n");
		return 2;
	}
	read_clients(argv[1]);
	for (size_t i = 0; i < rounds; i++) {
		whole[i] = measure(SIZE_MAX);
		cut[i] = measure(SEGMENT);
	}
	printf("%zu clients, %zu rounds of a second\n", client_count, rounds);
	printf("in segments of %d bytes: %.0f hellos/s\n", SEGMENT, median(cut, rounds));
	printf("value %.0f hellos/s\n", median(whole, rounds));
	for (size_t i = 0; i < client_count; i++)
		free(clients[i].bytes);
	return 0;
}
