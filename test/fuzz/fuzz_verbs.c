/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fuzz the verbs socket with requests of programs, librdmacm's commands among them, and with
 * descriptors that they pass. Input: records {request, flags, length, bytes}; the bytes change a
 * request that would succeed. At the end no object and no descriptor is left.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>
#include <rte_cycles.h>

#include "../passing.h"
#include "clients.h"
#include "verbs/private.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORD_LEN     3
#define RECORD_RAW     0x01 /* the bytes are the whole request, of any size */
#define RECORD_NULL    0x02 /* passes /dev/null */
#define RECORD_MIRROR  0x04 /* passes the program's own mirror, if there is one */
#define RECORD_SECOND  0x08 /* on the second connection */
#define RECORD_NO_READ 0x10 /* the reply is not read yet */
#define RECORD_TURNS   0x20 /* the worker runs afterwards */
#define RECORD_MEMFD   0x40 /* passes memory that may be shared */
#define RECORD_SELF    0x80 /* passes the program's end of the connection */

#define SESSIONS      2
#define PASSED_MAX    4
#define DESCRIPTORS   1024
#define TURNS         8
#define QUEUE_PAIRS   64
#define REGION_AT     (UINT64_C(0x7000) << 24)
#define REGION_SIZE   65536
#define CM_PORT       7471
#define CM_TIMEOUT_MS 1000
#define END_S         20 /* more than a look at memory may take */
#define CM_SETUP_S    60

static struct engine *e;
static struct verbs_server server;
/* of a program of ours: a connection gets the next one, as that of the last is in TIMEWAIT */
static uint32_t queue_pairs[QUEUE_PAIRS];
static unsigned int next_queue_pair;
static int null_fd, memory_fd;

struct connection {
	int fd;
	int mirror; /* -1: none */
};

/* --- what must not stay --- */

static void
find_descriptors(bool is_open[DESCRIPTORS])
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned long fd;

	fuzz_expect(d != NULL);
	memset(is_open, 0, DESCRIPTORS * sizeof(is_open[0]));
	while ((entry = readdir(d)) != NULL) {
		fd = strtoul(entry->d_name, NULL, 10);
		if (entry->d_name[0] == '.' || fd == (unsigned long)dirfd(d))
			continue;
		fuzz_expect(fd < DESCRIPTORS);
		is_open[fd] = true;
	}
	closedir(d);
}

/* Threads close those that are not in memory. */
static void
wait_for_closing(void)
{
	while (server.num_closing > 0) {
		verbs_closing_reap(&server);
		sched_yield();
	}
}

/* Say which descriptors were opened, or closed, in the meantime. */
static void
print_descriptors(const bool before[DESCRIPTORS], const bool now[DESCRIPTORS])
{
	char path[40], target[256];
	unsigned int fd;
	ssize_t len;

	for (fd = 0; fd < DESCRIPTORS; fd++) {
		if (now[fd] == before[fd])
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%u", fd);
		len = readlink(path, target, sizeof(target));
		fprintf(stderr, "descriptor %u: %.*s\n", fd, len < 0 ? 6 : (int)len,
			len < 0 ? "closed" : target);
	}
}

/* A thread that has looked at a program's memory closes its own soon after it has said so. */
static bool
same_descriptors(const bool before[DESCRIPTORS])
{
	time_t end = time(NULL) + END_S;
	bool now[DESCRIPTORS];

	do {
		find_descriptors(now);
		if (memcmp(now, before, sizeof(now)) == 0)
			return true;
		sched_yield();
	} while (time(NULL) < end);
	print_descriptors(before, now);
	return false;
}

/* --- librdmacm's commands --- */

#define NO_ID UINT16_MAX
#define COMMAND(NAME, type)                                                                        \
	[RDMA_USER_CM_CMD_##                                                                       \
		NAME] = { sizeof(struct rdma_ucm_##type), offsetof(struct rdma_ucm_##type, id) }

static const struct {
	uint16_t size;
	uint16_t id; /* offset of the ID's number */
} cm_commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = { sizeof(struct rdma_ucm_create_id), NO_ID },
	[RDMA_USER_CM_CMD_GET_EVENT] = { sizeof(struct rdma_ucm_get_event), NO_ID },
	COMMAND(DESTROY_ID, destroy_id),
	COMMAND(BIND_IP, bind_ip),
	COMMAND(BIND, bind),
	COMMAND(RESOLVE_IP, resolve_ip),
	COMMAND(RESOLVE_ADDR, resolve_addr),
	COMMAND(RESOLVE_ROUTE, resolve_route),
	COMMAND(QUERY_ROUTE, query),
	COMMAND(QUERY, query),
	COMMAND(CONNECT, connect),
	COMMAND(LISTEN, listen),
	COMMAND(ACCEPT, accept),
	COMMAND(REJECT, reject),
	COMMAND(DISCONNECT, disconnect),
	COMMAND(INIT_QP_ATTR, init_qp_attr),
	COMMAND(SET_OPTION, set_option),
	COMMAND(NOTIFY, notify),
	COMMAND(MIGRATE_ID, migrate_id),
};

/* The address of port 1, for both families of structures. */
static void
cm_fill_address(void *to)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(CM_PORT) };

	in.sin_addr.s_addr = htonl(0xc0000202); /* 192.0.2.2 */
	memcpy(to, &in, sizeof(in));
}

static void
cm_fill_body(void *body, uint32_t command, bool valid)
{
	struct rdma_ucm_conn_param param = { .valid = valid };
	struct rdma_ucm_resolve_addr *resolve = body;
	struct rdma_ucm_bind *bind = body;

	if (command == RDMA_USER_CM_CMD_CONNECT || command == RDMA_USER_CM_CMD_ACCEPT)
		param.qp_num = queue_pairs[next_queue_pair++ % QUEUE_PAIRS];
	switch (command) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		*(struct rdma_ucm_create_id *)body =
			(struct rdma_ucm_create_id){ .uid = 7, .ps = RDMA_PS_TCP };
		break;
	case RDMA_USER_CM_CMD_BIND_IP:
		cm_fill_address(&((struct rdma_ucm_bind_ip *)body)->addr);
		break;
	case RDMA_USER_CM_CMD_BIND:
		bind->addr_size = sizeof(struct sockaddr_in);
		cm_fill_address(&bind->addr);
		break;
	case RDMA_USER_CM_CMD_RESOLVE_IP:
		((struct rdma_ucm_resolve_ip *)body)->timeout_ms = CM_TIMEOUT_MS;
		cm_fill_address(&((struct rdma_ucm_resolve_ip *)body)->dst_addr);
		break;
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		resolve->timeout_ms = CM_TIMEOUT_MS;
		resolve->dst_size = sizeof(struct sockaddr_in);
		cm_fill_address(&resolve->dst_addr);
		break;
	case RDMA_USER_CM_CMD_CONNECT:
		((struct rdma_ucm_connect *)body)->conn_param = param;
		break;
	case RDMA_USER_CM_CMD_LISTEN:
		((struct rdma_ucm_listen *)body)->backlog = 2;
		break;
	case RDMA_USER_CM_CMD_ACCEPT:
		((struct rdma_ucm_accept *)body)->uid = 8;
		((struct rdma_ucm_accept *)body)->conn_param = param;
		break;
	case RDMA_USER_CM_CMD_INIT_QP_ATTR:
		((struct rdma_ucm_init_qp_attr *)body)->qp_state = QPS_INIT;
		break;
	case RDMA_USER_CM_CMD_NOTIFY:
		((struct rdma_ucm_notify *)body)->event = 4; /* COMM_EST */
		break;
	default:
		break;
	}
}

/*
 * The first two bytes choose the command, with parameters of a connection or (0x80) without,
 * channels and ID; others change its structure.
 */
static void
fuzz_cm_command(struct ring_cm_command *c, struct fuzz_bytes *bytes)
{
	uint8_t first = fuzz_next_byte(bytes), where = fuzz_next_byte(bytes);
	uint32_t command = first & 0x7f, id = where >> 4;
	uint64_t body[RING_CM_BYTES / sizeof(uint64_t)] = { 0 };
	struct rdma_ucm_cmd_hdr header = { .cmd = command, .out = RING_CM_BYTES };

	if (command < RTE_DIM(cm_commands)) {
		header.in = cm_commands[command].size;
		cm_fill_body(body, command, !(first & 0x80));
		if (cm_commands[command].id != NO_ID)
			memcpy((uint8_t *)body + cm_commands[command].id, &id, sizeof(id));
	}
	c->channel = where & 3;
	c->from = where >> 2 & 3;
	c->length = (uint32_t)sizeof(header) + header.in;
	fuzz_change(bytes, body, header.in);
	fuzz_change(bytes, &header, sizeof(header));
	fuzz_change(bytes, &c->length, sizeof(c->length));
	memcpy(c->bytes, &header, sizeof(header));
	memcpy(c->bytes + sizeof(header), body, sizeof(c->bytes) - sizeof(header));
}

/* --- requests --- */

static void
template_of(struct ring_request *r, uint32_t code, uint8_t flags)
{
	*r = (struct ring_request){ .code = code };
	switch (code) {
	case RING_HELLO:
	case RING_CM_OPEN:
		r->hello.magic = RING_MAGIC;
		r->hello.major = RING_MAJOR;
		r->hello.features = RING_FEATURES;
		break;
	case RING_MR_REGISTER:
		r->mr.iova = REGION_AT;
		r->mr.addr = flags & RECORD_MEMFD ? 0 : REGION_AT;
		r->mr.length = 4096;
		r->mr.access = MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE;
		break;
	case RING_MW_ALLOC:
		r->mw.type = MEM_MW_TYPE_1;
		break;
	case RING_CQ_CREATE:
		r->cq.cqe = 16;
		r->cq.channel = RING_NONE;
		break;
	case RING_SRQ_CREATE:
		r->srq.max_wr = 16;
		r->srq.max_sge = 1;
		break;
	case RING_QP_CREATE:
		r->qp.caps = (struct ring_caps){ 16, 16, 1, 1, 64 };
		r->qp.srq = RING_NONE;
		break;
	case RING_QP_MODIFY:
		r->attr.mask = QP_ATTR_STATE | QP_ATTRS_INIT;
		r->attr.qp_state = QPS_INIT;
		r->attr.path_mtu = 3;
		break;
	default:
		break;
	}
}

static size_t
size_of(uint32_t code)
{
	static const uint16_t bodies[RING_REQUESTS] = {
		[RING_HELLO] = sizeof(struct ring_hello),
		[RING_PD_FREE] = sizeof(struct ring_slot),
		[RING_MR_REGISTER] = sizeof(struct ring_mr),
		[RING_MR_DEREGISTER] = sizeof(struct ring_slot),
		[RING_CHANNEL_DESTROY] = sizeof(struct ring_slot),
		[RING_CQ_CREATE] = sizeof(struct ring_cq_create),
		[RING_CQ_DESTROY] = sizeof(struct ring_slot),
		[RING_SRQ_CREATE] = sizeof(struct ring_srq_create),
		[RING_SRQ_MODIFY] = sizeof(struct ring_srq_modify),
		[RING_SRQ_DESTROY] = sizeof(struct ring_slot),
		[RING_QP_CREATE] = sizeof(struct ring_qp_create),
		[RING_QP_MODIFY] = sizeof(struct ring_qp_attr),
		[RING_QP_QUERY] = sizeof(struct ring_slot),
		[RING_QP_DESTROY] = sizeof(struct ring_slot),
		[RING_CM_OPEN] = sizeof(struct ring_hello),
		[RING_CM_CHANNEL_CLOSE] = sizeof(struct ring_slot),
		[RING_CM_COMMAND] = sizeof(struct ring_cm_command),
		[RING_MW_ALLOC] = sizeof(struct ring_mw),
		[RING_MW_FREE] = sizeof(struct ring_slot),
		[RING_MR_REGISTER_RANGE] = sizeof(struct ring_mr),
		[RING_SRQ_QUERY] = sizeof(struct ring_slot),
	};

	return offsetof(struct ring_request, hello) + bodies[code];
}

/* @return bytes of the request */
static size_t
make_request(struct ring_request *r, uint32_t code, uint8_t flags, struct fuzz_bytes *bytes)
{
	size_t size = RTE_MIN(bytes->left, sizeof(*r));

	template_of(r, code, flags);
	if (flags & RECORD_RAW) {
		memcpy(r, bytes->at, size);
		return size;
	}
	size = size_of(code);
	if (code == RING_CM_COMMAND)
		fuzz_cm_command(&r->cm, bytes);
	else
		fuzz_change(bytes, &r->hello, size - offsetof(struct ring_request, hello));
	return size;
}

/* --- replies --- */

/* Pages that are only reserved count as a hole. */
static void
write_pages(int fd, off_t at)
{
	static const uint8_t zeros[REGION_SIZE];

	fuzz_expect(pwrite(fd, zeros, sizeof(zeros), at) == (ssize_t)sizeof(zeros));
}

/* Those of HELLO: the second one is the mirror, in which the region's pages are made. */
static void
fuzz_take_descriptors(struct connection *c, const struct cmsghdr *h)
{
	unsigned int n = (unsigned int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int)), i;
	int fds[VERBS_FDS_MAX];

	fuzz_expect(h->cmsg_type == SCM_RIGHTS && n <= VERBS_FDS_MAX);
	memcpy(fds, CMSG_DATA(h), n * sizeof(int));
	for (i = 0; i < n; i++) {
		if (n == RING_HELLO_FDS && i == 1 && c->mirror < 0) {
			c->mirror = fds[i];
			write_pages(c->mirror, (off_t)REGION_AT);
		} else {
			close(fds[i]);
		}
	}
}

/* @return false: the connection is closed */
static bool
read_replies(struct connection *c)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * VERBS_FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct ring_reply reply;
	struct iovec iov = { &reply, sizeof(reply) };
	struct msghdr m;
	ssize_t n;

	for (;;) {
		m = (struct msghdr){
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};
		n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		fuzz_expect(!(m.msg_flags & (MSG_CTRUNC | MSG_TRUNC)));
		fuzz_expect((size_t)n >= offsetof(struct ring_reply, text) && reply.error >= 0);
		if (reply.error != 0)
			fuzz_expect(memchr(reply.text, '\0', sizeof(reply.text)) != NULL);
		if (CMSG_FIRSTHDR(&m) != NULL)
			fuzz_take_descriptors(c, CMSG_FIRSTHDR(&m));
	}
}

/* --- connections --- */

static void
run_server(void)
{
	clients_rest(e);
	event_base_loop(engine_event_base(e), EVLOOP_NONBLOCK);
}

/*
 * Until all sessions have ended. A connection to which its own end was passed ends when that is
 * closed, too, and one that waits for a thread's look at its program's memory after that look.
 */
static void
wait_for_sessions(void)
{
	time_t end = time(NULL) + END_S;

	do {
		wait_for_closing();
		run_server();
		wait_for_closing();
		sched_yield();
	} while (!LIST_EMPTY(&server.sessions) && time(NULL) < end);
}

static void
run_worker(unsigned int turns)
{
	clients_catch_up();
	clients_turns(e, turns);
}

static void
fuzz_connection_open(struct connection *c)
{
	const struct ucred peer = { getpid(), getuid(), getgid() };
	int ends[2];

	fuzz_expect(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	c->fd = ends[0];
	c->mirror = -1;
	verbs_session_create(&server, ends[1], &peer);
}

static void
fuzz_connection_close(struct connection *c)
{
	close(c->fd);
	if (c->mirror >= 0)
		close(c->mirror);
	run_server();
}

static void
one_record(struct connection *c, uint8_t code, uint8_t flags, struct fuzz_bytes *bytes)
{
	struct ring_request request;
	int fds[PASSED_MAX];
	unsigned int num_fds = 0;
	size_t size = make_request(&request, code % RING_REQUESTS, flags, bytes);

	if (flags & RECORD_NULL)
		fds[num_fds++] = null_fd;
	if ((flags & RECORD_MIRROR) && c->mirror >= 0)
		fds[num_fds++] = c->mirror;
	if (flags & RECORD_MEMFD)
		fds[num_fds++] = memory_fd;
	if (flags & RECORD_SELF)
		fds[num_fds++] = c->fd;
	passing_send(c->fd, &request, size, fds, num_fds, MSG_DONTWAIT);
	run_server();
	if (!(flags & RECORD_NO_READ) && !read_replies(c)) {
		fuzz_connection_close(c);
		fuzz_connection_open(c);
	}
	if (flags & RECORD_TURNS)
		run_worker(TURNS);
}

/* --- what is made once: the worker's pipe, queue pairs to be connected, and a neighbour --- */

static void
setup_queue_pairs(void)
{
	struct verbs_client_limits limits = program_limits;
	struct ring_cq_create cq = { .cqe = 16, .channel = RING_NONE };
	struct ring_qp_create create = { .caps = { 1, 1, 1, 1, 0 }, .srq = RING_NONE };
	struct ring_cq_reply cq_made;
	struct ring_queue_reply made;
	struct verbs_client *client;
	struct error err;
	unsigned int i;

	limits.max_qp = QUEUE_PAIRS;
	fuzz_expect(engine_client_create(e, 0, &limits, -1, &client, &err) == 0);
	engine_client_set_owner(client, (uint32_t)getpid(), getuid());
	fuzz_expect(engine_client_pd_alloc(client, &create.pd, &err) == 0);
	fuzz_expect(engine_client_cq_create(client, &cq, &cq_made, &err) == 0);
	create.send_cq = create.recv_cq = cq_made.slot;
	for (i = 0; i < QUEUE_PAIRS; i++) {
		fuzz_expect(engine_client_qp_create(client, &create, &made, &err) == 0);
		queue_pairs[i] = made.number;
	}
}

static bool
setup_command(struct rdmacm_program *p, uint8_t command)
{
	struct ring_cm_command c = { 0 };
	struct fuzz_bytes bytes = { &command, 1 };
	struct ring_cm_reply reply;
	struct error err;

	fuzz_cm_command(&c, &bytes);
	return engine_rdmacm_command(p, &c, &reply, &err) == 0;
}

/* An ID resolves the address of port 1: others then need not wait for it. */
static void
setup_neighbour(void)
{
	uint64_t end = rte_get_tsc_cycles() + CM_SETUP_S * rte_get_tsc_hz();
	struct rdmacm_program *p;
	struct error err;
	uint32_t slot;
	int fd;

	fuzz_expect(engine_rdmacm_open(e, &server.config.cm, getuid(), getpid(), &p, &err) == 0);
	fuzz_expect(engine_rdmacm_channel_open(p, &slot, &fd, &err) == 0);
	fuzz_expect(setup_command(p, RDMA_USER_CM_CMD_CREATE_ID));
	do {
		fuzz_expect(rte_get_tsc_cycles() < end);
		setup_command(p, RDMA_USER_CM_CMD_RESOLVE_IP); /* again, if it took too long */
		run_worker(TURNS);
		run_server();
		setup_command(p, RDMA_USER_CM_CMD_GET_EVENT);
	} while (!setup_command(p, RDMA_USER_CM_CMD_RESOLVE_ROUTE));
	engine_rdmacm_close(p);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	e = clients_engine();
	server.engine = e;
	server.config = verbs_config_default;
	server.config.limits = program_limits;
	server.config.cm = (struct rdmacm_limits){ .max_channels = 3, .max_ids = 6 };
	LIST_INIT(&server.sessions);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	memory_fd = memfd_create("shared", MFD_CLOEXEC);
	fuzz_expect(null_fd >= 0 && memory_fd >= 0);
	write_pages(memory_fd, 0);
	setup_queue_pairs();
	setup_neighbour();
	return 0;
}

/*
 * Descriptors are compared within a run: libFuzzer starts a program between runs, which shows the
 * names of new functions, and keeps its pipes.
 */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool descriptors[DESCRIPTORS];
	unsigned int objects = programs_objects(e), i;
	struct connection c[SESSIONS];
	struct fuzz_bytes record;
	uint8_t code, flags, len;

	find_descriptors(descriptors);
	for (i = 0; i < SESSIONS; i++)
		fuzz_connection_open(&c[i]);
	while (size >= RECORD_LEN) {
		code = data[0];
		flags = data[1];
		len = data[2];
		data += RECORD_LEN;
		size -= RECORD_LEN;
		record = (struct fuzz_bytes){ data, RTE_MIN(len, size) };
		data += record.left;
		size -= record.left;
		one_record(&c[(flags & RECORD_SECOND) != 0], code, flags, &record);
	}
	for (i = 0; i < SESSIONS; i++)
		fuzz_connection_close(&c[i]);
	run_worker(TURNS);
	run_server();
	wait_for_sessions();
	fuzz_expect(LIST_EMPTY(&server.sessions));
	fuzz_expect(programs_objects(e) == objects);
	fuzz_expect(same_descriptors(descriptors));
	return 0;
}
