/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c - head, tail and what was dropped between them, to the byte. */
#include "base/capture.h"
#include "check.h"

/* Feed total bytes "0123456789..." in pieces of step, compare with head and tail of the whole. */
static void feed(size_t max, size_t total, size_t step)
{
	struct capture capture;
	struct capture_kept kept;
	char *whole = malloc(total + 1);
	size_t head = max - max / 2, tail = max / 2;

	for (size_t i = 0; i < total; i++)
		whole[i] = (char) ('0' + i * 7 % 61);
	capture_init(&capture, max);
	for (size_t at = 0; at < total; at += step)
		CHECK(capture_add(&capture, whole + at, total - at < step ? total - at : step) ==
		      0);
	CHECK(capture_take(&capture, &kept) == 0);
	if (total <= max) {
		CHECK(kept.len == total && kept.dropped == 0 && kept.head_len == total);
		CHECK(memcmp(kept.bytes, whole, total) == 0);
	} else {
		CHECK(kept.len == max && kept.dropped == total - max && kept.head_len == head);
		CHECK(memcmp(kept.bytes, whole, head) == 0);
		CHECK(memcmp(kept.bytes + head, whole + total - tail, tail) == 0);
	}
	CHECK(kept.bytes[kept.len] == '\0');
	free(kept.bytes);
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

static void check_kept(struct capture *capture, const char *text, const char *want,
                       uint64_t want_dropped)
{
	struct capture_kept kept;

	CHECK(capture_add(capture, text, strlen(text)) == 0);
	CHECK(capture_take(capture, &kept) == 0);
	CHECK_STR(kept.bytes, want);
	CHECK(kept.dropped == want_dropped && kept.len + kept.dropped == strlen(text));
	CHECK(kept.head_len <= kept.len && strncmp(kept.bytes, text, kept.head_len) == 0);
	free(kept.bytes);
	capture_done(capture);
}

static void cut(const char *text, size_t max, const char *want, uint64_t want_dropped)
{
	struct capture capture;

	capture_init(&capture, max);
	check_kept(&capture, text, want, want_dropped);
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

static void a_tail_alone(void)
{
	struct capture capture;

	capture_init_tail(&capture, 4);
	check_kept(&capture, "abcdefgh", "efgh", 4);
	capture_init_tail(&capture, 4);
	check_kept(&capture, "abcd", "abcd", 0);
	capture_init_tail(&capture, 4);
	check_kept(&capture, "abcd\xc3\xa4xyz", "xyz", 6);
	capture_init_tail(&capture, 0);
	check_kept(&capture, "abcd", "", 4);
}

static void nothing_is_an_empty_string(void)
{
	cut("", 8, "", 0);
}

int main(void)
{
	RUN(keeps_head_and_tail);
	RUN(a_cut_text_stays_a_text);
	RUN(a_tail_alone);
	RUN(nothing_is_an_empty_string);
	return check_done();
}
