/* SPDX-License-Identifier: Apache-2.0 */

/* Two functions on one page.  One thread writes both anew, round after round; the other one is told when each is there,
 * serializes its processor, as the manuals of processors ask, and calls it: it must be the new one.  The first is called
 * for the first time while the second is written. */

#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, SECOND = 512, DELAYS = 997, SPINS = 1000 };

static unsigned char *page;
static unsigned rounds;
static atomic_uint first_is_of, second_is_of, done_with;

/* mov eax, NUMBER; ret */
static void write_function(volatile unsigned char *at, unsigned number)
{
	unsigned char code[] = { 0xb8, 0, 0, 0, 0, 0xc3 };

	memcpy(code + 1, &number, sizeof(number));
	for (unsigned i = 0; i < sizeof(code); i++)
		at[i] = code[i];
}

static unsigned call(const unsigned char *at)
{
	unsigned a, b, c, d;

	__cpuid(0, a, b, c, d);
	return ((unsigned (*)(void)) at)();
}

static void await(atomic_uint *what, unsigned round)
{
	for (unsigned i = 1; atomic_load(what) != round; i++)
		if (i % SPINS == 0)
			sched_yield();
}

static void *writer(void *unused)
{
	for (unsigned round = 1; round <= rounds; round++) {
		write_function(page, round);
		atomic_store(&first_is_of, round);
		for (volatile unsigned i = 0; i < round % DELAYS; i++)
			;
		write_function(page + SECOND, round);
		atomic_store(&second_is_of, round);
		await(&done_with, round);
	}
	return unused;
}

int main(int argc, char **argv)
{
	unsigned stale = 0;
	pthread_t thread;

	rounds = argc > 1 ? (unsigned) atoi(argv[1]) : 1;
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	            0);
	if (page == MAP_FAILED || pthread_create(&thread, NULL, writer, NULL) != 0)
		return 2;
	for (unsigned round = 1; round <= rounds; round++) {
		await(&first_is_of, round);
		stale += call(page) != round;
		await(&second_is_of, round);
		stale += call(page + SECOND) != round;
		atomic_store(&done_with, round);
	}
	printf("%u of %u calls were of code that had been replaced\n", stale, 2 * rounds);
	return stale != 0;
}
