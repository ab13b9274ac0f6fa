/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_end.c - an init in the runner's place, root in a real guest: it keeps the protocol up to STARTED and then ends its
 * machine as the program's argument list says.
 *
 *	restart | power-off | halt   by reboot(2)
 *	exit                         as PID 1 must not
 *	eat                          all memory there is
 *	fault                        by a kernel of two instructions, through kexec
 *	forge TEXT WORD              TEXT on the console first
 *	flood WORD                   3000 lines on the console first
 *	verdict WORD                 result and manifest first
 *
 * Before STARTED it writes a line on the console, to be found there whatever comes.
 * A file /before-hello in the initramfs holds a word that is done instead, before anything is said; "hang" is one too.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "guest/channel.h"
#include "guest/identity.h"
#include "guest/init.h"
#include "guest/ports.h"

enum {
	FLOOD_LINES = 3000,
	EAT_BYTES = 1 << 20,
	FAULT_AT = 16 << 20, /* where the two instructions go; a page of memory for sure */
	PAGE = 4096,
};

static void die(const char *what)
{
	dprintf(STDERR_FILENO, "guest-end: %s: %s\n", what, strerror(errno));
	(void) reboot(RB_HALT_SYSTEM);
}

/* Touched, so that it is there; PID 1 is the one process that the kernel cannot end for it. */
static void eat(void)
{
	for (;;) {
		void *bytes = mmap(NULL, EAT_BYTES, PROT_READ | PROT_WRITE,
		                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (bytes != MAP_FAILED)
			memset(bytes, 1, EAT_BYTES);
	}
}

/* lidt of an empty table, then int3: no handler, and none for the fault of that, and so on. */
static void fault(void)
{
#if defined(__x86_64__)
	static const unsigned char code[] = { 0x0f, 0x01, 0x1d, 0x01, 0x00, 0x00, 0x00, 0xcc,
		                              0,    0,    0,    0,    0,    0,    0,    0 };
	struct kexec_segment segment = { code, sizeof(code), (void *) FAULT_AT, PAGE };

	if (syscall(SYS_kexec_load, FAULT_AT, 1, &segment, KEXEC_ARCH_X86_64) < 0)
		die("kexec_load");
	(void) syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC,
	               NULL);
#endif
	die("kexec");
}

/* Until all of it is out: a kernel that panics does not wait for its terminal. */
static void flood(void)
{
	for (int i = 0; i < FLOOD_LINES; i++)
		dprintf(STDERR_FILENO, "line %d of the flood of lines\n", i);
	(void) tcdrain(STDERR_FILENO);
}

static void forge(const char *text)
{
	dprintf(STDERR_FILENO, "%s\n", text ? text : "");
	(void) tcdrain(STDERR_FILENO);
}

/* Stored before anything else goes on. */
static int store_object(struct ship *ship, const char *key, const void *bytes, size_t len,
                        struct resoluto_err *err)
{
	uint32_t put;
	int r = ship_send(ship, key, bytes, len, &put, err);

	return r < 0 ? r : ship_settle(ship, key, bytes, len, put, err);
}

static int give_verdict(struct channel *channel, struct resoluto_err *err)
{
	static const char result[] =
		"{\"node_id\":\"run\",\"status\":\"success\",\"exit_code\":0,\"output_archive\":"
		"null,\"ran\":true}";
	static const char manifest[] = "{\"total_chunks\": 0}";
	int r = store_object(&channel->ship, "result.json", result, strlen(result), err);

	return r < 0 ? r
	             : store_object(&channel->ship, "_manifest.json", manifest, strlen(manifest),
	                            err);
}

static void end_as(struct channel *channel, const json_t *words, size_t at)
{
	const char *word = json_string_value(json_array_get(words, at));
	struct resoluto_err err = { 0 };

	if (!word)
		return die("no such word");
	if (strcmp(word, "restart") == 0)
		(void) reboot(RB_AUTOBOOT);
	else if (strcmp(word, "power-off") == 0)
		(void) reboot(RB_POWER_OFF);
	else if (strcmp(word, "halt") == 0)
		(void) reboot(RB_HALT_SYSTEM);
	else if (strcmp(word, "exit") == 0)
		exit(0);
	else if (strcmp(word, "eat") == 0)
		eat();
	else if (strcmp(word, "fault") == 0)
		fault();
	else if (strcmp(word, "hang") == 0)
		for (;;)
			pause();
	else if (strcmp(word, "forge") == 0)
		forge(json_string_value(json_array_get(words, ++at)));
	else if (strcmp(word, "flood") == 0)
		flood();
	else if (strcmp(word, "verdict") == 0 && give_verdict(channel, &err) < 0)
		return die(err.text);
	end_as(channel, words, at + 1);
}

static json_t *words_before_hello(void)
{
	int fd = open("/before-hello", O_RDONLY | O_CLOEXEC);
	char word[32] = "";

	if (fd < 0)
		return NULL;
	if (read(fd, word, sizeof(word) - 1) <= 0)
		die("/before-hello is empty");
	(void) close(fd);
	return json_pack("[s]", word);
}

static int open_channel(struct channel *channel, struct resoluto_err *err)
{
	int control = port_open("control", err);
	int conduit = control < 0 ? control : port_open("conduit", err);

	if (conduit < 0)
		return conduit;
	channel_init(channel, control, conduit);
	return channel_say_hello(channel, err);
}

static json_t *await_words(struct channel *channel, struct resoluto_err *err)
{
	char boot_id[BOOT_ID_SIZE];
	const char *argv;
	json_t *job;

	if (open_channel(channel, err) < 0 || channel_await_job(channel, err) < 0)
		return NULL;
	job = json_loadb(channel->job.data, channel->job.len, 0, NULL);
	argv = json_string_value(
		json_object_get(json_object_get(job, "env"), "RESOLUTO_WORKLOAD_ARGV"));
	identity_read(boot_id);
	forge("guest_end is here");
	if (!argv || channel_send_started(channel, boot_id, err) < 0)
		return NULL;
	return json_loads(argv, 0, NULL);
}

int main(void)
{
	struct resoluto_err err = { 0 };
	struct channel channel;
	json_t *words;

	if (getpid() != 1)
		return 2;
	if (init_mount_early(&err) < 0 || init_load_modules(&err) < 0)
		die(err.text);
	words = words_before_hello();
	if (!words)
		words = await_words(&channel, &err);
	if (!words)
		die(err.text);
	end_as(&channel, words, 0);
	return 1;
}
