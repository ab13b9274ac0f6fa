/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "egress/dns.h"

enum {
	HEADER = 12, /* bytes: id, flags, four counts */
	FLAG_QR = 0x8000,
	FLAG_TC = 0x0200,
	FLAG_RD = 0x0100,
	FLAG_RA = 0x0080,
	FLAG_CD = 0x0010,
	OPCODE_SHIFT = 11,
	OPCODE_QUERY = 0,
	LABEL_MAX = 63,
	TYPE_OPT = 41,
	CLASS_IN = 1,
	ANSWER_NAME = 0xc00c, /* a pointer to the question */
};

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t) (at[0] << 8 | at[1]);
}

/* What of the message was not read yet. */
struct rest {
	const uint8_t *at;
	size_t len;
};

static const uint8_t *take(struct rest *rest, size_t len)
{
	const uint8_t *at = rest->at;

	if (len > rest->len)
		return NULL;
	rest->at += len;
	rest->len -= len;
	return at;
}

/* A byte of a label as people see it; one that no host name has, a dot within too, is a '?'. */
static char shown(uint8_t byte)
{
	return byte > ' ' && byte < 0x7f && byte != '.' ? (char) byte : '?';
}

/* The name of the question, without pointers: there is nothing before it to point to. */
static bool read_name(struct rest *rest, struct dns_query *query)
{
	size_t wire = 0, text = 0;

	for (;;) {
		const uint8_t *len = take(rest, 1);
		const uint8_t *label = len && *len <= LABEL_MAX ? take(rest, *len) : NULL;

		if (!label)
			return false;
		wire += 1 + (size_t) *len;
		if (wire > DNS_WIRE_NAME_MAX)
			return false;
		if (*len == 0)
			break;
		if (text > 0)
			query->text[text++] = '.';
		for (size_t i = 0; i < *len; i++)
			query->text[text++] = shown(label[i]);
	}
	if (text == 0)
		query->text[text++] = '.';
	query->text[text] = '\0';
	query->name_reason = egress_name_parse(query->text, text, &query->host);
	return true;
}

static bool read_question(struct rest *rest, struct dns_query *query)
{
	const uint8_t *begin = rest->at, *fields;

	if (!read_name(rest, query))
		return false;
	fields = take(rest, 4);
	if (!fields)
		return false;
	query->type = get16(fields);
	query->class_of = get16(fields + 2);
	query->question_len = (size_t) (rest->at - begin);
	memcpy(query->question, begin, query->question_len);
	return true;
}

/* The only other record that a question may have: OPT, up to the end of the message. */
static int read_edns(struct rest *rest, struct dns_query *query)
{
	const uint8_t *opt = take(rest, 11);

	if (!opt || opt[0] != 0 || get16(opt + 1) != TYPE_OPT || opt[5] != 0 ||
	    get16(opt + 9) != rest->len)
		return DNS_FORMERR;
	query->has_edns = true;
	if (get16(opt + 3) > DNS_UDP_MIN)
		query->udp_size = get16(opt + 3);
	(void) take(rest, rest->len);
	return opt[6] == 0 ? DNS_NOERROR : DNS_BADVERS;
}

int dns_parse(const void *bytes, size_t len, struct dns_query *ret_query)
{
	struct rest rest = { bytes, len };
	const uint8_t *header = take(&rest, HEADER);
	unsigned flags, additional;
	int code = DNS_NOERROR;

	flags = header ? get16(header + 2) : FLAG_QR;
	if (flags & FLAG_QR)
		return -EBADMSG;
	*ret_query = (struct dns_query){
		.id = get16(header),
		.is_recursion_desired = flags & FLAG_RD,
		.is_checking_disabled = flags & FLAG_CD,
		.opcode = flags >> OPCODE_SHIFT & 15,
		.name_reason = EGRESS_NAME_MALFORMED,
		.udp_size = DNS_UDP_MIN,
	};
	if (ret_query->opcode != OPCODE_QUERY)
		return DNS_NOTIMP;
	additional = get16(header + 10);
	if ((flags & FLAG_TC) || get16(header + 4) != 1 || get16(header + 6) != 0 ||
	    get16(header + 8) != 0 || additional > 1 || !read_question(&rest, ret_query))
		return DNS_FORMERR;
	if (additional == 1)
		code = read_edns(&rest, ret_query);
	if (code != DNS_NOERROR)
		return code;
	if (rest.len > 0)
		return DNS_FORMERR;
	return ret_query->class_of == CLASS_IN ? DNS_NOERROR : DNS_NXDOMAIN;
}

static uint8_t *put16(uint8_t *at, unsigned number)
{
	at[0] = (uint8_t) (number >> 8);
	at[1] = (uint8_t) number;
	return at + 2;
}

static int add_header(const struct dns_query *query, unsigned rcode, bool is_cut, size_t answers,
                      struct buf *out)
{
	uint8_t bytes[HEADER], *at = bytes;

	at = put16(at, query->id);
	at = put16(at, FLAG_QR | (unsigned) query->opcode << OPCODE_SHIFT | FLAG_RA |
	                       (query->is_recursion_desired ? FLAG_RD : 0) |
	                       (query->is_checking_disabled ? FLAG_CD : 0) |
	                       (is_cut ? FLAG_TC : 0) | (rcode & 15));
	at = put16(at, query->question_len > 0);
	at = put16(at, (unsigned) answers);
	at = put16(at, 0);
	(void) put16(at, query->has_edns);
	return buf_add(out, bytes, sizeof(bytes));
}

static size_t address_len(const struct dns_address *address)
{
	return address->type == DNS_A ? 4 : 16;
}

enum {
	RECORD_HEADER = 12, /* bytes: pointer, type, class, TTL, length */
	OPT_LEN = 11,       /* bytes */
};

static int add_address(const struct dns_address *address, uint32_t ttl_s, struct buf *out)
{
	uint8_t bytes[RECORD_HEADER + sizeof(address->bytes)], *at = bytes;

	at = put16(at, ANSWER_NAME);
	at = put16(at, address->type);
	at = put16(at, CLASS_IN);
	at = put16(at, ttl_s >> 16);
	at = put16(at, ttl_s & 0xffff);
	at = put16(at, (unsigned) address_len(address));
	memcpy(at, address->bytes, sizeof(address->bytes));
	return buf_add(out, bytes, RECORD_HEADER + address_len(address));
}

static int add_edns(unsigned rcode, struct buf *out)
{
	uint8_t bytes[OPT_LEN] = { 0 };

	(void) put16(bytes + 1, TYPE_OPT);
	(void) put16(bytes + 3, DNS_UDP_MAX);
	bytes[5] = (uint8_t) (rcode >> 4);
	return buf_add(out, bytes, sizeof(bytes));
}

/* How many bytes the answer may have. */
static size_t bound_of(const struct dns_query *query, bool is_udp)
{
	if (!is_udp)
		return DNS_MESSAGE_MAX;
	if (!query->has_edns)
		return DNS_UDP_MIN;
	return query->udp_size < DNS_UDP_MAX ? query->udp_size : DNS_UDP_MAX;
}

/* Of the addresses those that were asked for: how many, and how many bytes. */
static size_t count_addresses(const struct dns_query *query, const struct dns_address *addresses,
                              size_t count, size_t *ret_bytes)
{
	size_t fitting = 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < count; i++) {
		if (addresses[i].type != query->type)
			continue;
		fitting++;
		*ret_bytes += RECORD_HEADER + address_len(&addresses[i]);
	}
	return fitting;
}

int dns_answer(const struct dns_query *query, enum dns_rcode rcode,
               const struct dns_address *addresses, size_t count, uint32_t ttl_s, bool is_udp,
               struct buf *out)
{
	const size_t before = out->len;
	size_t bytes, answers;
	bool is_cut;
	int r;

	if (count > DNS_RECORDS_MAX)
		return -EINVAL;
	if (rcode != DNS_NOERROR || query->question_len == 0)
		count = 0;
	answers = count_addresses(query, addresses, count, &bytes);
	is_cut = HEADER + query->question_len + bytes + (query->has_edns ? OPT_LEN : 0) >
	         bound_of(query, is_udp);
	if (is_cut)
		answers = count = 0;
	r = add_header(query, rcode, is_cut, answers, out);
	if (r == 0)
		r = buf_add(out, query->question, query->question_len);
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (addresses[i].type == query->type)
			r = add_address(&addresses[i], ttl_s, out);
	}
	if (r == 0 && query->has_edns)
		r = add_edns(rcode, out);
	if (r < 0)
		buf_cut(out, before);
	return r;
}
