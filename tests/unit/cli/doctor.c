/* SPDX-License-Identifier: Apache-2.0 */

/* doctor.c - what doctor says of /dev/kvm: the remedy, and whether nothing runs without it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "check.h"
#include "cli/doctor.h"
#include "fake_api.h"

static void check(const char *accel, struct host_kvm kvm, enum check_status status,
                  const char *note, const char *remedy)
{
	CLEANUP(finding_done) struct finding finding = { CHECK_OK, TEXT_INIT, TEXT_INIT };
	CLEANUP(config_free) struct config *config = NULL;

	fake_api.kvm = kvm;
	CHECK(setenv("RESOLUTO_LOCAL_ACCEL", accel, 1) == 0);
	CHECK(config_load(&config, NULL) == 0);
	check_kvm(config, &finding);
	CHECK(finding.status == status);
	CHECK(strstr(text_string(&finding.note), note));
	CHECK(strstr(text_string(&finding.remedy), remedy));
}

static void a_kvm_that_opens_is_fine(void)
{
	const struct host_kvm usable = { .state = KVM_USABLE };

	check("kvm", usable, CHECK_OK, "/dev/kvm opens", "");
	check("tcg", usable, CHECK_OK, "/dev/kvm opens", "");
}

static void where_kvm_was_recorded_nothing_runs_without_it(void)
{
	const struct host_kvm none = { .state = KVM_CLOSED, .code = -ENOENT };

	check("kvm", none, CHECK_MISSING, "/dev/kvm: No such file", "local-backend-up.sh");
	check("kvm", (struct host_kvm){ .state = KVM_OTHER }, CHECK_MISSING, "another interface",
	      "local-backend-up.sh");
	check("kvm", (struct host_kvm){ .state = KVM_CLOSED, .code = -EACCES }, CHECK_MISSING,
	      "/dev/kvm: Permission denied", "join the group kvm");
	check("kvm", (struct host_kvm){ .state = KVM_ROOTS_ALONE }, CHECK_MISSING, "root's alone",
	      "chgrp kvm /dev/kvm && chmod 660 /dev/kvm");
}

static void where_tcg_was_recorded_nothing_needs_it(void)
{
	const struct host_kvm none = { .state = KVM_CLOSED, .code = -ENOENT };

	check("tcg", none, CHECK_ABSENT, "/dev/kvm: No such file", "stay with emulation");
	check("", none, CHECK_ABSENT, "/dev/kvm: No such file", "stay with emulation");
	check("tcg", (struct host_kvm){ .state = KVM_CLOSED, .code = -EACCES }, CHECK_ABSENT,
	      "/dev/kvm: Permission denied", "join the group kvm");
}

int main(void)
{
	RUN(a_kvm_that_opens_is_fine);
	RUN(where_kvm_was_recorded_nothing_runs_without_it);
	RUN(where_tcg_was_recorded_nothing_needs_it);
	return check_done();
}
