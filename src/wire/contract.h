/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * contract.h - the environment that configures a runner (contract section 3; docs/environment.md).
 *
 * The host puts these into the environment of the sandbox (Kata, Kubernetes) or into the `env` object of
 * the JOB message (microVM); the runner reads them from either place.  The program never sees them.
 */

#define ENV_PREFIX "RESOLUTO_"

#define ENV_WORKLOAD_ARGV "RESOLUTO_WORKLOAD_ARGV" /* JSON array */
#define ENV_WORKSPACE_DIR "RESOLUTO_WORKSPACE_DIR" /* /workspace */
#define ENV_OUTPUT_PATHS "RESOLUTO_OUTPUT_PATHS"   /* JSON array of globs */
#define ENV_SETUP_ARGV "RESOLUTO_SETUP_ARGV"       /* JSON array */
#define ENV_CLEANUP_ARGV "RESOLUTO_CLEANUP_ARGV"   /* JSON array */
#define ENV_RUN_ID "RESOLUTO_RUN_ID"
#define ENV_NODE_ID "RESOLUTO_NODE_ID"
#define ENV_IMAGE_VERSION \
	"RESOLUTO_IMAGE_VERSION" /* guard; only where the image carries the runner */
#define ENV_CANARY_PROBE_HOST "RESOLUTO_CANARY_PROBE_HOST" /* 1.1.1.1 */
#define ENV_CANARY_PROBE_PORT "RESOLUTO_CANARY_PROBE_PORT" /* 80 */
#define ENV_STORE_KIND "RESOLUTO_STORE_KIND"               /* localfs */
#define ENV_STORE_ROOT "RESOLUTO_STORE_ROOT"
#define ENV_STORE_PREFIX "RESOLUTO_STORE_PREFIX"
/* beyond the seeds */
#define ENV_HOST_BOOT_IDS \
	"RESOLUTO_HOST_BOOT_IDS"                 /* comma-separated boot ids no sandbox may have */
#define ENV_WORKLOAD_CWD "RESOLUTO_WORKLOAD_CWD" /* absolute; default: the workspace */
#define ENV_WORKLOAD_USER "RESOLUTO_WORKLOAD_USER" /* "uid", "uid:gid", "name", "name:group" */
#define ENV_DRAIN_TIMEOUT_MS "RESOLUTO_DRAIN_TIMEOUT_MS" /* for output of grandchildren */
#define ENV_REDACT "RESOLUTO_REDACT"                     /* all (default) or values */
#define ENV_FLUSH "RESOLUTO_FLUSH"                       /* local (default) or object store */
