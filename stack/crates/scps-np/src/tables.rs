//! The static tables, the same on every node but for the next hops, and the translation of IPv4 addresses (scps-np §4.1).
//!
//! Tables are read by line. The reference reads a fixed number of words across line ends, and so misreads the examples of its
//! own manual.

use crate::address::{Address, Addresses};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Entries of a table; the reference has room for 100.
const ENTRIES_MAX: usize = 4096;
/// Octets of a line, comment included.
const LINE_MAX: usize = 256;

/// The four files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableKind {
    /// `npIP_NP_File`: IPv4 address, NP address.
    IpNp,
    /// `npNextHopFile`: own address; then destination, link address of its next hop.
    NextHop,
    /// `npMultiNextHopFile`: groups of this node; then group, next hops.
    MultiNextHop,
    /// `npPathFile`: path, source, destinations.
    Path,
}

/// What is wrong with a line of a table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TableError {
    /// Counted from 1.
    pub line: usize,
    /// What was found and what was expected.
    pub problem: String,
}

/// A path: one address for a source and its destinations.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Path {
    src: Address,
    dsts: BTreeSet<Address>,
}

/// The tables of a node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tables {
    own: Option<Ipv4Addr>,
    to_np: BTreeMap<Ipv4Addr, Address>,
    to_ip: BTreeMap<Address, Ipv4Addr>,
    next_hops: BTreeMap<Address, Ipv4Addr>,
    groups: BTreeSet<Address>,
    group_hops: BTreeMap<Address, Vec<Ipv4Addr>>,
    paths: BTreeMap<Address, Path>,
}

impl Tables {
    /// The tables of a node that has an address and knows nobody.
    pub fn of(own: Ipv4Addr) -> Self {
        Tables { own: Some(own), ..Tables::default() }
    }

    /// Reads a table and adds it. All wrong lines are named, and then nothing is added.
    pub fn read(&mut self, kind: TableKind, text: &str) -> Result<(), Vec<TableError>> {
        let mut changed = self.clone();
        let mut errors = Vec::new();
        let mut is_first = true;
        for (number, line) in text.lines().enumerate() {
            let row = parse_line(line).and_then(|words| {
                if words.is_empty() {
                    return Ok(());
                }
                let was_first = std::mem::replace(&mut is_first, false);
                changed.add(kind, was_first, &words)
            });
            if let Err(problem) = row {
                errors.push(TableError { line: number + 1, problem });
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        *self = changed;
        Ok(())
    }

    fn add(&mut self, kind: TableKind, is_first: bool, words: &[u32]) -> Result<(), String> {
        match (kind, words) {
            (TableKind::IpNp, [ip, np]) => self.add_host(Ipv4Addr::from_bits(*ip), Address::from_value(*np)),
            (TableKind::IpNp, _) => Err(expected("an IPv4 address and an NP address", words)),
            (TableKind::NextHop, [own]) if is_first => {
                self.own = Some(Ipv4Addr::from_bits(*own));
                Ok(())
            }
            (TableKind::NextHop, _) if is_first => Err(expected("the own address", words)),
            (TableKind::NextHop, [dst, hop]) => self.add_next_hop(Address::from_value(*dst), Ipv4Addr::from_bits(*hop)),
            (TableKind::NextHop, _) => Err(expected("a destination and its next hop", words)),
            (TableKind::MultiNextHop, groups) if is_first => {
                for group in groups.iter().filter(|group| **group != 0) {
                    self.join(Address::from_value(*group))?;
                }
                Ok(())
            }
            (TableKind::MultiNextHop, [group, hops @ ..]) if !hops.is_empty() => {
                let hops = hops.iter().filter(|hop| **hop != 0).map(|hop| Ipv4Addr::from_bits(*hop)).collect();
                self.add_group(Address::from_value(*group), hops)
            }
            (TableKind::MultiNextHop, _) => Err(expected("a group and its next hops", words)),
            (TableKind::Path, [path, src, dsts @ ..]) if !dsts.is_empty() => {
                // The reference wants two destinations and fills up with zero.
                let dsts = dsts.iter().filter(|dst| **dst != 0).map(|dst| Address::from_value(*dst)).collect();
                self.add_path(Address::from_value(*path), Address::from_value(*src), dsts)
            }
            (TableKind::Path, _) => Err(expected("a path, its source and its destinations", words)),
        }
    }

    /// Adds a host: its IPv4 address at the service interface, and its NP address.
    pub fn add_host(&mut self, ip: Ipv4Addr, np: Address) -> Result<(), String> {
        unicast(np)?;
        room(&self.to_np)?;
        if self.to_np.contains_key(&ip) || self.to_ip.contains_key(&np) {
            return Err(format!("found {ip} and {np}, one of which is in the table; expected every address once"));
        }
        self.to_np.insert(ip, np);
        self.to_ip.insert(np, ip);
        Ok(())
    }

    /// Adds a next hop: the link address to which datagrams for `dst` go.
    pub fn add_next_hop(&mut self, dst: Address, hop: Ipv4Addr) -> Result<(), String> {
        unicast(dst)?;
        insert_once(&mut self.next_hops, dst, hop)
    }

    /// Makes the node a member of a group.
    pub fn join(&mut self, group: Address) -> Result<(), String> {
        multicast(group)?;
        if self.groups.len() >= ENTRIES_MAX || !self.groups.insert(group) {
            return Err(format!("found group {group} again, or too many groups; expected each once"));
        }
        Ok(())
    }

    /// Adds the next hops of a group.
    pub fn add_group(&mut self, group: Address, hops: Vec<Ipv4Addr>) -> Result<(), String> {
        multicast(group)?;
        insert_once(&mut self.group_hops, group, hops)
    }

    /// Adds a path.
    pub fn add_path(&mut self, path: Address, src: Address, dsts: BTreeSet<Address>) -> Result<(), String> {
        unicast(src)?;
        if dsts.is_empty() {
            return Err(format!("found path {path} without a destination; expected one or more"));
        }
        insert_once(&mut self.paths, path, Path { src, dsts })
    }

    /// The node's NP address, if it has one.
    pub fn own(&self) -> Option<Address> {
        self.own.map(|ip| self.np_of(ip))
    }

    /// The NP address of an end system: the table's, or the IPv4 address itself as an extended one.
    pub fn np_of(&self, ip: Ipv4Addr) -> Address {
        self.to_np.get(&ip).copied().unwrap_or(Address::Extended(ip.to_bits()))
    }

    /// The IPv4 address of an end system; `None` for a basic or IPv6 address that no table knows.
    pub fn ip_of(&self, np: Address) -> Option<Ipv4Addr> {
        if let Some(ip) = self.to_ip.get(&np) {
            return Some(*ip);
        }
        match np {
            // The longer form of a basic address, sent so because the other end has no basic one.
            Address::Extended(value) => {
                let basic = u16::try_from(value).ok().and_then(|basic| self.to_ip.get(&Address::Basic(basic)));
                Some(basic.copied().unwrap_or(Ipv4Addr::from_bits(value)))
            }
            Address::Basic(_) | Address::V6(_) => None,
        }
    }

    /// The addresses that a datagram carries from `src` to `dst` (scps-np §4.1): both translated, or a path that leads there,
    /// or a group, or IPv4 addresses as they are.
    pub fn addresses_to(&self, src: Ipv4Addr, dst: Ipv4Addr) -> Addresses {
        let (from, to) = (self.np_of(src), self.np_of(dst));
        if !self.to_np.contains_key(&dst) {
            let leads_there = |path: &Path| path.src == from && path.dsts.contains(&Address::from_value(dst.to_bits()));
            if let Some((path, _)) = self.paths.iter().find(|(_, path)| leads_there(path)) {
                return Addresses::Path(*path);
            }
            let group = Address::from_value(dst.to_bits());
            if self.group_hops.contains_key(&group) || self.groups.contains(&group) {
                return pair(group, from);
            }
        }
        pair(to, from)
    }

    /// Source and destination of a datagram as the service interface has them; `None` if nobody here knows one of them.
    pub fn ends_of(&self, addresses: Addresses) -> Option<(Ipv4Addr, Ipv4Addr)> {
        let dst = addresses.dst()?;
        match addresses.src() {
            None => {
                let own = self.own?;
                let path = self.paths.get(&dst)?;
                let is_ours = path.dsts.iter().any(|dst| self.is_own(*dst));
                is_ours.then_some(())?;
                Some((self.ip_of(path.src).or(path.src.as_ipv4())?, own))
            }
            Some(src) => {
                let dst = if dst.is_unicast() { self.ip_of(dst) } else { dst.as_ipv4() };
                Some((self.ip_of(src)?, dst?))
            }
        }
    }

    fn is_own(&self, address: Address) -> bool {
        let Some(own) = self.own else { return false };
        self.np_of(own) == address || self.ip_of(address) == Some(own)
    }

    /// Whether this node is one of those a datagram is for: its own address, a group it belongs to, a path that ends here, a
    /// broadcast, or, without addresses, whoever is at the end of the link (scps-np §4.2). An address of an end system is never
    /// looked up among the paths.
    pub fn is_for_us(&self, addresses: Addresses) -> bool {
        let Some(dst) = addresses.dst() else { return true };
        if dst.is_broadcast() {
            return true;
        }
        if let Addresses::Path(path) = addresses {
            return self.paths.get(&path).is_some_and(|path| path.dsts.iter().any(|dst| self.is_own(*dst)));
        }
        if dst.is_multicast() {
            return self.groups.contains(&dst.shortest());
        }
        self.is_own(dst)
    }

    /// Adds the link addresses to which a datagram goes on, without those of this node (scps-np §4.2). A broadcast goes nowhere.
    pub fn next_hops(&self, addresses: Addresses, hops: &mut Vec<Ipv4Addr>) {
        let Some(dst) = addresses.dst().filter(|dst| !dst.is_broadcast()) else { return };
        if let Addresses::Path(_) = addresses {
            let dsts = self.paths.get(&dst).map(|path| &path.dsts);
            for other in dsts.into_iter().flatten().filter(|dst| !self.is_own(**dst)) {
                // One copy for all that are behind the same node.
                hops.extend(self.next_hops.get(other).filter(|hop| !hops.contains(hop)).copied());
            }
        } else if dst.is_multicast() {
            hops.extend(self.group_hops.get(&dst.shortest()).into_iter().flatten());
        } else if !self.is_own(dst) {
            hops.extend(self.next_hop(dst));
        }
    }

    /// The link address to which datagrams for an end system go on.
    pub fn next_hop(&self, dst: Address) -> Option<Ipv4Addr> {
        let translated = || self.ip_of(dst).and_then(|ip| self.to_np.get(&ip)).and_then(|np| self.next_hops.get(np));
        self.next_hops.get(&dst).or_else(translated).copied()
    }
}

/// Both in one form. The tables hold no IPv6 addresses, so there always is one.
fn pair(dst: Address, src: Address) -> Addresses {
    Addresses::of_ends(dst, src).unwrap_or_default()
}

fn insert_once<T>(table: &mut BTreeMap<Address, T>, key: Address, value: T) -> Result<(), String> {
    room(table)?;
    if table.contains_key(&key) {
        return Err(format!("found {key} again; expected every address once"));
    }
    table.insert(key, value);
    Ok(())
}

fn room<K, V>(table: &BTreeMap<K, V>) -> Result<(), String> {
    if table.len() >= ENTRIES_MAX {
        return Err(format!("found more than {ENTRIES_MAX} entries; expected no more"));
    }
    Ok(())
}

fn unicast(address: Address) -> Result<(), String> {
    if !address.is_unicast() {
        return Err(format!(
            "found {address}, a group or a broadcast; expected an end system (even, if of two octets)"
        ));
    }
    Ok(())
}

fn multicast(address: Address) -> Result<(), String> {
    if !address.is_multicast() {
        return Err(format!("found {address}, no group; expected an odd address of two octets, or one of class D"));
    }
    Ok(())
}

fn expected(what: &str, words: &[u32]) -> String {
    let found: Vec<String> = words.iter().map(|word| format!("{word:x}")).collect();
    format!("found \"{}\"; expected {what}", found.join(" "))
}

/// The hexadecimal words of a line, without its comment.
fn parse_line(line: &str) -> Result<Vec<u32>, String> {
    if line.len() > LINE_MAX {
        return Err(format!("found {} octets; expected at most {LINE_MAX}", line.len()));
    }
    let words = line.split('#').next().unwrap_or_default().split_whitespace();
    words.map(parse_word).collect()
}

fn parse_word(word: &str) -> Result<u32, String> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let value = u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
    value.ok_or_else(|| format!("found \"{word}\"; expected up to eight hexadecimal digits"))
}
