/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "wire/reason.h"

static void each_has_a_name_of_its_own(void)
{
	for (int i = 0; i < REASON_COUNT; i++) {
		const char *name = reason_name((enum reason) i);

		CHECK(name && (*name != '\0') == (i != REASON_NONE));
		CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyz-") == strlen(name));
		CHECK(reason_from_name(name) == (enum reason) i);
	}
}

static void each_tells_a_person_something(void)
{
	for (int i = REASON_NONE + 1; i < REASON_COUNT; i++) {
		const char *sentence = reason_sentence((enum reason) i);

		CHECK(sentence && strlen(sentence) > 5);
		CHECK(!strchr(sentence, '\n') && sentence[strlen(sentence) - 1] != '.');
	}
}

static void unknown_ones_are_told_apart(void)
{
	CHECK(reason_from_name("no such reason") == REASON_COUNT);
	CHECK(reason_from_name("Guest-Panic") == REASON_COUNT);
	CHECK_STR(reason_name(REASON_COUNT), "");
	CHECK_STR(reason_sentence(REASON_COUNT), "");
	CHECK(reason_from_name("guest-panic") == REASON_GUEST_PANIC);
}

int main(void)
{
	RUN(each_has_a_name_of_its_own);
	RUN(each_tells_a_person_something);
	RUN(unknown_ones_are_told_apart);
	return check_done();
}
