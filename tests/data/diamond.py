"""Two hosts behind routers that two relays join, each by two links."""

from scpslab.topology import Direction, Network, OneProduct, Parameters

PARAMETERS = Parameters()


def describe(p):
    net = Network("diamond")
    for host in ("h1", "h2"):
        net.host(host)
    for router in ("g1", "g2", "east", "west"):
        net.router(router)
    net.link("h1", "g1", name="lan1", a_ip="10.1.0.1/24", b_ip="10.1.0.254/24")
    net.link("h2", "g2", name="lan2", a_ip="10.2.0.1/24", b_ip="10.2.0.254/24")
    for number, (name, delay_ns) in enumerate((("east", 20_000_000), ("west", 40_000_000)), start=1):
        for end, gateway in ((1, "g1"), (2, "g2")):
            relay = f"sw{name[0]}{end}"
            net.switch(relay)
            ways = [Direction(way, 8_000_000, 0, OneProduct(), delay_ns) for way in ("up", "down")]
            net.link(
                gateway,
                name,
                name=f"{name}{end}",
                via=relay,
                a_ip=f"10.9.{number}{end}.1/30",
                b_ip=f"10.9.{number}{end}.2/30",
                forward=ways[0],
                reverse=ways[1],
            )
        net.route(name, "10.1.0.0/24", "g1")
        net.route(name, "10.2.0.0/24", "g2")
    net.route("h1", "default", "g1")
    net.route("h2", "default", "g2")
    net.route("g1", "10.2.0.0/24", "east")
    net.route("g2", "10.1.0.0/24", "east")
    return net
