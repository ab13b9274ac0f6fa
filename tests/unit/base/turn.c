/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c - short turns: what the kernel says of this thread, and of what it starts. */
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/turn.h"
#include "check.h"
#include "child.h"

enum { NICE = 7, SHORT_NS = 100 * 1000 };

static struct sched_attr ask(void)
{
	struct sched_attr attr = { 0 };

	CHECK(syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) == 0);
	return attr;
}

static bool heeds_turns(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	CHECK(uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2);
	return major > 6 || (major == 6 && minor >= 12);
}

static struct sched_attr before;

/* Else nothing is asked for. */
static bool is_usual(const struct sched_attr *attr)
{
	return attr->sched_policy == SCHED_NORMAL && attr->sched_nice >= 0;
}

static int is_as_before(void)
{
	struct sched_attr now = ask();

	return now.sched_policy == before.sched_policy && now.sched_nice == before.sched_nice &&
	                       !(now.sched_flags & SCHED_FLAG_RESET_ON_FORK) &&
	                       now.sched_runtime == before.sched_runtime
	               ? 0
	               : 1;
}

static void turns_are_short_here_alone(void)
{
	struct sched_attr after;

	before = ask();
	turn_make_short();
	after = ask();
	CHECK(after.sched_policy == before.sched_policy && after.sched_nice == before.sched_nice);
	CHECK(!heeds_turns() || !is_usual(&before) || after.sched_runtime == SHORT_NS);
	CHECK(in_child(is_as_before) == 0);
}

static int lower_and_ask(void)
{
	if (setpriority(PRIO_PROCESS, 0, NICE) < 0)
		return 1;
	turn_make_short();
	return getpriority(PRIO_PROCESS, 0) == NICE && ask().sched_nice == NICE ? 0 : 1;
}

/* `nice resoluto-sandbox run` stays what it is. */
static void a_lower_rank_stays(void)
{
	CHECK(in_child(lower_and_ask) == 0);
}

/* SCHED_BATCH, real time: whoever asked for that knows why. */
static int batch_and_ask(void)
{
	struct sched_attr attr = { .size = sizeof(attr), .sched_policy = SCHED_BATCH };

	if (syscall(SYS_sched_setattr, 0, &attr, 0) < 0)
		return 1;
	turn_make_short();
	attr = ask();
	return attr.sched_policy == SCHED_BATCH && !(attr.sched_flags & SCHED_FLAG_RESET_ON_FORK)
	               ? 0
	               : 1;
}

static void another_policy_stays(void)
{
	CHECK(in_child(batch_and_ask) == 0);
}

int main(void)
{
	RUN(a_lower_rank_stays);
	RUN(another_policy_stays);
	RUN(turns_are_short_here_alone);
	return check_done();
}
