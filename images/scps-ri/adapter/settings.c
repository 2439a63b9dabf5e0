// SPDX-License-Identifier: Apache-2.0
// The settings of SCPSLAB_OPTIONS, for every program over the reference implementation's SCPS-TP.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "scps.h"
#include "scpstp.h"

#define UNSUPPORTED 127

enum kind { DRIVER, PROTOCOL, WAIT, CLOSE, ROUTE, ROUTE_FLAG, SOCKET, BUFFERS, TRANSPORT, TRANSPORT_SHORT, ON_OFF, CONGESTION };

struct setting {
	const char *word;
	enum kind kind;
	int option;
};

// Words of SCPSLAB_OPTIONS (README.md), which are those of the program scps where it has the same, and what sets them.
static const struct setting settings[] = {
	// Which program this is: the role has seen to it.
	{ "--driver", DRIVER, 0 },
	{ "--idle-us", WAIT, 0 },
	{ "--quiet-passes", WAIT, 0 },
	{ "--close-after-ms", CLOSE, 0 },
	{ "--protocol", PROTOCOL, 0 },
	{ "--rate", ROUTE, SCPS_RATE },
	{ "--mtu", ROUTE, SCPS_MTU },
	{ "--buffer", BUFFERS, 0 },
	{ "--send-buffer", SOCKET, SCPS_SO_SNDBUF },
	{ "--receive-buffer", SOCKET, SCPS_SO_RCVBUF },
	{ "--mss", TRANSPORT_SHORT, SCPSTP_MAXSEG },
	{ "--ack-delay-ms", TRANSPORT, SCPSTP_ACKDELAY },
	{ "--ack-floor-ms", TRANSPORT, SCPSTP_ACKFLOOR },
	{ "--ack-every", TRANSPORT_SHORT, SCPSTP_ACKBEHAVE },
	{ "--rto-min-ms", TRANSPORT, SCPSTP_RTOMIN },
	{ "--snack-delay-ms", TRANSPORT, SCPSTP_SNACK_DELAY },
	{ "--timestamps", ON_OFF, SCPSTP_TIMESTAMP },
	{ "--compression", ON_OFF, SCPSTP_COMPRESS },
	{ "--snack", ON_OFF, SCPSTP_SNACK },
	{ "--bets", ON_OFF, SCPSTP_BETS },
	{ "--nodelay", ON_OFF, SCPSTP_NODELAY },
	{ "--congestion", CONGESTION, 0 },
	{ "--loss", ROUTE_FLAG, 0 },
};

#define SETTINGS (sizeof(settings) / sizeof(*settings))
#define MOST_SETTINGS 64

static struct chosen {
	const struct setting *setting;
	const char *text;
} chosen[MOST_SETTINGS];
static int choices;

extern route *def_route;

static void refuse(const char *word, const char *text)
{
	fprintf(stderr, "SCPSLAB_OPTIONS: found \"%s%s%s\"; expected settings of images/scps-ri/README.md\n", word, text ? " " : "", text ? text : "");
	exit(UNSUPPORTED);
}

static int number(const struct chosen *choice)
{
	char *rest;
	long value = strtol(choice->text, &rest, 10);

	if (*rest || !*choice->text || value < 0 || value > 2000000000)
		refuse(choice->setting->word, choice->text);
	return (int)value;
}

// Which of two or more words a setting has.
static int word_of(const struct chosen *choice, const char *const *words)
{
	int found = 0;

	while (strcmp(choice->text, words[found]))
		if (!words[++found])
			refuse(choice->setting->word, choice->text);
	return found;
}

void read_settings(void)
{
	char *words = strdup(getenv("SCPSLAB_OPTIONS") ? getenv("SCPSLAB_OPTIONS") : "");
	char *word, *text;
	unsigned at;

	for (word = strtok(words, " "); word; word = strtok(NULL, " ")) {
		for (at = 0; at < SETTINGS && strcmp(settings[at].word, word); at++)
			;
		text = strtok(NULL, " ");
		if (at == SETTINGS || !text || choices == MOST_SETTINGS)
			refuse(word, text);
		if (settings[at].kind == WAIT)
			setenv(strcmp(word, "--idle-us") ? "SCPS_RI_QUIET_PASSES" : "SCPS_RI_IDLE_US", text, 1);
		if (settings[at].kind == CLOSE)
			setenv("SCPS_RI_CLOSE_AFTER_MS", text, 1);
		chosen[choices].setting = &settings[at];
		chosen[choices++].text = text;
	}
}

static void set(int socket, int level, int option, const void *value, int bytes, const struct chosen *choice)
{
	if (scps_setsockopt(socket, level, option, (void *)value, bytes) < 0)
		refuse(choice->setting->word, choice->text);
}

static void set_congestion(int socket, const struct chosen *choice)
{
	static const char *const words[] = { "none", "vj", "vegas", NULL };
	int found = word_of(choice, words), is_on = found != 0, one = 1;

	set(socket, PROTO_SCPSTP, SCPSTP_CONGEST, &is_on, sizeof(is_on), choice);
	if (is_on)
		set(socket, PROTO_SCPSTP, found == 1 ? SCPSTP_VJ_CONGEST : SCPSTP_VEGAS_CONGEST, &one, sizeof(one), choice);
}

static void set_loss(const struct chosen *choice)
{
	static const char *const words[] = { "corruption", "congestion", NULL };

	def_route->flags &= ~(RT_ASSUME_CORRUPT | RT_ASSUME_CONGEST);
	def_route->flags |= word_of(choice, words) ? RT_ASSUME_CONGEST : RT_ASSUME_CORRUPT;
}

// What a route has, from its rate to what a loss means, has to be set before there is a connection.
void set_route(void)
{
	int at, value;

	for (at = 0; at < choices; at++)
		if (chosen[at].setting->kind == ROUTE) {
			value = number(&chosen[at]);
			set(route_sock, SCPS_ROUTE, chosen[at].setting->option, &value, sizeof(value), &chosen[at]);
		} else if (chosen[at].setting->kind == ROUTE_FLAG) {
			set_loss(&chosen[at]);
		}
}

void set_socket(int socket)
{
	static const char *const words[] = { "false", "true", NULL };
	short few;
	int at, value;

	for (at = 0; at < choices; at++) {
		const struct setting *setting = chosen[at].setting;

		switch (setting->kind) {
		case SOCKET:
		case TRANSPORT:
			value = number(&chosen[at]);
			set(socket, setting->kind == SOCKET ? SCPS_SOCKET : PROTO_SCPSTP, setting->option, &value, sizeof(value), &chosen[at]);
			break;
		case BUFFERS:
			value = number(&chosen[at]);
			set(socket, SCPS_SOCKET, SCPS_SO_SNDBUF, &value, sizeof(value), &chosen[at]);
			set(socket, SCPS_SOCKET, SCPS_SO_RCVBUF, &value, sizeof(value), &chosen[at]);
			break;
		case PROTOCOL:
			if (number(&chosen[at]) != SCPSTP)
				refuse(setting->word, chosen[at].text);
			break;
		case TRANSPORT_SHORT:
			few = (short)number(&chosen[at]);
			set(socket, PROTO_SCPSTP, setting->option, &few, sizeof(few), &chosen[at]);
			break;
		case ON_OFF:
			value = word_of(&chosen[at], words);
			set(socket, PROTO_SCPSTP, setting->option, &value, sizeof(value), &chosen[at]);
			break;
		case CONGESTION:
			set_congestion(socket, &chosen[at]);
			break;
		default:
			break;
		}
	}
}

