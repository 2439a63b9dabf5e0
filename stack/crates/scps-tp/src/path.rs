//! What a connection knows of its path: the route, its round trips, and how much may be under way.

use crate::cc::{
    controller, start_of, AckSample, Controller, LossSample, Metrics, Resume, ResumePhase, Saved, SentSample,
};
use crate::config::Config;
use crate::names::RouteId;
use crate::net::Carriage;
use crate::path_mtu::PathMtu;
use crate::route::{Route, CORRUPTION_REPORT_LIFETIME};
use crate::rto::Rto;
use crate::rtt::RttEstimator;
use scps_wire::{Duration, Instant};

/// Least time beyond SRTT before a resend is judged lost: the clock of the lab's hosts ticks no finer.
const PATIENCE_MARGIN_MIN: Duration = Duration::from_millis(1);

/// The path of a connection.
#[derive(Debug)]
pub(crate) struct Path {
    route: RouteId,
    network_header: u16,
    /// What it takes, if less than its route.
    mtu: Option<PathMtu>,
    /// What was found out about its MTU, until others are told.
    mtu_found: Option<MtuFound>,
    rtt: RttEstimator,
    rto: Rto,
    cc: Box<dyn Controller>,
    /// Careful Resume, if the connection has it.
    resume: Option<Box<Resume>>,
    /// When new data may leave, where it is paced.
    paced_until: Instant,
    /// The round trip that the acknowledgement in hand measured.
    round_rtt: Option<Duration>,
    /// The round under way ends when what leaves next, in order of transmission, has arrived.
    round_order: u64,
    is_cwnd_limited: bool,
    /// Until when the peer's word is taken that packets come damaged.
    damaged_until: Instant,
}

/// What a sender finds out about a path of which nobody reports anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MtuFound {
    /// It takes packets of so many octets, and longer ones vanish.
    Less(u16),
    /// It takes as much as its route.
    AsRoute,
}

/// What an acknowledgement says arrived.
pub(crate) struct Progress {
    pub at: Instant,
    /// Octets that are news.
    pub octets: u64,
    /// Data of a full segment.
    pub segment: u64,
    /// Octets still under way.
    pub in_flight: u64,
    /// The latest transmission that arrived.
    pub delivered_order: Option<u64>,
    /// The next transmission.
    pub next_order: u64,
    /// A loss is being repaired that no timeout found.
    pub is_recovering: bool,
}

impl Path {
    /// A path over the route `id`; segments begin with `segment` octets of data.
    pub(crate) fn new(
        id: RouteId,
        network_header: u16,
        mtu: Option<PathMtu>,
        config: &Config,
        route: &Route,
        segment: u64,
    ) -> Self {
        let mut rtt = RttEstimator::default();
        if let Some(known) = route.config().rtt {
            rtt.on_sample(known);
            rtt.forget_min();
        }
        Path {
            route: id,
            network_header,
            mtu,
            mtu_found: None,
            rtt,
            rto: Rto::new(config.rto, route.config().initial_rto),
            cc: controller(config, &start_of(config, segment)),
            resume: None,
            paced_until: Instant::ZERO,
            round_rtt: None,
            round_order: 0,
            is_cwnd_limited: false,
            damaged_until: Instant::ZERO,
        }
    }

    /// The segment size is agreed on: congestion control begins.
    pub(crate) fn begin(&mut self, config: &Config, segment: u64) {
        let start = start_of(config, segment);
        self.cc = controller(config, &start);
        if let Some(resume) = &mut self.resume {
            resume.begin(start);
        }
    }

    /// It may be known from an earlier connection.
    pub(crate) fn resume_from(&mut self, saved: Option<Saved>, config: &Config, segment: u64) {
        let resume = config.careful_resume.map(|resume| Resume::new(resume, saved, start_of(config, segment)));
        self.resume = resume.map(Box::new);
    }

    /// What may be saved of it, once.
    pub(crate) fn take_saved(&mut self, now: Instant) -> Option<Saved> {
        self.resume.as_mut()?.take_saved(now)
    }

    /// Where it stands with Careful Resume.
    pub(crate) fn resume_phase(&self) -> Option<ResumePhase> {
        self.resume.as_ref().map(|resume| resume.phase())
    }

    /// The route.
    pub(crate) fn route(&self) -> RouteId {
        self.route
    }

    /// Octets of the network layer's header, and what SP adds.
    pub(crate) fn network_header(&self) -> u16 {
        self.network_header
    }

    // Size.

    /// Octets of the largest packet that it takes.
    pub(crate) fn mtu(&self, route: &Route) -> u16 {
        self.mtu.map_or(u16::MAX, |path| path.mtu).min(route.config().mtu)
    }

    /// What its packets may be.
    pub(crate) fn carriage(&self, route: &Route) -> Carriage {
        let may_fragment = self.mtu.is_some_and(|path| path.may_fragment);
        // What only timeouts say is tried again now and then with a longer packet.
        let mtu = if self.mtu.is_some_and(|path| path.is_guessed) { route.config().mtu } else { self.mtu(route) };
        Carriage { mtu, dont_fragment: route.config().dont_fragment && !may_fragment }
    }

    /// It was reported to take less than its route.
    pub(crate) fn set_mtu(&mut self, mtu: Option<PathMtu>) {
        self.mtu = mtu;
    }

    /// A report is believed for a while only: the path may have changed (RFC 1191 §6.3). True if it is time to try a longer packet on a
    /// path of which nobody reported anything.
    pub(crate) fn forget_old_mtu(&mut self, now: Instant) -> bool {
        let Some(path) = self.mtu.filter(|path| now >= path.until) else { return false };
        self.mtu = path.is_guessed.then(|| path.prolonged(now));
        path.is_guessed
    }

    /// Something was found out about its MTU.
    pub(crate) fn find_mtu(&mut self, found: MtuFound) {
        self.mtu_found = Some(found);
    }

    /// What was found since this was asked last.
    pub(crate) fn take_mtu_found(&mut self) -> Option<MtuFound> {
        self.mtu_found.take()
    }

    // Time.

    /// Smoothed round trip, once there is a sample.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// The least round trip since the path last changed.
    pub(crate) fn rtt_min(&self) -> Option<Duration> {
        self.rtt.min()
    }

    /// The retransmission timeout in force.
    pub(crate) fn rto(&self) -> Duration {
        self.rto.value(&self.rtt)
    }

    /// A round trip and its variation: how long after a transmission its fate can be judged (scps-tp §2.4.5: SRTT).
    pub(crate) fn patience(&self) -> Duration {
        match self.rtt.srtt() {
            Some(srtt) => srtt + (self.rtt.rttvar() * 4).max(srtt / 16).max(PATIENCE_MARGIN_MIN),
            None => self.rto(),
        }
    }

    /// A round trip was measured.
    pub(crate) fn on_round_trip(&mut self, rtt: Duration) {
        if self.rto.on_sample() {
            self.rtt.restart();
            self.cc.on_path_change();
        }
        self.rtt.on_sample(rtt);
    }

    /// The round trip that the acknowledgement in hand measured, if it did.
    pub(crate) fn set_round(&mut self, rtt: Option<Duration>) {
        self.round_rtt = rtt;
    }

    /// The retransmission timer expired: it doubles.
    pub(crate) fn back_off(&mut self) {
        self.rto.on_timeout();
    }

    /// The path may be another one: its least round trip is forgotten.
    pub(crate) fn on_change(&mut self, next_order: u64) {
        self.rtt.forget_min();
        match &mut self.resume {
            Some(resume) => resume.on_path_change(&mut *self.cc, next_order),
            None => self.cc.on_path_change(),
        }
    }

    // Congestion.

    /// Octets that may be under way.
    pub(crate) fn cwnd(&self) -> u64 {
        self.metrics().window
    }

    /// Windows and pace of congestion control.
    pub(crate) fn metrics(&self) -> Metrics {
        let own = self.cc.metrics();
        self.resume.as_ref().map_or(own, |resume| resume.over(own))
    }

    /// When new data may leave, if that is not now.
    pub(crate) fn paced_until(&self, now: Instant) -> Option<Instant> {
        (self.paced_until > now && self.metrics().pace.is_some()).then_some(self.paced_until)
    }

    /// New data left.
    pub(crate) fn on_sent(&mut self, sent: &SentSample) {
        if let Some(pace) = self.metrics().pace {
            self.paced_until = self.paced_until.max(sent.at) + pace.time_for(sent.octets);
        }
        match &mut self.resume {
            Some(resume) => resume.on_sent(&mut *self.cc, sent),
            None => self.cc.on_sent(sent),
        }
    }

    /// More would leave if the congestion window allowed it.
    pub(crate) fn note_cwnd_limited(&mut self) {
        self.is_cwnd_limited = true;
    }

    /// The peer says that packets come damaged (scps-tp §2.6, option 23). That is its word, and so concerns this connection alone.
    pub(crate) fn on_corruption_experienced(&mut self, now: Instant) {
        self.damaged_until = now + CORRUPTION_REPORT_LIFETIME;
    }

    /// True if a loss is taken for congestion now.
    pub(crate) fn loss_is_congestion(&self, route: &Route, now: Instant) -> bool {
        route.loss_is_congestion(now) && now >= self.damaged_until
    }

    /// Losses were found.
    pub(crate) fn on_loss(&mut self, loss: &LossSample) {
        match &mut self.resume {
            Some(resume) => resume.on_loss(&mut *self.cc, loss),
            None => self.cc.on_loss(loss),
        }
    }

    /// Losses were not found until the retransmission timer expired.
    pub(crate) fn on_timeout(&mut self, loss: &LossSample) {
        match &mut self.resume {
            Some(resume) => resume.on_timeout(&mut *self.cc, loss),
            None => self.cc.on_timeout(loss),
        }
    }

    /// A router asks for less (scps-tp §4.6).
    pub(crate) fn on_source_quench(&mut self, segment: u64) {
        match &mut self.resume {
            Some(resume) => resume.on_source_quench(&mut *self.cc, segment),
            None => self.cc.on_source_quench(segment),
        }
    }

    /// Something arrived.
    pub(crate) fn on_progress(&mut self, progress: &Progress) {
        let round_ended = progress.delivered_order.is_some_and(|delivered| delivered >= self.round_order);
        if round_ended {
            self.round_order = progress.next_order;
        }
        let sample = AckSample {
            at: progress.at,
            octets: progress.octets,
            mss: progress.segment,
            in_flight: progress.in_flight,
            delivered: progress.delivered_order,
            next: progress.next_order,
            rtt: self.round_rtt,
            rtt_min: self.rtt_min(),
            round_ended,
            is_cwnd_limited: self.is_cwnd_limited,
            is_recovering: progress.is_recovering,
        };
        match &mut self.resume {
            Some(resume) => resume.on_ack(&mut *self.cc, &sample),
            None => self.cc.on_ack(&sample),
        }
        self.is_cwnd_limited = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Congestion, RouteConfig};

    const SEGMENT: u64 = 1000;

    fn path(known: Option<Duration>) -> Path {
        let config = Config { congestion: Congestion::Vj, ..Config::default() };
        let route = Route::new(RouteConfig { rtt: known, ..RouteConfig::default() }, Instant::ZERO);
        Path::new(RouteId(0), 20, None, &config, &route, SEGMENT)
    }

    fn progress() -> Progress {
        let (octets, segment, in_flight) = (SEGMENT, SEGMENT, 0);
        let (at, delivered_order, next_order, is_recovering) = (Instant::ZERO, None, 9, false);
        Progress { at, octets, segment, in_flight, delivered_order, next_order, is_recovering }
    }

    #[test]
    fn a_known_round_trip_is_the_first_sample_and_no_least_one() {
        let known = Duration::from_millis(500);
        assert_eq!((path(Some(known)).srtt(), path(Some(known)).rtt_min()), (Some(known), None));
        assert_eq!((path(None).srtt(), path(None).patience()), (None, path(None).rto()));
    }

    #[test]
    fn patience_is_more_than_a_round_trip_even_where_none_varies() {
        let mut path = path(None);
        (0..200).for_each(|_| path.on_round_trip(Duration::from_millis(8)));
        assert!(path.patience() >= Duration::from_millis(9) && path.patience() < Duration::from_millis(10));
    }

    #[test]
    fn a_window_that_was_not_used_up_does_not_grow() {
        let mut path = path(None);
        let before = path.cwnd();
        path.on_progress(&progress());
        assert_eq!(path.cwnd(), before);
        path.note_cwnd_limited();
        path.on_progress(&progress());
        assert!(path.cwnd() > before);
        let grown = path.cwnd();
        path.on_progress(&progress());
        assert_eq!(path.cwnd(), grown, "what limited it is judged anew");
    }

    #[test]
    fn timeouts_double_until_a_round_trip_is_measured() {
        let mut path = path(None);
        let first = path.rto();
        path.back_off();
        path.back_off();
        assert_eq!(path.rto(), first * 4);
        path.on_round_trip(first);
        assert!(path.rto() < first * 4);
        path.on_change(0);
        assert_eq!((path.rtt_min(), path.srtt()), (None, Some(first)));
    }
}
