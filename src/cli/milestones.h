/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* milestones.h - what reserved options and commands come with; one wording for all tables. */

#define LATER_STORES "object stores and secrets"
#define LATER_KUBERNETES "the Kubernetes backend"
#define LATER_KATA "Kata and image builds"
#define LATER_WARM "warm starts"
