// SPDX-License-Identifier: Apache-2.0
// Small programs the lab starts often, in one static binary because starting it costs a quarter of a dynamic one in the guest.
#include "labtool.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} TOOLS[] = {
	{ "node", node_main },
	{ "exec", exec_main },
	{ "exec-net", exec_net_main },
	{ "bulk-send", bulk_send_main },
	{ "bulk-recv", bulk_recv_main },
	{ "congestion", congestion_main },
	{ "datagram-sink", datagram_sink_main },
	{ "capture", capture_main },
	{ "record", record_main },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof TOOLS / sizeof TOOLS[0]; i++)
		if (!strcmp(argv[1], TOOLS[i].name))
			return TOOLS[i].run(argc - 1, argv + 1);
	fprintf(stderr, "labtool: expected one of:");
	for (size_t i = 0; i < sizeof TOOLS / sizeof TOOLS[0]; i++)
		fprintf(stderr, " %s", TOOLS[i].name);
	fprintf(stderr, "\n");
	return 2;
}
