/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "guest/identity.h"

static bool is_boot_id(const char *text, size_t len)
{
	if (len != BOOT_ID_SIZE - 1)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (is_dash ? text[i] != '-'
		            : !text[i] || !strchr("0123456789abcdefABCDEF", text[i]))
			return false;
	}
	return true;
}

enum reason identity_judge(const char *guest_boot_id, const char *host_boot_ids)
{
	const char *at = host_boot_ids;

	if (!at || !*at || !is_boot_id(guest_boot_id, strlen(guest_boot_id)))
		return REASON_OWN_KERNEL_UNPROVEN;
	for (;;) {
		size_t len;

		at += strspn(at, " ");
		len = strcspn(at, ", ");
		/* A list that is damaged proves nothing about the rest of it. */
		if (!is_boot_id(at, len))
			return REASON_OWN_KERNEL_UNPROVEN;
		if (strncasecmp(at, guest_boot_id, len) == 0)
			return REASON_SHARED_KERNEL;
		at += len;
		at += strspn(at, " ");
		if (!*at)
			return REASON_NONE;
		if (*at++ != ',')
			return REASON_OWN_KERNEL_UNPROVEN;
	}
}

void identity_read(char ret_boot_id[BOOT_ID_SIZE])
{
	CLEANUP(fd_close) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read_up_to(fd, ret_boot_id, BOOT_ID_SIZE - 1);

	ret_boot_id[n > 0 ? n : 0] = '\0';
	if (!is_boot_id(ret_boot_id, strlen(ret_boot_id)))
		ret_boot_id[0] = '\0';
}
