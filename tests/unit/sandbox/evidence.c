/* SPDX-License-Identifier: Apache-2.0 */
/* evidence.c - the own-kernel proof, checked once more: equal or missing ids refuse the result. */
#include <jansson.h>

#include "check.h"
#include "sandbox/evidence.h"

#define HOST "11111111-1111-1111-1111-111111111111"
#define GUEST "22222222-2222-2222-2222-222222222222"
#define OTHER "33333333-3333-3333-3333-333333333333"

static bool may_share; /* as of an injected runtime */

static enum reason judge(const char *runtime_json, const char *guest_id, bool ran,
                         json_t **ret_isolation)
{
	struct node_result node = { .guest_boot_id = guest_id };
	struct evidence evidence = {
		.runtime_json = runtime_json,
		.runtime_name = "fake",
		.node = guest_id ? &node : NULL,
		.host_boot_id = HOST,
		.ran = ran,
		.may_share = may_share,
	};
	enum reason reason = REASON_COUNT;
	char *json = NULL;

	CHECK(evidence_judge(&evidence, &json, &reason) == 0);
	*ret_isolation = json_loads(json, 0, NULL);
	CHECK(json_object_size(*ret_isolation) == 7);
	free(json);
	return reason;
}

static enum reason judged(const char *runtime_json, const char *guest_id, bool ran)
{
	json_t *isolation;
	enum reason reason = judge(runtime_json, guest_id, ran, &isolation);

	json_decref(isolation);
	return reason;
}

static void own_kernel(void)
{
	CHECK(judged("{\"guest_boot_id\":\"" GUEST "\"}", GUEST, true) == REASON_NONE);
	CHECK(judged("{\"guest_boot_id\":\"" GUEST "\"}", "", true) == REASON_NONE);
	CHECK(judged("{}", GUEST, true) == REASON_NONE);
	CHECK(judged("{\"guest_boot_id\":\"\"}", GUEST, true) == REASON_NONE);
}

static void equal_ids_are_refused(void)
{
	CHECK(judged("{\"guest_boot_id\":\"" HOST "\"}", GUEST, true) == REASON_SHARED_KERNEL);
	CHECK(judged("{\"guest_boot_id\":\"" GUEST "\"}", HOST, true) == REASON_SHARED_KERNEL);
	CHECK(judged("{}", HOST, true) == REASON_SHARED_KERNEL);
	CHECK(judged("{}", HOST, false) == REASON_SHARED_KERNEL);
}

static void missing_or_odd_ids_are_refused(void)
{
	CHECK(judged("{}", "", true) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(judged(NULL, NULL, true) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(judged("not json", "", true) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(judged("{\"guest_boot_id\":7}", "", true) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(judged("{}", "x", true) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(judged("{}", " " GUEST, true) == REASON_OWN_KERNEL_UNPROVEN);
	/* two stories about one guest */
	CHECK(judged("{\"guest_boot_id\":\"" GUEST "\"}", OTHER, true) ==
	      REASON_OWN_KERNEL_UNPROVEN);
	/* nothing ran: nothing to prove */
	CHECK(judged(NULL, NULL, false) == REASON_NONE);
}

static void is_shared(const char *runtime_json, const char *guest_id)
{
	json_t *isolation;

	CHECK(judge(runtime_json, guest_id, true, &isolation) == REASON_NONE);
	CHECK(json_is_false(json_object_get(isolation, "own_kernel")));
	json_decref(isolation);
}

static void a_runtime_without_kernels_is_believed_in_that(void)
{
	static const char without[] = "{\"own_kernel\":false,\"guest_boot_id\":\"\"}";

	/* the microVM never is: its state says false until it has the proof */
	CHECK(judged(without, "", true) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(judged(without, HOST, true) == REASON_SHARED_KERNEL);
	may_share = true;
	is_shared(without, NULL);
	is_shared(without, "");
	is_shared(without, GUEST);
	is_shared(without, HOST);
	/* in so many words only */
	CHECK(judged("{\"own_kernel\":null}", "", true) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(judged("{\"own_kernel\":0}", "", true) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(judged("{}", "", true) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(judged("{}", HOST, true) == REASON_SHARED_KERNEL);
	CHECK(judged("{\"own_kernel\":true}", "", true) == REASON_OWN_KERNEL_UNPROVEN);
	CHECK(judged("{\"own_kernel\":true}", HOST, true) == REASON_SHARED_KERNEL);
	may_share = false;
}

static void only_what_is_known_is_passed_on(void)
{
	json_t *isolation;

	CHECK(judge("{\"runtime\":\"microvm\",\"accel\":\"tcg\",\"kernel\":\"6.1\",\"own_kernel\":"
	            "true,\"guest_boot_id\":\"" GUEST
	            "\",\"verdict\":\"protected\",\"confinement\":[\"landlock\",7,\"seccomp\"],"
	            "\"more\":1}",
	            GUEST, true, &isolation) == REASON_NONE);
	CHECK_STR(json_string_value(json_object_get(isolation, "runtime")), "microvm");
	CHECK_STR(json_string_value(json_object_get(isolation, "accel")), "tcg");
	CHECK_STR(json_string_value(json_object_get(isolation, "verdict")), "protected");
	CHECK(json_is_true(json_object_get(isolation, "own_kernel")));
	CHECK(json_array_size(json_object_get(isolation, "confinement")) == 2);
	json_decref(isolation);
	CHECK(judge("{\"own_kernel\":true,\"verdict\":\"sure\"}", "", true, &isolation) !=
	      REASON_NONE);
	CHECK_STR(json_string_value(json_object_get(isolation, "verdict")), "same-uid");
	CHECK_STR(json_string_value(json_object_get(isolation, "runtime")), "fake");
	CHECK(json_is_null(json_object_get(isolation, "own_kernel")));
	json_decref(isolation);
	CHECK(judge("{}", HOST, true, &isolation) != REASON_NONE);
	CHECK(json_is_false(json_object_get(isolation, "own_kernel")));
	json_decref(isolation);
}

static void canaries(void)
{
	json_t *from = json_loads(
		"[{\"probe\":\"put\",\"ok\":true,\"detail\":\"\"},{\"probe\":7,\"ok\":true},{"
		"\"probe\":\"x\"},"
		"\"y\",{\"probe\":\"tcp\",\"ok\":false,\"detail\":\"reachable\",\"more\":1}]",
		0, NULL);
	char *text = evidence_canary(from);

	CHECK_STR(text, "[{\"probe\":\"put\",\"ok\":true,\"detail\":\"\"},{\"probe\":\"tcp\","
	                "\"ok\":false,\"detail\":\"reachable\"}]");
	free(text);
	json_decref(from);
	text = evidence_canary(NULL);
	CHECK_STR(text, "[]");
	free(text);
}

static void the_host_has_an_id(void)
{
	char id[EVIDENCE_BOOT_ID_SIZE];

	CHECK(evidence_host_boot_id(id, NULL) == 0 && strlen(id) == 36);
}

int main(void)
{
	RUN(own_kernel);
	RUN(equal_ids_are_refused);
	RUN(missing_or_odd_ids_are_refused);
	RUN(a_runtime_without_kernels_is_believed_in_that);
	RUN(only_what_is_known_is_passed_on);
	RUN(canaries);
	RUN(the_host_has_an_id);
	return check_done();
}
