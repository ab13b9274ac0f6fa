/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "runtime/microvm/json.h"
#include "runtime/microvm/tsc.h"

enum {
	CACHE_MAX = 4096,
	MEASURE_NS = 20 * 1000 * 1000,
	KHZ_MIN = 100 * 1000, /* slower and faster machines are misread ones */
	KHZ_MAX = 20 * 1000 * 1000,
};

#if defined(__x86_64__)
#include <x86intrin.h>

static uint64_t raw_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* The clock between two readings of the counter, so that being preempted in between shows. */
static uint64_t read_both(uint64_t *ret_ns)
{
	uint64_t best = UINT64_MAX, ticks = 0;

	for (int i = 0; i < 16; i++) {
		uint64_t before = __rdtsc(), ns = raw_ns(), after = __rdtsc();

		if (after - before < best) {
			best = after - before;
			ticks = before + best / 2;
			*ret_ns = ns;
		}
	}
	return ticks;
}

static int measure(uint32_t *ret_khz)
{
	const struct timespec pause = { .tv_nsec = MEASURE_NS };
	uint64_t from_ns = 0, to_ns = 0, from, to, khz;

	from = read_both(&from_ns);
	(void) clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	to = read_both(&to_ns);
	if (to_ns <= from_ns || to <= from)
		return -ERANGE;
	khz = (uint64_t) ((double) (to - from) * 1e6 / (double) (to_ns - from_ns));
	if (khz < KHZ_MIN || khz > KHZ_MAX)
		return -ERANGE;
	*ret_khz = (uint32_t) khz;
	return 0;
}
#else
static int measure(uint32_t *ret_khz)
{
	(void) ret_khz;
	return -EOPNOTSUPP;
}
#endif

int tsc_cache_parse(const char *json, size_t len, const char *boot_id, uint32_t *ret_khz)
{
	CLEANUP(json_done) json_t *root = json_loadb(json, len, 0, NULL);
	const char *seen;
	int schema, khz;

	if (!root ||
	    json_unpack(root, "{si ss si}", "schema", &schema, "boot_id", &seen, "khz", &khz) < 0 ||
	    schema != 1 || strcmp(seen, boot_id) != 0 || khz < KHZ_MIN || khz > KHZ_MAX)
		return -ENOENT;
	*ret_khz = (uint32_t) khz;
	return 0;
}

static int read_cache(int state, const char *boot_id, uint32_t *ret_khz)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CACHE_MAX);
	CLEANUP(fd_close) int fd = open_beneath(state, "tsc.json", O_RDONLY | O_NONBLOCK, 0);

	if (fd < 0 || read_rest(fd, &text) < 0 || !text.data)
		return -ENOENT;
	return tsc_cache_parse(text.data, text.len, boot_id, ret_khz);
}

int tsc_khz(const char *state_dir, const char *boot_id, uint32_t *ret_khz, struct resoluto_err *err)
{
	CLEANUP(fd_close) int state = -1;
	char json[128];
	int r = mkdirs(state_dir, 0700);

	if (r < 0)
		return resoluto_fail(err, r, "make the state directory %s", state_dir);
	state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state < 0)
		return resoluto_fail(err, -errno, "open %s", state_dir);
	if (read_cache(state, boot_id, ret_khz) == 0)
		return 0;
	r = measure(ret_khz);
	if (r < 0)
		return resoluto_fail(err, r, "measure the rate of the TSC");
	snprintf(json, sizeof(json), "{\"schema\":1,\"boot_id\":\"%s\",\"khz\":%u}\n", boot_id,
	         *ret_khz);
	return replace_file_at(state, "tsc.json", json, strlen(json), 0600, err);
}
