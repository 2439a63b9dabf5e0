//! Any bytes as command lines, replies, control files of READ and UPDT, and range lists; what is understood survives
//! being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scps_fp::command::Command;
use scps_fp::line::{Line, LineReader};
use scps_fp::ranges::{parse_list, ReadRequest};
use scps_fp::reply::{find_marker, find_size, Incoming, ReplyReader};
use scps_fp::update::{apply, Update};

fuzz_target!(|data: &[u8]| {
    let mut lines = LineReader::commands();
    lines.push(data);
    while let Some(line) = lines.pop() {
        if let Line::Text(text) = line {
            let _ = Command::parse(&text);
            let _ = Command::verb(&text);
        }
    }
    let mut replies = ReplyReader::new();
    replies.push(data);
    while let Some(Incoming::Reply(reply)) = replies.pop() {
        let text = reply.text();
        let _ = (find_size(&text), find_marker(&text));
        let _ = (scps_fp::address::find_port(&text), scps_fp::address::find_epsv(&text));
    }
    if let Ok(update) = Update::parse(data) {
        assert_eq!(Update::parse(&update.emit()).expect("written by us"), update);
        let _ = apply(data, &update.signals, std::io::sink());
    }
    if let Ok(request) = ReadRequest::parse(data) {
        assert_eq!(ReadRequest::parse(&request.emit()).expect("written by us"), request);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = parse_list(text, 1 << 20);
        let _ = scps_fp::address::parse_eprt(text);
        let _ = scps_fp::config::Mib::default().read(text);
    }
});
