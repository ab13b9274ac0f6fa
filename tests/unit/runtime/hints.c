/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hints.c - who waits hears every hint: those that came while somebody else listened, and the room that a port
 * has again.  Real sockets, no shim and no guest beside.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/io.h"
#include "base/path.h"
#include "check.h"
#include "runtime/microvm/run.h"
#include "shim/shim.h"
#include "wire/frame.h"
#include "wire/keys.h"
#include "wire/result.h"

enum {
	LONG_MS = 20 * 1000, /* what a wait takes that has missed its hint */
	OBJECTS = 2000,      /* whose refusals are more than a full port */
};

static char state_dir[] = "/tmp/resoluto-hints-XXXXXX";

/* A run as launch() leaves it; the shim's end of its socket is the test's. */
struct caller {
	struct resoluto_runtime *runtime;
	struct claim claim;
	struct run run;
	struct resoluto_handle handle;
	int shim;
};

static void caller_open(struct caller *caller)
{
	const struct resoluto_microvm_options options = { .struct_size = sizeof(options),
		                                          .state_dir = state_dir,
		                                          .qemu = "/bin/true",
		                                          .shim = "/bin/true" };
	int pair[2];

	CHECK(resoluto_runtime_microvm_new(&options, &caller->runtime, NULL) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	caller->claim = (struct claim){ .dir = RUNDIR_NONE };
	caller->claim.dir.fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	run_init(&caller->run, &caller->claim);
	caller->run.socket = pair[0];
	caller->shim = pair[1];
	caller->handle = (struct resoluto_handle){ .id = "run-hints", .state = &caller->run };
}

static void caller_done(struct caller *caller)
{
	fd_close(&caller->shim);
	run_end(&caller->run);
	rundir_done(&caller->claim.dir);
	resoluto_runtime_close(caller->runtime);
}

static void shim_says(struct caller *caller, uint8_t type, uint32_t value)
{
	CLEANUP(buf_done) struct buf frame = BUF_INIT(FRAME_MAX);

	CHECK((type == FRAME_CREDIT ? frame_add_u32(&frame, type, 0, value)
	                            : frame_add(&frame, type, 0, 0, NULL, 0)) == 0);
	CHECK(write(caller->shim, frame.data, frame.len) == (ssize_t) frame.len);
}

static bool wait_returns_early(struct caller *caller, int timeout_ms)
{
	const uint64_t start = clock_mono_ms();

	CHECK(caller->runtime->ops->wait(caller->runtime, &caller->handle, -1, timeout_ms, NULL) ==
	      0);
	return clock_mono_ms() - start < (uint64_t) timeout_ms;
}

/* A chunk came after the caller had looked for one, and the status took its hint in. */
static void a_hint_heard_by_the_status_still_wakes(void)
{
	struct caller caller;
	struct resoluto_status status;

	caller_open(&caller);
	shim_says(&caller, FRAME_NEWS, 0);
	CHECK(caller.runtime->ops->status(caller.runtime, &caller.handle, &status, NULL) == 0);
	CHECK(wait_returns_early(&caller, LONG_MS));
	CHECK(!wait_returns_early(&caller, 1));
	caller_done(&caller);
}

static void a_hint_heard_while_stdin_is_sent_still_wakes(void)
{
	struct caller caller;

	caller_open(&caller);
	/* Nothing is taken before there is a guest: it may have to be booted once more. */
	CHECK(caller.runtime->ops->send_stdin(caller.runtime, &caller.handle, "x", 1, NULL) == 0);
	shim_says(&caller, FRAME_CREDIT, 1);
	shim_says(&caller, FRAME_NEWS, 0);
	CHECK(caller.runtime->ops->send_stdin(caller.runtime, &caller.handle, "x", 1, NULL) == 1);
	CHECK(wait_returns_early(&caller, LONG_MS));
	CHECK(!wait_returns_early(&caller, 1));
	caller_done(&caller);
}

/* One that wait itself took in has done its work. */
static void a_hint_wakes_once(void)
{
	struct caller caller;

	caller_open(&caller);
	shim_says(&caller, FRAME_NEWS, 0);
	CHECK(wait_returns_early(&caller, LONG_MS));
	CHECK(!wait_returns_early(&caller, 1));
	caller_done(&caller);
}

/* A guest's port with more to answer than the port takes at once, and a caller that is gone. */
static struct shim *shim_with_port(int *ret_guest)
{
	struct shim *shim = calloc(1, sizeof(*shim));
	int pair[2];

	CHECK(shim && loop_new(&shim->loop) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	channel_init(&shim->conduit, pair[0], shim_conduit_event, shim);
	channel_init(&shim->control, -1, shim_control_event, shim);
	channel_init(&shim->caller, -1, shim_caller_event, shim);
	shim->caller.has_ended = shim->control.has_ended = true;
	shim->qemu = PROC_NONE;
	for (int i = 0; i < DEMUX_PUTS_MAX; i++)
		shim->store.writers[i] = LOCAL_WRITER_NONE;
	shim->store.limits = quota_limits(NULL);
	shim->store.room = UINT64_MAX;
	shim->store.prefix_fd = -1; /* so each object is refused */
	CHECK(channel_watch(&shim->conduit, shim->loop) == 0);
	*ret_guest = pair[1];
	return shim;
}

static void shim_done_with(struct shim *shim, int guest)
{
	channel_done(&shim->conduit);
	channel_done(&shim->control);
	channel_done(&shim->caller);
	loop_free(&shim->loop);
	fd_close(&guest);
	free(shim);
}

static void guest_puts_manifest(struct shim *shim)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(DEMUX_MANIFEST_MAX);
	CLEANUP(buf_done) struct buf head = BUF_INIT(64);
	struct buf *in = &shim->conduit.in;

	CHECK(manifest_write(&text, 0) == 0);
	CHECK(buf_add(&head, "\xff\xff\xff\xff\xff\xff\xff\xff", 8) == 0 &&
	      buf_add_str(&head, KEY_MANIFEST) == 0);
	CHECK(frame_add_u32(in, FRAME_HELLO, 0, FRAME_VERSION) == 0 &&
	      frame_add(in, FRAME_PUT_BEGIN, 0, 1, head.data, head.len) == 0 &&
	      frame_add(in, FRAME_PUT_DATA, 0, 1, text.data, text.len) == 0 &&
	      frame_add_u32(in, FRAME_PUT_END, 1, crc32c(0, text.data, text.len)) == 0);
}

/* Its machine is gone by then, so nobody could send it again: no answer but the end, with the store's reason. */
static void a_manifest_without_a_place_ends_the_run(void)
{
	for (int blocked = 0; blocked < 2; blocked++) {
		char dir[sizeof(state_dir) + sizeof("/prefix-0")];
		int guest;
		struct shim *shim = shim_with_port(&guest);

		snprintf(dir, sizeof(dir), "%s/prefix-%d", state_dir, blocked);
		CHECK(mkdir(dir, 0700) == 0);
		shim->store.prefix_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* A directory where the file should be. */
		CHECK(!blocked || mkdirat(shim->store.prefix_fd, KEY_MANIFEST, 0700) == 0);
		guest_puts_manifest(shim);
		CHECK(shim_conduit_event(&shim->conduit.watch, 0) == 0);
		CHECK(shim->is_stopping && shim->ending.has_manifest == !blocked);
		CHECK(shim->ending.stop == (blocked ? REASON_STORE_FAILED : REASON_NONE));
		fd_close(&shim->store.prefix_fd);
		shim_done_with(shim, guest);
	}
}

static void guest_says_all(struct shim *shim)
{
	struct buf *in = &shim->conduit.in;

	CHECK(frame_add_u32(in, FRAME_HELLO, 0, FRAME_VERSION) == 0);
	for (uint32_t i = 1; i <= OBJECTS; i++)
		CHECK(frame_add(in, FRAME_PUT_BEGIN, 0, i,
		                "\xff\xff\xff\xff\xff\xff\xff\xff_canary_ok", 18) == 0);
}

/* Emptied by one flush, a port has nothing left that would wake the shim for the frames it had put off. */
static void frames_put_off_for_a_full_port_are_taken(void)
{
	int guest;
	struct shim *shim = shim_with_port(&guest);

	guest_says_all(shim);
	CHECK(shim_conduit_event(&shim->conduit.watch, 0) == 0);
	CHECK(shim->demux.last_stream == OBJECTS && shim->conduit.in.len == 0);
	CHECK(!shim->is_stopping);
	shim_done_with(shim, guest);
}

/* As much as is there, thrown away; how much that was. */
static size_t drain(int fd)
{
	static char bytes[65536];
	size_t total = 0;
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		total += (size_t) n;
	return total;
}

/* A guest that reads slowly gets a job of any size, and the shim's buffer stays as small as ever. */
static void a_large_job_waits_for_a_slow_guest(void)
{
	int guest, pair[2];
	struct shim *shim = shim_with_port(&guest);
	size_t got = 0;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	shim->control.watch.fd = pair[0];
	shim->control.has_ended = false;
	CHECK(channel_watch(&shim->control, shim->loop) == 0);
	CHECK(dup2(memfd_create("job", MFD_CLOEXEC), SHIM_FD_JOB) == SHIM_FD_JOB);
	shim->job_size = FRAME_JOB_MAX;
	CHECK(ftruncate(SHIM_FD_JOB, FRAME_JOB_MAX) == 0);
	shim->demux.has_hello[DEMUX_CONTROL] = true;
	while (shim->job_sent < shim->job_size || shim->control.out.len > 0) {
		/* Whatever else wakes the shim meanwhile. */
		for (int i = 0; i < 10; i++)
			CHECK(shim_feed_guest(shim) == 0);
		CHECK(shim->control.out.len <= CHANNEL_OUT_FULL + FRAME_MAX);
		got += drain(pair[1]);
	}
	got += drain(pair[1]);
	CHECK(got > FRAME_JOB_MAX && got < FRAME_JOB_MAX + FRAME_JOB_MAX / 1024);
	close(pair[1]);
	close(SHIM_FD_JOB);
	shim_done_with(shim, guest);
}

/* The next frame; false: there is none. */
static bool next_frame(int fd, uint8_t bytes[static FRAME_MAX], struct frame *ret_frame)
{
	size_t used;
	ssize_t n = recv(fd, bytes, FRAME_MAX, MSG_PEEK | MSG_DONTWAIT);

	if (n <= 0)
		return false;
	CHECK(frame_parse(bytes, (size_t) n, ret_frame, &used) == 0);
	CHECK(recv(fd, bytes, used, 0) == (ssize_t) used);
	return true;
}

/* However often a guest asks before it reads, one answer tells the time; it cannot fill the shim. */
static void the_time_is_told_to_who_asks(void)
{
	static uint8_t bytes[FRAME_MAX];
	int guest, pair[2];
	struct shim *shim = shim_with_port(&guest);
	uint64_t raw_ns = clock_raw_ns();
	struct frame_clock clock;
	struct frame frame;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	shim->control.watch.fd = pair[0];
	shim->control.has_ended = false;
	CHECK(channel_watch(&shim->control, shim->loop) == 0);
	shim->demux.has_hello[DEMUX_CONTROL] = shim->has_greeted = true;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 1000; i++)
			CHECK(frame_add(&shim->control.in, FRAME_CLOCK, 0, 0, NULL, 0) == 0);
		CHECK(shim_control_event(&shim->control.watch, 0) == 0);
		CHECK(next_frame(pair[1], bytes, &frame) && frame.type == FRAME_CLOCK);
		CHECK(frame_get_clock(&frame, &clock) == 0);
		CHECK(clock.raw_ns >= raw_ns && clock.raw_ns <= clock_raw_ns());
		CHECK(clock.wall_ns <= clock_wall_ns());
		raw_ns = clock.raw_ns;
		CHECK(!next_frame(pair[1], bytes, &frame));
	}
	close(pair[1]);
	shim_done_with(shim, guest);
}

/* Before anything else takes their numbers. */
static void take_places(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int high = fcntl(fd, F_DUPFD_CLOEXEC, SHIM_FD_END);

	close(fd);
	CHECK(dup2(high, SHIM_FD_RUN) == SHIM_FD_RUN);
	CHECK(dup2(high, SHIM_FD_PREFIX) == SHIM_FD_PREFIX);
	close(high);
}

/* A shim with a caller, whose run has this directory for everything; *ret_caller is the caller's end. */
static struct shim *shim_with_caller(const char *dir, int *ret_caller, int *ret_guest)
{
	struct shim *shim;
	int pair[2];

	CHECK(mkdir(dir, 0700) == 0);
	take_places(dir);
	shim = shim_with_port(ret_guest);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	channel_init(&shim->caller, pair[0], shim_caller_event, shim);
	CHECK(channel_watch(&shim->caller, shim->loop) == 0);
	shim->store.prefix_fd = SHIM_FD_PREFIX;
	shim->config.drops_objects = shim->store.is_lazy = true;
	shim->console_ring = (struct ring){ .bytes = shim->console_bytes, .size = CONSOLE_RING };
	shim->emulator_ring = (struct ring){ .bytes = shim->emulator_bytes, .size = EMULATOR_RING };
	*ret_caller = pair[1];
	return shim;
}

static void caller_says(struct shim *shim, int caller, uint8_t type)
{
	CLEANUP(buf_done) struct buf frame = BUF_INIT(FRAME_MAX);

	CHECK(frame_add(&frame, type, 0, 0, NULL, 0) == 0);
	CHECK(write(caller, frame.data, frame.len) == (ssize_t) frame.len);
	CHECK(shim_caller_event(&shim->caller.watch, 0) == 0);
}

static bool is_in(const char *dir, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void shim_with_caller_done(struct shim *shim, const char *dir, int caller, int guest)
{
	store_done(&shim->store);
	close(caller);
	close(SHIM_FD_RUN);
	close(SHIM_FD_PREFIX);
	shim_done_with(shim, guest);
	CHECK(remove_tree_at(AT_FDCWD, dir) == 0);
}

enum fate { IS_DROPPED, IS_LET_GO, HAS_NO_CALLER };

/* With a manifest in place; fails: its flush would. */
static void check_end(enum fate fate, bool fails, const char *reason)
{
	char dir[sizeof(state_dir) + sizeof("/ended")];
	int caller, guest;
	struct shim *shim;

	snprintf(dir, sizeof(dir), "%s/ended", state_dir);
	shim = shim_with_caller(dir, &caller, &guest);
	guest_puts_manifest(shim);
	CHECK(shim_conduit_event(&shim->conduit.watch, 0) == 0);
	CHECK(shim->ending.has_manifest && shim->store.unflushed == 1);
	if (fails)
		fd_close(&shim->store.kept[0]);
	if (fate == HAS_NO_CALLER) {
		CHECK(shutdown(caller, SHUT_RDWR) == 0);
		CHECK(shim_caller_event(&shim->caller.watch, 0) == 0);
	} else {
		caller_says(shim, caller, fate == IS_DROPPED ? FRAME_DESTROY : FRAME_DETACH);
	}
	shim_end(shim);
	CHECK_STR(shim->state.reason, reason);
	CHECK(is_in(dir, KEY_MANIFEST) == !*reason && is_in(dir, "state.json"));
	CHECK((shim->state.phase == RESOLUTO_PHASE_SUCCEEDED) == !*reason);
	/* What is dropped nobody flushes. */
	CHECK(shim->store.unflushed == (fate == IS_DROPPED || fails));
	shim_with_caller_done(shim, dir, caller, guest);
}

/* What was to be dropped is somebody's now: on the disk, or not complete. */
static void what_stays_is_flushed_at_the_end(void)
{
	check_end(IS_DROPPED, true, "");
	check_end(IS_DROPPED, false, "");
	check_end(IS_LET_GO, false, "");
	check_end(IS_LET_GO, true, "store-failed");
	check_end(HAS_NO_CALLER, false, "");
	check_end(HAS_NO_CALLER, true, "store-failed");
}

static void a_boot_does_not_last_for_ever(void)
{
	struct shim *shim = calloc(1, sizeof(*shim));
	const uint64_t now = clock_mono_ms();

	CHECK(shim != NULL);
	shim->config.boot_limit_ms = 300 * 1000;
	CHECK(loop_new(&shim->loop) == 0 && shim_arm_timers(shim) == 0);
	shim->qemu = PROC_NONE;
	CHECK(shim->boot_timer.at_ms >= now + 300 * 1000);
	CHECK(shim->boot_timer.at_ms < now + 600 * 1000);
	shim->ending.has_hello = true;
	CHECK(shim->boot_timer.fn(&shim->boot_timer) == 0 && !shim->is_stopping);
	shim->ending.has_hello = false;
	CHECK(shim->boot_timer.fn(&shim->boot_timer) == 0 && shim->is_stopping);
	CHECK(shim->ending.stop == REASON_BOOT_FAILED);
	loop_free(&shim->loop);
	free(shim);
}

static int make_sized(const struct resoluto_microvm_options *options)
{
	struct resoluto_runtime *runtime = NULL;
	int r = resoluto_runtime_microvm_new(options, &runtime, NULL);

	resoluto_runtime_close(runtime);
	return r;
}

static void options_may_be_older_or_newer(void)
{
	struct {
		struct resoluto_microvm_options known;
		long unknown;
	} newer = { .known = { .struct_size = sizeof(newer),
		               .state_dir = state_dir,
		               .qemu = "/bin/true",
		               .shim = "/bin/true" } };

	CHECK(make_sized(&newer.known) == 0);
	newer.unknown = 1;
	CHECK(make_sized(&newer.known) == -EINVAL);
	newer.known.struct_size = 0;
	CHECK(make_sized(&newer.known) == -EINVAL);
	/* The environment names the shim, then. */
	setenv("RESOLUTO_LIBEXEC_DIR", state_dir, 1);
	newer.known.struct_size = offsetof(struct resoluto_microvm_options, shim);
	CHECK(make_sized(&newer.known) == -ENOENT);
	newer.known.struct_size = sizeof(newer.known);
	CHECK(make_sized(&newer.known) == 0);
	unsetenv("RESOLUTO_LIBEXEC_DIR");
}

int main(void)
{
	char config[sizeof(state_dir) + sizeof("/local.env")];

	CHECK(mkdtemp(state_dir));
	/* Not that of the machine. */
	snprintf(config, sizeof(config), "%s/local.env", state_dir);
	CHECK(replace_file_at(AT_FDCWD, config, "", 0, 0600, NULL) == 0);
	CHECK(setenv("RESOLUTO_LOCAL_ENV", config, 1) == 0);
	RUN(options_may_be_older_or_newer);
	RUN(a_hint_heard_by_the_status_still_wakes);
	RUN(a_hint_heard_while_stdin_is_sent_still_wakes);
	RUN(a_hint_wakes_once);
	RUN(a_boot_does_not_last_for_ever);
	RUN(a_manifest_without_a_place_ends_the_run);
	RUN(frames_put_off_for_a_full_port_are_taken);
	RUN(a_large_job_waits_for_a_slow_guest);
	RUN(the_time_is_told_to_who_asks);
	RUN(what_stays_is_flushed_at_the_end);
	CHECK(remove_tree_at(AT_FDCWD, state_dir) == 0);
	return check_done();
}
