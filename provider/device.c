/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Devices: how libibverbs finds them, and what they are.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "provider.h"

/* --- attributes --- */

static int
polca_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t size)
{
	const struct ring_hello_reply *h = &context_of(context)->hello;
	const struct ring_limits *l = &h->limits;
	struct ibv_device_attr *a = &attr->orig_attr;

	(void)input;
	memset(attr, 0, size);
	/* programs of an older libibverbs, and ibv_query_device(), have no room for it */
	if (size >= offsetof(struct ibv_device_attr_ex, phys_port_cnt_ex) +
			sizeof(attr->phys_port_cnt_ex))
		attr->phys_port_cnt_ex = 1;
	snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", h->version);
	a->node_guid = a->sys_image_guid = htobe64(h->node_guid);
	a->max_mr_size = l->max_mr_size;
	a->page_size_cap = (uint64_t)sysconf(_SC_PAGESIZE);
	a->vendor_id = 0x001405;
	a->max_qp = (int)l->max_qp;
	a->max_qp_wr = (int)l->max_qp_wr;
	a->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_MGT_EXTENSIONS;
	if (h->features & RING_FEATURE_WINDOWS) {
		a->device_cap_flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
		a->max_mw = (int)(h->max_mw != 0 ? h->max_mw : l->max_mr);
	}
	a->max_sge = a->max_sge_rd = (int)l->max_sge;
	a->max_cq = (int)l->max_cq;
	a->max_cqe = (int)l->max_cqe;
	a->max_mr = (int)l->max_mr;
	a->max_pd = (int)l->max_pd;
	a->max_qp_rd_atom = a->max_qp_init_rd_atom = (int)l->max_rd_atomic;
	a->max_res_rd_atom = a->max_qp_rd_atom * a->max_qp;
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->max_srq = (int)l->max_srq;
	a->max_srq_wr = (int)l->max_srq_wr;
	a->max_srq_sge = (int)l->max_sge;
	a->max_pkeys = 16;
	a->local_ca_ack_delay = 15;
	a->phys_port_cnt = 1;
	return 0;
}

/* The widest of one lane's speeds: programs read a rate here, not a cable. */
static uint8_t
speed_code(uint32_t mbps)
{
	return mbps >= 25000 ? 32 : mbps >= 14000 ? 16 : mbps >= 10000 ? 4 : mbps >= 5000 ? 2 : 1;
}

static int
polca_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *a)
{
	struct ring_request req = { 0 };
	struct ring_reply reply;
	int rc;

	if (port != 1)
		return EINVAL;
	rc = polca_call(context_of(context), RING_QUERY_PORT, &req, 0, &reply, NULL);
	if (rc != 0)
		return rc;
	memset(a, 0, sizeof(*a));
	a->state = (enum ibv_port_state)reply.port.state;
	a->max_mtu = (enum ibv_mtu)reply.port.max_mtu;
	a->active_mtu = (enum ibv_mtu)reply.port.active_mtu;
	a->gid_tbl_len = (int)reply.port.num_gids;
	a->pkey_tbl_len = (uint16_t)reply.port.num_pkeys;
	a->max_msg_sz = 1u << 31;
	a->active_width = 1;
	a->active_speed = speed_code(reply.port.speed_mbps);
	a->phys_state = reply.port.state == IBV_PORT_DOWN ? 3 : 5;
	a->link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

static struct ibv_pd *
polca_alloc_pd(struct ibv_context *context)
{
	struct polca_pd *pd = calloc(1, sizeof(*pd));
	struct ring_request req = { 0 };
	struct ring_reply reply;
	int rc;

	if (pd == NULL)
		return NULL;
	rc = polca_call(context_of(context), RING_PD_ALLOC, &req, 0, &reply, NULL);
	if (rc != 0) {
		free(pd);
		errno = rc;
		return NULL;
	}
	pd->slot = reply.slot.slot;
	return &pd->ibv;
}

static int
polca_dealloc_pd(struct ibv_pd *ibv)
{
	struct polca_pd *pd = (struct polca_pd *)ibv;
	int rc = polca_call_destroy(context_of(ibv->context), RING_PD_FREE, pd->slot);

	if (rc == 0)
		free(pd);
	return rc;
}

/* --- open and close --- */

/* libibverbs closes the command's descriptor and that of the events, if there is one. */
static void
context_free(struct polca_context *c)
{
	pthread_mutex_destroy(&c->socket_lock);
	pthread_mutex_destroy(&c->objects_lock);
	pthread_mutex_destroy(&c->regions_lock);
	verbs_uninit_context(&c->verbs);
	free(c);
}

int polca_close_wait_ms = 10000;

/*
 * Polca lets go of what the program has not destroyed, and closes its end of the connection after
 * that: until then peers read and write the program's memory. If polca hangs, the pages become
 * private nevertheless, as the program may give them another use: what peers write is lost, and
 * they read zeros, until polca has seen the end.
 */
static void
context_end(const struct polca_context *c)
{
	if (c->socket < 0) /* in a forked child */
		return;
	if (!polca_socket_end(c->socket, polca_close_wait_ms))
		fprintf(stderr,
			"polca: %s: closed, but polca has not confirmed it in %d ms: peers may still "
			"be served, from zeros in the place of registered memory\n",
			c->verbs.context.device->name, polca_close_wait_ms);
}

static void
polca_free_context(struct ibv_context *context)
{
	struct polca_context *c = context_of(context);

	death_ignore(c);
	context_end(c);
	regions_return(c);
	death_forget(c);
	if (c->segment != NULL)
		munmap(c->segment, c->hello.geometry.bytes);
	context_free(c);
}

static const struct verbs_context_ops polca_ops = {
	.alloc_mw = polca_alloc_mw,
	.alloc_pd = polca_alloc_pd,
	.bind_mw = polca_bind_mw,
	.create_cq = polca_create_cq,
	.create_cq_ex = polca_create_cq_ex,
	.create_qp = polca_create_qp,
	.create_qp_ex = polca_create_qp_ex,
	.create_srq = polca_create_srq,
	.dealloc_mw = polca_dealloc_mw,
	.dealloc_pd = polca_dealloc_pd,
	.dereg_mr = polca_dereg_mr,
	.destroy_cq = polca_destroy_cq,
	.destroy_qp = polca_destroy_qp,
	.destroy_srq = polca_destroy_srq,
	.free_context = polca_free_context,
	.modify_qp = polca_modify_qp,
	.modify_srq = polca_modify_srq,
	.poll_cq = polca_poll_cq,
	.post_recv = polca_post_recv,
	.post_send = polca_post_send,
	.post_srq_recv = polca_post_srq_recv,
	.query_device_ex = polca_query_device_ex,
	.query_port = polca_query_port,
	.query_qp = polca_query_qp,
	.query_srq = polca_query_srq,
	.reg_mr = polca_reg_mr,
	.req_notify_cq = polca_req_notify_cq,
};

static struct verbs_context *
polca_alloc_context(struct ibv_device *ibv, int cmd_fd, void *private_data)
{
	const struct polca_device *device = (const struct polca_device *)(void *)ibv;
	struct polca_context *c;
	int rc;

	(void)private_data;
	channel_redirect();
	c = _verbs_init_and_alloc_context(ibv, cmd_fd, sizeof(*c), NULL, 0);
	if (c == NULL)
		return NULL;
	pthread_mutex_init(&c->socket_lock, NULL);
	pthread_mutex_init(&c->objects_lock, NULL);
	pthread_mutex_init(&c->regions_lock, NULL);
	c->cmd_fd = cmd_fd;
	/* pages of devices that an earlier polca had must be private again */
	death_notice_all();
	rc = polca_connect(c, device);
	if (rc != 0) {
		fprintf(stderr, "polca: cannot open %s over %s: %s\n", ibv->name, device->socket,
			strerror(rc));
		context_free(c);
		errno = rc;
		return NULL;
	}
	c->verbs.context.num_comp_vectors = 1;
	verbs_set_ops(&c->verbs, &polca_ops);
	contexts_add(c);
	rc = death_watch(c);
	if (rc != 0) {
		polca_free_context(&c->verbs.context);
		errno = rc;
		return NULL;
	}
	return &c->verbs;
}

/* --- discovery --- */

/* The first line of a file of the device's directory. @return false: there is none */
static bool
read_line(const char *dir, const char *file, char *line, size_t size)
{
	char path[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, line, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* Only polca's own tree has these two files. */
static bool
polca_match_device(struct verbs_sysfs_dev *sysfs)
{
	char line[16];

	return read_line(sysfs->ibdev_path, "polca_port", line, sizeof(line));
}

static struct verbs_device *
polca_alloc_device(struct verbs_sysfs_dev *sysfs)
{
	struct polca_device *device = calloc(1, sizeof(*device));
	char port[16];

	if (device == NULL)
		return NULL;
	if (!read_line(sysfs->ibdev_path, "polca_socket", device->socket, sizeof(device->socket)) ||
		!read_line(sysfs->ibdev_path, "polca_port", port, sizeof(port))) {
		free(device);
		return NULL;
	}
	device->port = (uint32_t)strtoul(port, NULL, 10);
	rdmacm_redirect(device->socket);
	return &device->verbs;
}

static void
polca_uninit_device(struct verbs_device *device)
{
	free(device);
}

static const struct verbs_match_ent polca_match_table[] = {
	{ .kind = VERBS_MATCH_SENTINEL },
};

static const struct verbs_device_ops polca_device_ops = {
	.name = "polca",
	.match_min_abi_version = 1,
	.match_max_abi_version = 1,
	.match_table = polca_match_table,
	.match_device = polca_match_device,
	.alloc_device = polca_alloc_device,
	.uninit_device = polca_uninit_device,
	.alloc_context = polca_alloc_context,
};

static void __attribute__((constructor)) polca_provider_load(void)
{
	verbs_register_driver_34(&polca_device_ops);
}
