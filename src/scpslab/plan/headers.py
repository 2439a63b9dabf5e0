"""Bytes that headers and options take of a packet."""

from __future__ import annotations

# RFC 791 §3.1, RFC 9293 §3.1 and RFC 768, without options.
IP_TCP_HEADERS_BYTES, IP_UDP_HEADERS_BYTES = 40, 28
# RFC 7323 §3.2: ten bytes, and two that keep the data where it is fast to read.
TIMESTAMP_BYTES = 12
