/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "guest/identity.h"

#define OURS "11111111-2222-3333-4444-555555555555"
#define OTHER "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
#define THIRD "00000000-0000-0000-0000-000000000000"

static void another_id_is_proof(void)
{
	CHECK(identity_judge(OURS, OTHER) == REASON_NONE);
	CHECK(identity_judge(OURS, OTHER "," THIRD) == REASON_NONE);
	CHECK(identity_judge(OURS, OTHER ", " THIRD) == REASON_NONE);
}

static void the_same_id_is_a_shared_kernel(void)
{
	CHECK(identity_judge(OURS, OURS) == REASON_SHARED_KERNEL);
	CHECK(identity_judge(OURS, OTHER "," OURS) == REASON_SHARED_KERNEL);
	CHECK(identity_judge("AAAAAAAA-BBBB-CCCC-DDDD-EEEEEEEEEEEE", OTHER) ==
	      REASON_SHARED_KERNEL);
}

static void what_is_missing_or_damaged_proves_nothing(void)
{
	static const char *const lists[] = { "",
		                             ",",
		                             OTHER ",",
		                             "," OTHER,
		                             OTHER OTHER,
		                             OTHER ";" THIRD,
		                             "nonsense",
		                             OTHER " " THIRD,
		                             "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeeg" };

	CHECK(identity_judge(OURS, NULL) == REASON_OWN_KERNEL_UNPROVEN);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		CHECK(identity_judge(OURS, lists[i]) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(identity_judge("", OTHER) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(identity_judge("11111111", OTHER) == REASON_OWN_KERNEL_UNPROVEN);
}

static void this_kernel_has_an_id(void)
{
	char boot_id[BOOT_ID_SIZE];

	identity_read(boot_id);
	CHECK(strlen(boot_id) == BOOT_ID_SIZE - 1);
	CHECK(identity_judge(boot_id, boot_id) == REASON_SHARED_KERNEL);
}

int main(void)
{
	RUN(another_id_is_proof);
	RUN(the_same_id_is_a_shared_kernel);
	RUN(what_is_missing_or_damaged_proves_nothing);
	RUN(this_kernel_has_an_id);
	return check_done();
}
