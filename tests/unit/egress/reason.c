/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "egress/reason.h"

static void every_reason_has_name_and_text(void)
{
	for (int i = 0; i < EGRESS_REASON_COUNT; i++) {
		const char *name = egress_reason_name((enum egress_reason) i);
		const char *text = egress_reason_text((enum egress_reason) i);

		CHECK(name && text);
		CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyz-") == strlen(name));
		CHECK(strlen(text) > 5 && text[strlen(text) - 1] != '.');
		CHECK(egress_reason_from_name(name) == (enum egress_reason) i);
	}
}

static void the_list_is_closed(void)
{
	CHECK(!egress_reason_name(EGRESS_REASON_COUNT));
	CHECK(!egress_reason_text(EGRESS_REASON_COUNT));
	CHECK(!egress_reason_name((enum egress_reason) - 1));
	CHECK(egress_reason_from_name("") == EGRESS_REASON_COUNT);
	CHECK(egress_reason_from_name("Not-Allowed") == EGRESS_REASON_COUNT);
	CHECK(egress_reason_from_name("not-allowed") == EGRESS_NOT_ALLOWED);
	CHECK(egress_reason_from_name("none") == EGRESS_NONE);
}

int main(void)
{
	RUN(every_reason_has_name_and_text);
	RUN(the_list_is_closed);
	return check_done();
}
