/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * samples.h - what real clients said, one recorded file each, and how it is cut into segments: at random, and the
 * same way in every run.  The test gives the folder as its only argument.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "check.h"

enum {
	SAMPLE_MAX = 65536, /* bytes */
	ROUNDS = 20,        /* of random segments */
};

static const char *samples_folder;
/* The one that is being checked. */
static struct buf sample;
static const char *sample_name;
static uint32_t sample_dice;

/* The next of a row of numbers (xorshift), which begins anew with each sample. */
static inline uint32_t sample_roll(uint32_t sides)
{
	sample_dice ^= sample_dice << 13;
	sample_dice ^= sample_dice >> 17;
	sample_dice ^= sample_dice << 5;
	return sample_dice % sides;
}

/* How long the next segment is of what is left: `segment` bytes, 0: of random length. */
static inline size_t sample_segment(size_t segment, size_t left)
{
	size_t len = segment ? segment : 1 + sample_roll(sample_roll(2) ? 2000 : 50);

	return len < left ? len : left;
}

/* Check every file that is one of ours by its name.  Returns how many there were. */
static inline int samples_each(bool (*is_ours)(const char *name), void (*check)(void))
{
	CLEANUP(dir_close) DIR *dir = opendir(samples_folder);
	const struct dirent *entry;
	int count = 0;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		if (!is_ours(entry->d_name))
			continue;
		buf_done(&sample);
		sample_name = entry->d_name;
		CHECK(read_file_at(dirfd(dir), entry->d_name, SAMPLE_MAX, &sample, NULL) == 0);
		sample_dice = 2463534242;
		check();
		count++;
	}
	return count;
}

static inline void samples_take_folder(int argc, char *argv[])
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		exit(2);
	}
	samples_folder = argv[1];
	sample = BUF_INIT(SAMPLE_MAX);
}
