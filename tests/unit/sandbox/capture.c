/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c - head, tail and what was dropped between them, to the byte. */
#include "check.h"
#include "sandbox/capture.h"

/* Feed total bytes "0123456789..." in pieces of step, compare with head and tail of the whole. */
static void feed(size_t max, size_t total, size_t step)
{
	struct capture capture;
	char *whole = malloc(total + 1), *kept;
	size_t len, head = max - max / 2, tail = max / 2;
	uint64_t dropped;

	for (size_t i = 0; i < total; i++)
		whole[i] = (char) ('0' + i * 7 % 61);
	capture_init(&capture, max);
	for (size_t at = 0; at < total; at += step)
		CHECK(capture_add(&capture, whole + at, total - at < step ? total - at : step) ==
		      0);
	CHECK(capture_take(&capture, &kept, &len, &dropped) == 0);
	if (total <= max) {
		CHECK(len == total && dropped == 0 && memcmp(kept, whole, total) == 0);
	} else {
		CHECK(len == max && dropped == total - max);
		CHECK(memcmp(kept, whole, head) == 0);
		CHECK(memcmp(kept + head, whole + total - tail, tail) == 0);
	}
	CHECK(kept[len] == '\0');
	free(kept);
	free(whole);
	capture_done(&capture);
}

static void keeps_head_and_tail(void)
{
	static const size_t maxima[] = { 1, 2, 3, 10, 64, 101 };

	for (size_t m = 0; m < sizeof(maxima) / sizeof(maxima[0]); m++) {
		for (size_t total = 0; total < 3 * maxima[m] + 5; total++) {
			for (size_t step = 1; step < total + 2; step += 1 + total / 9)
				feed(maxima[m], total, step);
		}
	}
}

static void cut(const char *text, size_t max, const char *want, uint64_t want_dropped)
{
	struct capture capture;
	uint64_t dropped;
	char *kept;
	size_t len;

	capture_init(&capture, max);
	CHECK(capture_add(&capture, text, strlen(text)) == 0);
	CHECK(capture_take(&capture, &kept, &len, &dropped) == 0);
	CHECK_STR(kept, want);
	CHECK(dropped == want_dropped && len + dropped == strlen(text));
	free(kept);
	capture_done(&capture);
}

static void a_cut_text_stays_a_text(void)
{
	/* 4 bytes of head, 4 of tail */
	cut("abc\xc3\xa4-----\xc3\xa4xyz", 8, "abcxyz", 9);
	cut("\xf0\x9f\x98\x80-----\xf0\x9f\x98\x80", 8, "\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 5);
	cut("a\xf0\x9f\x98\x80----\xf0\x9f\x98\x80z", 8, "az", 12);
	/* nothing dropped: nothing moved, whatever the bytes are */
	cut("\xa4\xa4\xa4\xc3", 4, "\xa4\xa4\xa4\xc3", 0);
	/* bytes that are no text lose at most three on each side */
	cut("\xa4\xa4\xa4\xa4\xa4\xa4\xa4\xa4\xa4", 8, "\xa4\xa4\xa4\xa4\xa4", 4);
}

static void nothing_is_an_empty_string(void)
{
	cut("", 8, "", 0);
}

int main(void)
{
	RUN(keeps_head_and_tail);
	RUN(a_cut_text_stays_a_text);
	RUN(nothing_is_an_empty_string);
	return check_done();
}
