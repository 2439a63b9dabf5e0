//! The lines of a gateway's counters, as JSON.

use crate::sp_settings::SpCounts;
use scps_gateway::{Account, PairId, PerSide, Report, Side};
use scps_io::{cpu_time, GatewayLoop};
use scps_types::Instant;
use serde::Serialize;

#[derive(Serialize)]
struct AccountLine {
    received: u64,
    acknowledged: u64,
    delivered: u64,
    buffered: u64,
    lost: u64,
}

impl From<Account> for AccountLine {
    fn from(account: Account) -> Self {
        let Account { received, acknowledged, delivered, buffered, lost, .. } = account;
        AccountLine { received, acknowledged, delivered, buffered, lost }
    }
}

#[derive(Serialize)]
pub(super) struct ConnectionLine {
    event: &'static str,
    t_s: f64,
    connection: u64,
    #[serde(flatten)]
    ended: Option<Ended>,
    from_lan: AccountLine,
    from_wan: AccountLine,
}

/// What is known of a connection that is over.
#[derive(Serialize)]
struct Ended {
    asked_by: &'static str,
    client: String,
    server: String,
    lasted_s: f64,
    end: String,
}

#[derive(Serialize)]
struct PassedLine {
    packets: u64,
    octets: u64,
    dropped: u64,
    ipv6: u64,
    no_ip: u64,
}

#[derive(Serialize)]
struct SideLine {
    sent: u64,
    received: u64,
    refused: u64,
    resends: u64,
    /// Paths on which long packets vanish without a word.
    black_holes: u64,
    passed: PassedLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    sp: Option<SpCounts>,
}

#[derive(Serialize)]
pub(super) struct CountersLine {
    event: &'static str,
    t_s: f64,
    open: u64,
    begun: u64,
    finished: u64,
    broken: u64,
    full: u64,
    crowded: u64,
    unconnectable: u64,
    /// Of all connections, those that are open included.
    from_lan: AccountLine,
    from_wan: AccountLine,
    /// received = delivered + buffered + lost, in both directions.
    closes: bool,
    lan: SideLine,
    wan: SideLine,
    allocated_bytes: usize,
    cpu_s: f64,
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

pub(super) fn ended(now: Instant, report: &Report) -> ConnectionLine {
    ConnectionLine {
        event: "connection",
        t_s: seconds(now),
        connection: report.pair.as_u64(),
        ended: Some(Ended {
            asked_by: side_name(report.near),
            client: report.client.to_string(),
            server: report.server.to_string(),
            lasted_s: report.ended_at.since(report.began_at).as_secs_f64(),
            end: report.end.to_string(),
        }),
        from_lan: report.from.lan.into(),
        from_wan: report.from.wan.into(),
    }
}

pub(super) fn still_open(now: Instant, id: PairId, accounts: PerSide<Account>) -> ConnectionLine {
    ConnectionLine {
        event: "open",
        t_s: seconds(now),
        connection: id.as_u64(),
        ended: None,
        from_lan: accounts.lan.into(),
        from_wan: accounts.wan.into(),
    }
}

pub(super) fn totals(gateway: &mut GatewayLoop) -> CountersLine {
    let mut sp_of = |side| gateway.protection(side).map(|sp| SpCounts::from(&*sp));
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
        SideLine {
            sent: stats.sent,
            received: stats.received,
            refused: stats.refused,
            resends: engine.endpoint(side).totals().resends,
            black_holes: engine.endpoint(side).signals().black_holes.0,
            passed: PassedLine {
                packets: passed.packets,
                octets: passed.octets,
                dropped: passed.dropped,
                ipv6: passed.ipv6,
                no_ip: passed.no_ip,
            },
            sp: sp.of_mut(side).take(),
        }
    };
    CountersLine {
        event: "counters",
        t_s: seconds(gateway.now()),
        open,
        begun: counters.begun,
        finished: counters.finished,
        broken: counters.broken,
        full: counters.full,
        crowded: counters.crowded,
        unconnectable: counters.unconnectable,
        closes: from.lan.closes() && from.wan.closes(),
        from_lan: from.lan.into(),
        from_wan: from.wan.into(),
        lan: side(Side::Lan),
        wan: side(Side::Wan),
        allocated_bytes: engine.allocated(),
        cpu_s: cpu_time().as_secs_f64(),
    }
}
