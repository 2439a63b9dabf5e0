//! The routes of a host, and which of them leads to whom.

use crate::names::RouteId;
use crate::route::Route;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::{Index, IndexMut};

/// The routes of a host; the first one leads to everybody whom no other one names.
#[derive(Debug)]
pub(crate) struct Routes {
    routes: Vec<Route>,
    by_destination: BTreeMap<IpAddr, RouteId>,
}

impl Routes {
    pub(crate) fn new(route: Route) -> Self {
        Routes { routes: vec![route], by_destination: BTreeMap::new() }
    }

    /// One more, for `destinations`.
    pub(crate) fn add(&mut self, route: Route, destinations: &[IpAddr]) -> RouteId {
        let id = RouteId(self.routes.len());
        self.routes.push(route);
        self.by_destination.extend(destinations.iter().map(|d| (*d, id)));
        id
    }

    /// The one that leads to an address.
    pub(crate) fn to(&self, dst: Ipv4Addr) -> RouteId {
        self.by_destination.get(&dst.into()).copied().unwrap_or_default()
    }

    /// The one of a name, if there is one.
    pub(crate) fn get(&self, id: RouteId) -> Option<&Route> {
        self.routes.get(id.0)
    }

    /// The one of a name, if there is one.
    pub(crate) fn get_mut(&mut self, id: RouteId) -> Option<&mut Route> {
        self.routes.get_mut(id.0)
    }

    /// All of them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Route> {
        self.routes.iter_mut()
    }
}

/// By a name that was given here.
impl Index<RouteId> for Routes {
    type Output = Route;

    fn index(&self, id: RouteId) -> &Route {
        &self.routes[id.0]
    }
}

impl IndexMut<RouteId> for Routes {
    fn index_mut(&mut self, id: RouteId) -> &mut Route {
        &mut self.routes[id.0]
    }
}
