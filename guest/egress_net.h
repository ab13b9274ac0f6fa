/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * egress_net.h - the made-up addresses are this machine's own: routes and addresses on lo.
 */

#include "resoluto/err.h"

/*
 * Bring lo up; 198.18.0.1/15 and 2001:2::1 become addresses of it, and all of their ranges local.  A kernel
 * without IPv6 has the first alone.  Ports below 1024 are everybody's.
 */
int egress_net_set_up(struct resoluto_err *err);
