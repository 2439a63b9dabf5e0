//! The lines of a gateway's counters, as JSON.

use crate::sp_settings;
use scps_gateway::{Account, PairId, PerSide, Report, Side};
use scps_io::{cpu_time, GatewayLoop};
use scps_wire::Instant;
use serde_json::{json, Value};

fn account(account: Account) -> Value {
    let Account { received, acknowledged, delivered, buffered, lost, .. } = account;
    json!({
        "received": received,
        "acknowledged": acknowledged,
        "delivered": delivered,
        "buffered": buffered,
        "lost": lost,
    })
}

pub(super) fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}

pub(super) fn side_name(side: Side) -> &'static str {
    match side {
        Side::Lan => "lan",
        Side::Wan => "wan",
    }
}

pub(super) fn ended(now: Instant, report: &Report) -> Value {
    json!({
        "event": "connection",
        "t_s": seconds(now),
        "connection": report.pair.as_u64(),
        "asked_by": side_name(report.near),
        "client": report.client.to_string(),
        "server": report.server.to_string(),
        "lasted_s": report.ended_at.since(report.began_at).as_secs_f64(),
        "end": report.end.to_string(),
        "from_lan": account(report.from.lan),
        "from_wan": account(report.from.wan),
    })
}

pub(super) fn still_open(now: Instant, id: PairId, accounts: PerSide<Account>) -> Value {
    json!({
        "event": "open",
        "t_s": seconds(now),
        "connection": id.as_u64(),
        "from_lan": account(accounts.lan),
        "from_wan": account(accounts.wan),
    })
}

pub(super) fn totals(gateway: &mut GatewayLoop) -> Value {
    let mut sp_of = |side| gateway.protection(side).map(|sp| sp_settings::counts(sp));
    let mut sp = PerSide { lan: sp_of(Side::Lan), wan: sp_of(Side::Wan) };
    let engine = gateway.gateway();
    let counters = engine.counters();
    let mut from = counters.from;
    let mut open = 0;
    for accounts in engine.connections().filter_map(|id| engine.account(id)) {
        open += 1;
        for side in Side::BOTH {
            from.of_mut(side).add(accounts.of(side));
        }
    }
    let mut side = |side: Side| {
        let (stats, passed) = (gateway.device_stats(side), gateway.passed(side));
        let mut line = json!({
            "sent": stats.sent,
            "received": stats.received,
            "refused": stats.refused,
            "resends": engine.endpoint(side).totals().resends,
            // Paths on which long packets vanish without a word.
            "black_holes": engine.endpoint(side).signals().black_holes.0,
            "passed": {
                "packets": passed.packets,
                "octets": passed.octets,
                "dropped": passed.dropped,
                "ipv6": passed.ipv6,
                "no_ip": passed.no_ip,
            },
        });
        if let Some(counts) = sp.of_mut(side).take() {
            line["sp"] = counts;
        }
        line
    };
    json!({
        "event": "counters",
        "t_s": seconds(gateway.now()),
        "open": open,
        "begun": counters.begun,
        "finished": counters.finished,
        "broken": counters.broken,
        "full": counters.full,
        "crowded": counters.crowded,
        "unconnectable": counters.unconnectable,
        // Of all connections, those that are open included.
        "from_lan": account(from.lan),
        "from_wan": account(from.wan),
        // received = delivered + buffered + lost, in both directions.
        "closes": from.lan.closes() && from.wan.closes(),
        "lan": side(Side::Lan),
        "wan": side(Side::Wan),
        "allocated_bytes": engine.allocated(),
        "cpu_s": cpu_time().as_secs_f64(),
    })
}
