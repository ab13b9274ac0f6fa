/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vm_driver.c - the microVM runtime by hand, for tests: launches one run and tells line by line what
 * happens.
 *
 *	vm_driver [--OPTION VALUE]... -- ARG...
 *
 * ARG... becomes RESOLUTO_WORKLOAD_ARGV.  Its own stdin feeds the program (--has-stdin yes).  Lines on
 * stdout: "launched PID-OF-SHIM", "phase NAME REASON", "detail TEXT" of a failure, "isolation JSON", "logs N-BYTES" and the
 * bytes, "destroyed".  Exit 0 when the run succeeded, 1 when it failed, 3 when launch was
 * refused ("refused CODE TEXT").
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/quantity.h"
#include "resoluto/runtime.h"
#include "runtime/microvm/microvm.h"

struct driver {
	struct resoluto_launch_spec spec;
	struct strv env, labels;
	const char *conduit_dir;
	bool claim;
	struct resoluto_runtime *runtime;
	struct resoluto_handle handle;
	char held[65536];
	size_t held_len;
	bool stdin_is_done;
};

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	fflush(stdout);
}

static int set_option(struct driver *driver, const char *name, const char *value)
{
	struct resoluto_launch_spec *spec = &driver->spec;

	if (strcmp(name, "--id") == 0)
		spec->id = value;
	else if (strcmp(name, "--image") == 0)
		spec->image = value;
	else if (strcmp(name, "--conduit") == 0)
		driver->conduit_dir = value;
	else if (strcmp(name, "--prefix") == 0)
		spec->store_prefix = value;
	else if (strcmp(name, "--memory") == 0)
		return quantity_parse_bytes(value, &spec->resources.memory_bytes, NULL);
	else if (strcmp(name, "--cpus") == 0)
		return quantity_parse_cpus(value, &spec->resources.cpu_milli, NULL);
	else if (strcmp(name, "--disk") == 0)
		return quantity_parse_bytes(value, &spec->resources.disk_bytes, NULL);
	else if (strcmp(name, "--deadline") == 0)
		return quantity_parse_duration(value, &spec->deadline_ms, NULL);
	else if (strcmp(name, "--env") == 0)
		return strv_add(&driver->env, value);
	else if (strcmp(name, "--label") == 0)
		return strv_add(&driver->labels, value);
	else if (strcmp(name, "--claim") == 0)
		driver->claim = true;
	else if (strcmp(name, "--has-stdin") == 0)
		spec->has_stdin = true;
	else
		return -EINVAL;
	return 0;
}

static int set_argv(struct driver *driver, char **argv)
{
	json_t *list = json_array();
	char *text;
	int r;

	for (; *argv; argv++)
		json_array_append_new(list, json_string(*argv));
	text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	r = strv_addf(&driver->env, "RESOLUTO_WORKLOAD_ARGV=%s", text);
	free(text);
	return r;
}

static int parse(struct driver *driver, char **argv)
{
	int r = 0;

	for (argv++; r == 0 && *argv && strcmp(*argv, "--") != 0; argv += 2)
		r = argv[1] ? set_option(driver, argv[0], argv[1]) : -EINVAL;
	if (r == 0 && *argv)
		r = set_argv(driver, argv + 1);
	driver->spec.env = (const char *const *) driver->env.items;
	driver->spec.labels = (const char *const *) driver->labels.items;
	return r;
}

static int launch(struct driver *driver)
{
	struct resoluto_err err = { 0 };
	char *url = NULL;
	int r;

	if (asprintf(&url, "localfs://%s", driver->conduit_dir) < 0)
		return -ENOMEM;
	r = resoluto_conduit_open_url(url, &driver->spec.conduit, &err);
	free(url);
	if (r == 0)
		r = resoluto_runtime_microvm_new(NULL, &driver->runtime, &err);
	if (r == 0 && driver->claim)
		r = microvm_claim(driver->runtime, driver->spec.id, NULL, &err);
	if (r == 0)
		r = driver->runtime->ops->launch(driver->runtime, &driver->spec, &driver->handle,
		                                 &err);
	if (r < 0) {
		say("refused %s %s\n", strerrorname_np(-r), err.text);
		resoluto_runtime_close(driver->runtime);
		exit(3);
	}
	return 0;
}

/* At most what the runtime takes; the rest is held. */
static int feed(struct driver *driver)
{
	const struct resoluto_runtime_ops *ops = driver->runtime->ops;
	ssize_t n;

	if (driver->held_len == 0 && !driver->stdin_is_done) {
		n = read(0, driver->held, sizeof(driver->held));
		driver->stdin_is_done = n <= 0;
		driver->held_len = n > 0 ? (size_t) n : 0;
	}
	if (driver->held_len == 0)
		return ops->close_stdin(driver->runtime, &driver->handle, NULL);
	n = ops->send_stdin(driver->runtime, &driver->handle, driver->held, driver->held_len, NULL);
	if (n < 0) {
		driver->held_len = 0;
		driver->stdin_is_done = true;
		return 0;
	}
	memmove(driver->held, driver->held + n, driver->held_len - (size_t) n);
	driver->held_len -= (size_t) n;
	return 0;
}

static const char *phase_name(enum resoluto_phase phase)
{
	static const char *const names[] = { "pending", "running", "succeeded", "failed",
		                             "unknown" };

	return names[phase];
}

static void tell_end(struct driver *driver)
{
	const struct resoluto_runtime_ops *ops = driver->runtime->ops;
	char *text = NULL;

	if (ops->isolation(driver->runtime, &driver->handle, &text, NULL) == 0)
		say("isolation %s\n", text);
	free(text);
	text = NULL;
	if (ops->logs(driver->runtime, &driver->handle, RESOLUTO_LOG_TAIL_LINES, &text, NULL) == 0)
		say("logs %zu\n%s\n", strlen(text), text);
	free(text);
}

static void tell_status(const struct resoluto_status *status, enum resoluto_phase *last)
{
	if (status->phase != *last)
		say("phase %s %s\n", phase_name(status->phase), status->reason);
	if (status->phase != *last && status->phase == RESOLUTO_PHASE_FAILED)
		say("detail %s\n", status->detail);
	*last = status->phase;
}

static int follow(struct driver *driver, int signals)
{
	const struct resoluto_runtime_ops *ops = driver->runtime->ops;
	enum resoluto_phase last = RESOLUTO_PHASE_UNKNOWN;
	struct signalfd_siginfo info;
	struct resoluto_status status;

	for (;;) {
		struct resoluto_err err = { 0 };
		int extra = driver->spec.has_stdin && !driver->stdin_is_done &&
		                            driver->held_len == 0
		                    ? 0
		                    : signals;

		if (ops->status(driver->runtime, &driver->handle, &status, &err) < 0) {
			say("status failed: %s\n", err.text);
			return -1;
		}
		tell_status(&status, &last);
		if (status.phase == RESOLUTO_PHASE_SUCCEEDED ||
		    status.phase == RESOLUTO_PHASE_FAILED)
			return status.phase == RESOLUTO_PHASE_SUCCEEDED ? 0 : 1;
		if (ops->wait(driver->runtime, &driver->handle, extra, 200, &err) == 1 &&
		    extra == 0)
			feed(driver);
		else if (driver->held_len > 0)
			feed(driver);
		while (read(signals, &info, sizeof(info)) == (ssize_t) sizeof(info)) {
			if (info.ssi_signo == SIGUSR1)
				tell_end(driver);
			else if (info.ssi_signo == SIGUSR2)
				return 2; /* destroy while it runs */
			else
				ops->signal(driver->runtime, &driver->handle, (int) info.ssi_signo,
				            NULL);
		}
	}
}

int main(int argc, char **argv)
{
	struct driver driver = { .spec = { .struct_size = sizeof(driver.spec) } };
	struct resoluto_err err = { 0 };
	sigset_t mask;
	int signals, r;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGUSR2);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signals = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	if (parse(&driver, argv) < 0 || !driver.conduit_dir)
		return 2;
	launch(&driver);
	say("launched %s\n", driver.handle.id);
	r = follow(&driver, signals);
	if (r != 2)
		tell_end(&driver);
	if (driver.runtime->ops->destroy(driver.runtime, &driver.handle, &err) < 0)
		say("destroy failed: %s\n", err.text);
	say("destroyed\n");
	resoluto_runtime_close(driver.runtime);
	resoluto_conduit_close(driver.spec.conduit);
	strv_done(&driver.env);
	strv_done(&driver.labels);
	return r;
}
