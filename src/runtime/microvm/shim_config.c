/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/microvm/json.h"
#include "runtime/microvm/shim_config.h"
#include "wire/keys.h"

uint64_t shim_start_limit_ms(uint64_t boot_limit_ms)
{
	return boot_limit_ms > SHIM_START_MIN_MS ? boot_limit_ms : SHIM_START_MIN_MS;
}

int shim_config_write(struct buf *out, const struct shim_config *config)
{
	CLEANUP(json_done)
	json_t *root = json_pack(
		"{si ss ss ss ss sI sI sI sb sb sb sI sI sI sI ss sI sI s{sI sI sI}}", "schema", 1,
		"run_id", config->run_id, "machine", config->machine, "accel",
		accel_name(config->accel), "qemu", config->qemu, "memory_mib",
		(json_int_t) config->memory_mib, "cpus", (json_int_t) config->cpus, "tsc_khz",
		(json_int_t) config->tsc_khz, "scratch", config->has_scratch, "net",
		config->has_net, "drops_objects", config->drops_objects, "scratch_bytes",
		(json_int_t) config->scratch_bytes, "deadline_ms", (json_int_t) config->deadline_ms,
		"dead_after_ms", (json_int_t) config->dead_after_ms, "boot_limit_ms",
		(json_int_t) config->boot_limit_ms, "host_boot_id", config->host_boot_id, "uid",
		(json_int_t) config->uid, "kvm_gid", (json_int_t) config->kvm_gid, "quotas",
		"bytes", (json_int_t) config->quotas.bytes, "objects",
		(json_int_t) config->quotas.objects, "archive_bytes",
		(json_int_t) config->quotas.archive_bytes);

	return root ? json_write(out, root) : -EINVAL;
}

static int check(const struct shim_config *config)
{
	if (!key_is_run_id(config->run_id) || !machine_find(config->machine) ||
	    config->accel == ACCEL_COUNT || config->qemu[0] != '/' || config->boot_limit_ms == 0 ||
	    !is_boot_id(config->host_boot_id))
		return -EINVAL;
	return 0;
}

int shim_config_parse(const char *json, size_t len, struct shim_config *ret_config,
                      struct resoluto_err *err)
{
	CLEANUP(json_done) json_t *root = json_loadb(json, len, 0, NULL);
	struct shim_config config = { 0 };
	const char *run_id, *machine, *accel, *qemu, *boot_id;
	json_int_t memory, cpus, tsc, scratch_bytes, deadline, dead_after, boot_limit, uid, gid;
	json_int_t bytes, objects, archive_bytes;
	int schema, scratch, net, drops;

	if (!root ||
	    json_unpack(root, "{si ss ss ss ss sI sI sI sb sb sb sI sI sI sI ss sI sI s{sI sI sI}}",
	                "schema", &schema, "run_id", &run_id, "machine", &machine, "accel", &accel,
	                "qemu", &qemu, "memory_mib", &memory, "cpus", &cpus, "tsc_khz", &tsc,
	                "scratch", &scratch, "net", &net, "drops_objects", &drops, "scratch_bytes",
	                &scratch_bytes, "deadline_ms", &deadline, "dead_after_ms", &dead_after,
	                "boot_limit_ms", &boot_limit, "host_boot_id", &boot_id, "uid", &uid,
	                "kvm_gid", &gid, "quotas", "bytes", &bytes, "objects", &objects,
	                "archive_bytes", &archive_bytes) < 0 ||
	    schema != 1)
		return resoluto_fail(err, -EINVAL,
		                     "the shim's configuration is not of this version");
	config.accel = accel_from_name(accel);
	config.memory_mib = (uint32_t) memory;
	config.cpus = (uint32_t) cpus;
	config.tsc_khz = (uint32_t) tsc;
	config.has_scratch = scratch != 0;
	config.has_net = net != 0;
	config.drops_objects = drops != 0;
	config.scratch_bytes = (uint64_t) scratch_bytes;
	config.deadline_ms = (uint64_t) deadline;
	config.dead_after_ms = (uint64_t) dead_after;
	config.boot_limit_ms = (uint64_t) boot_limit;
	config.uid = (uint32_t) uid;
	config.kvm_gid = (uint32_t) gid;
	config.quotas.bytes = (uint64_t) bytes;
	config.quotas.objects = (uint64_t) objects;
	config.quotas.archive_bytes = (uint64_t) archive_bytes;
	if (json_copy_text(config.run_id, sizeof(config.run_id), run_id) < 0 ||
	    json_copy_text(config.machine, sizeof(config.machine), machine) < 0 ||
	    json_copy_text(config.qemu, sizeof(config.qemu), qemu) < 0 ||
	    json_copy_text(config.host_boot_id, sizeof(config.host_boot_id), boot_id) < 0 ||
	    check(&config) < 0)
		return resoluto_fail(err, -EINVAL, "the shim's configuration has a wrong value");
	*ret_config = config;
	return 0;
}
