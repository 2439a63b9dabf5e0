use super::*;
use crate::settings_file::tests::file;

fn read(text: &str) -> Result<GatewaySettings, CliError> {
    GatewaySettings::of(&file(text), &Overrides::default())
}

fn complaint(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn what_is_not_split_is_named_by_network_and_port() {
    let settings = |list: &str| {
        let text = format!(
            r#"{{"bypass": {list}, "wan": {{"carrier": {{"kind": "udp", "remote": "203.0.113.2:7168"}}, "transport": {{"rate": "2 Mbit/s"}}}}}}"#
        );
        read(&text).map(|settings| settings.config.bypasses).map_err(|error| error.to_string())
    };
    let words: Vec<String> =
        settings(r#"[{"net": "10.2.0.0/24"}, {"ports": "5060-5061"}, {"net": "10.3.0.9/32", "ports": "22"}]"#)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
    assert_eq!(words, ["10.2.0.0/24, any port", "any address, ports 5060 to 5061", "10.3.0.9/32, port 22"]);
    for (list, found) in [
        ("[{}]", "bypass[0]: found neither net nor ports"),
        (r#"[{"ports": "0"}]"#, "bypass[0].ports: found \"0\"; expected a port such as \"22\""),
        (r#"[{"ports": "23-22"}]"#, "ports: found \"23-22\""),
        (r#"[{"net": "10.2.0.1/33"}]"#, "prefix"),
        (r#"[{"port": "22"}]"#, "unknown field `port`"),
    ] {
        let said = settings(list).unwrap_err();
        assert!(said.contains(found), "{list}: {said}");
    }
}

#[test]
fn memory_is_the_machines_or_what_a_group_may_have() {
    let info = "MemTotal:        8000000 kB\nMemFree: 1 kB\n";
    let of = |limits: &[&str]| memory_of(info, limits.iter().map(ToString::to_string));
    assert_eq!(of(&[]), Some(8_192_000_000));
    assert_eq!(of(&["max\n", "536870912\n", "1073741824\n"]), Some(536_870_912));
    assert_eq!(memory_of("", std::iter::empty()), None);
}

#[test]
fn rate_round_trip_and_peer_are_enough() {
    let overrides = Overrides {
        rate: Some("10 Mbit/s".to_owned()),
        rtt_ms: Some(600),
        peer: Some("203.0.113.2:7168".parse().unwrap()),
        far: vec!["10.2.0.0/24".parse().unwrap()],
        sp: None,
    };
    let settings = GatewaySettings::read(None, &overrides).unwrap();
    let (lan, wan) = (&settings.config.lan, &settings.config.wan);
    // 10 Mbit/s for 600 ms are 750,000 octets; twice that.
    assert_eq!((lan.connection.receive_buffer, wan.connection.send_buffer), (1_500_000, 1_500_000));
    assert!(!lan.connection.scps && wan.connection.scps);
    assert_eq!((wan.connection.congestion, wan.route.framing), (Congestion::None, 28));
    assert_eq!((lan.route.mtu, lan.route.rate), (1472, None));
    assert_eq!(wan.route.initial_rto, Duration::from_millis(1800));
    assert!(lan.takes_any && wan.takes_any && settings.config.lan.endpoint.half_open_max == CONNECTIONS);
    let Carrier::Tun(tun) = &settings.carriers.lan else { panic!("{settings:?}") };
    assert_eq!((tun.mtu, &tun.routes[..]), (1472, &[(Ipv4Addr::new(10, 2, 0, 0), 24)][..]));
    assert!(GatewaySettings::read(None, &Overrides::default()).is_err());
}

#[test]
fn a_peer_that_is_the_gateway_itself_is_found() {
    let is_own = |local: &str, remote: &str| is_own(local.parse().unwrap(), remote.parse().unwrap());
    assert!(is_own("0.0.0.0:7168", "127.0.0.1:7168") && is_own("127.0.0.1:7168", "127.0.0.1:7168"));
    // Another program's port, another address of the machine, an address of nobody (RFC 5737).
    assert!(!is_own("0.0.0.0:7168", "127.0.0.1:7169") && !is_own("127.0.0.2:7168", "127.0.0.1:7168"));
    assert!(!is_own("0.0.0.0:7168", "203.0.113.2:7168"));
}

#[test]
fn a_link_that_others_share_has_vegas() {
    let text = r#"{"wan": {"carrier": {"kind": "tun"}, "transport": {"rate": "none", "rtt_ms": 50}}}"#;
    let wan = read(text).unwrap().config.wan;
    assert!(matches!(wan.connection.congestion, Congestion::Vegas(_)));
    assert_eq!((wan.route.loss, wan.route.framing), (LossMeaning::Congestion, 0));
}

#[test]
fn shares_are_eight_and_none_is_nothing() {
    let with = |shares: &str| {
        let carrier = r#""carrier": {"kind": "udp", "remote": "10.9.0.2:7168"}"#;
        format!("{{\"wan\": {{{carrier}, \"transport\": {{\"rate\": \"1 Mbit/s\"}}}},\n\"shares\": {shares}}}")
    };
    let config = read(&with("[1, 1, 1, 1, 1, 4, 8, 8]")).unwrap().config;
    assert_eq!((config.wan.connection.shares, config.lan.connection.shares[7]), ([1, 1, 1, 1, 1, 4, 8, 8], 8));
    for bad in ["[1, 2]", "[0, 1, 1, 1, 1, 1, 1, 1]"] {
        let error = complaint(&with(bad));
        assert!(error.starts_with("s.json:2: shares: found [") && error.contains("eight numbers"), "{error}");
    }
}

#[test]
fn a_preset_says_buffers_and_first_rto_until_the_link_is_known() {
    let wan = |more: &str| {
        let transport = format!(r#"{{"preset": "nmsu-vj", "rate": "2 Mbit/s"{more}}}"#);
        let text = format!(r#"{{"wan": {{"carrier": {{"kind": "tun"}}, "transport": {transport}}}}}"#);
        read(&text).unwrap().config.wan
    };
    let (preset, known) = (wan(""), wan(r#", "rtt_ms": 2000"#));
    assert_eq!((preset.connection.send_buffer, preset.connection.receive_buffer), (65_536, 65_536));
    assert_eq!(preset.route.initial_rto, Duration::from_secs(6));
    // Twice 2 Mbit/s for 2 s.
    assert_eq!((known.connection.send_buffer, known.route.initial_rto), (1_000_000, Duration::from_secs(6)));
    assert_eq!(wan(r#", "rtt_ms": 400"#).route.initial_rto, Duration::from_millis(1200));
}

#[test]
fn a_gateway_of_its_own_machine_has_interfaces_on_both_sides() {
    let host = r#""host": {"interface": "eth0", "address": "192.0.2.10"}"#;
    let tun = r#""wan": {"carrier": {"kind": "tun"}, "transport": {"rate": "none"}}"#;
    let own = read(&format!("{{{tun}, {host}}}")).unwrap().host.unwrap();
    assert_eq!((own.address, &own.interface[..], own.far.len()), (Ipv4Addr::new(192, 0, 2, 10), "eth0", 0));
    let udp = r#""wan": {"carrier": {"kind": "udp", "remote": "10.9.0.2:7168"}, "transport": {"rate": "none"}}"#;
    let error = complaint(&format!("{{{udp},\n{host}}}"));
    assert!(error.starts_with("s.json:2: host: found UDP on wan; expected"), "{error}");
    let error = complaint(&format!("{{{tun},\n\"host\": {{\"interface\": \"eth0\"}}}}"));
    assert!(error.starts_with("s.json:2: missing field `address`"), "{error}");
}

#[test]
fn forwards_alone_take_packets_to_their_own_addresses_only() {
    let text = r#"{
        "wan": {"carrier": {"kind": "udp", "remote": "10.9.0.2:7168"}, "transport": {"rate": "1 Mbit/s"}},
        "forwards": [{"side": "lan", "listen": "10.1.0.9:80", "from": "10.3.0.9", "to": "10.2.0.1:8080"}]}"#;
    let config = read(text).unwrap().config;
    assert_eq!(config.lan.endpoint.addresses, [IpAddr::from([10, 1, 0, 9])]);
    assert_eq!(config.wan.endpoint.addresses, [IpAddr::from([10, 3, 0, 9])]);
    assert!(!config.lan.takes_any && !config.wan.takes_any);
}

#[test]
fn mistakes_are_named_with_their_line() {
    assert!(complaint("{}").contains("wan: found nothing that carries packets"));
    let carrier = r#""carrier": {"kind": "udp", "remote": "10.9.0.2:7168"}"#;
    let error = complaint(&format!("{{\n\"wan\": {{{carrier}}}}}"));
    assert!(error.starts_with("s.json:2: wan: found no rate; expected \"rate\""), "{error}");
    let error = complaint(&format!("{{\"wan\":\n{{{carrier}, \"transport\": {{\"rate\": \"fast\"}}}}}}"));
    assert!(error.starts_with("s.json:2: wan.transport.rate: ") && error.contains("fast"), "{error}");
    let error = complaint("{\n\n\"set_up\": \"late\"}");
    assert!(error.starts_with("s.json:3: set_up: unknown variant `late`, expected one of"), "{error}");
    let error = complaint("{\"wan\": {\"carrier\":\n {\"kind\": \"pigeon\"}}}");
    assert!(error.starts_with("s.json:2: wan.carrier.kind: unknown variant `pigeon`"), "{error}");
    let error = complaint("{\"lan\": {\"carrier\": {\"kind\": \"tun\",\n\"routes\": [\"10.2.0.0/33\"]}}}");
    assert!(error.starts_with("s.json:2: lan.carrier.routes[0]: found \"10.2.0.0/33\"; expected a prefix"), "{error}");
    let limits = r#""limits": {"connections": 0}"#;
    let error = complaint(&format!("{{\"wan\": {{{carrier}, \"transport\": {{\"rate\": \"none\"}}}}, {limits}}}"));
    assert!(error.contains("limits allow no connection"), "{error}");
    let bets = r#""transport": {"rate": "none", "bets": true}"#;
    assert!(complaint(&format!("{{\"wan\": {{{carrier}, {bets}}}}}")).contains("bets is set"));
}
