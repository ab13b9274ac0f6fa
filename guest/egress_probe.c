/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/egress_probe.h"

enum {
	HEADER = 12,
	RECORD = 10, /* type, class, ttl, length */
	TYPE_A = 1,
	CLASS_IN = 1,
	RCODE_MASK = 0x0f,
	NXDOMAIN = 3,
	IS_ANSWER = 0x80,
	POINTER = 0xc0,
	ANSWER_MAX = 1232,
};

size_t egress_query(const struct egress_name *name, uint8_t ret_query[EGRESS_QUERY_MAX])
{
	static const uint8_t header[HEADER] = {
		EGRESS_PROBE_ID >> 8, EGRESS_PROBE_ID & 0xff, 1, 0, 0, 1
	};
	static const uint8_t tail[] = { 0, 0, TYPE_A, 0, CLASS_IN };
	const char *label = name->text;
	size_t at = HEADER;

	memcpy(ret_query, header, HEADER);
	while (*label) {
		const size_t len = strcspn(label, ".");

		ret_query[at++] = (uint8_t) len;
		memcpy(ret_query + at, label, len);
		at += len;
		label += len + (label[len] == '.');
	}
	memcpy(ret_query + at, tail, sizeof(tail));
	return at + sizeof(tail);
}

int egress_answer(const uint8_t *answer, size_t len, size_t query_len, uint8_t ret_address[4])
{
	const size_t record = query_len + 2; /* behind a pointer to the question's name */

	if (len < HEADER || answer[0] != EGRESS_PROBE_ID >> 8 ||
	    answer[1] != (EGRESS_PROBE_ID & 0xff) || !(answer[2] & IS_ANSWER))
		return -EBADMSG;
	if ((answer[3] & RCODE_MASK) == NXDOMAIN)
		return 0;
	if ((answer[3] & RCODE_MASK) != 0 || (answer[6] | answer[7]) == 0 ||
	    len < record + RECORD + 4 || (answer[query_len] & POINTER) != POINTER)
		return -EBADMSG;
	if (answer[record] != 0 || answer[record + 1] != TYPE_A || answer[record + 8] != 0 ||
	    answer[record + 9] != 4)
		return -EBADMSG;
	memcpy(ret_address, answer + record + RECORD, 4);
	return 1;
}

bool egress_is_probe(const struct egress_name *name)
{
	const size_t len = strlen(name->text), tail = strlen(EGRESS_PROBE_SUFFIX);

	return len > tail && strcmp(name->text + len - tail, EGRESS_PROBE_SUFFIX) == 0;
}

static int ask(int fd, const uint8_t *query, size_t query_len, uint8_t ret_address[4])
{
	struct pollfd answered = { .fd = fd, .events = POLLIN };
	uint8_t answer[ANSWER_MAX];
	ssize_t n;

	if (send(fd, query, query_len, MSG_NOSIGNAL) < 0)
		return -errno;
	if (poll(&answered, 1, EGRESS_PROBE_MS) == 0)
		return -ETIMEDOUT;
	n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	return n < 0 ? -errno : egress_answer(answer, (size_t) n, query_len, ret_address);
}

int egress_probe(const struct egress_name *name, uint8_t ret_address[4])
{
	CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_in server = { .sin_family = AF_INET,
		                            .sin_port = htons(53),
		                            .sin_addr = { htonl(INADDR_LOOPBACK) } };
	uint8_t query[EGRESS_QUERY_MAX];

	if (fd < 0 || connect(fd, (const struct sockaddr *) &server, sizeof(server)) < 0)
		return -errno;
	return ask(fd, query, egress_query(name, query), ret_address);
}
