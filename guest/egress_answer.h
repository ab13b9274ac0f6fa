/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * egress_answer.h - what a question about a name is answered.  Listeners are bound before an answer names their
 * address; what is refused is told to the gateway, once a name.
 */

#include "guest/egress_service.h"

enum { EGRESS_ANSWER_MAX = 1232 }; /* bytes */

/* Returns the length of the answer; 0: there is none to give, since it was no question. */
size_t egress_dns_answer(struct egress_service *service, const uint8_t *query, size_t len,
                         bool is_tcp, uint8_t ret_answer[EGRESS_ANSWER_MAX]);
