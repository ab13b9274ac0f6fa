/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/random.h"

static void fills_every_byte(void)
{
	enum { SIZE = 1000 };
	unsigned char seen[SIZE] = { 0 }, bytes[SIZE];
	size_t touched = 0;

	for (int round = 0; round < 8; round++) {
		CHECK(random_bytes(bytes, SIZE) == 0);
		for (size_t i = 0; i < SIZE; i++)
			seen[i] |= bytes[i];
	}
	for (size_t i = 0; i < SIZE; i++)
		touched += seen[i] != 0;
	/* A byte that stays 0 eight times by chance: once in 2^64. */
	CHECK(touched == SIZE);
	CHECK(random_bytes(bytes, 0) == 0);
}

static void makes_ids_of_hex_digits(void)
{
	char id[RANDOM_ID_SIZE], other[RANDOM_ID_SIZE];

	CHECK(random_id(id) == 0 && random_id(other) == 0);
	CHECK(strlen(id) == 16 && strspn(id, "0123456789abcdef") == 16);
	CHECK(strcmp(id, other) != 0);
}

int main(void)
{
	RUN(fills_every_byte);
	RUN(makes_ids_of_hex_digits);
	return check_done();
}
