// The geostationary hop of the FY97 network in ns-3, with its own TCP model: what the lab's speed is compared with (make bench).
//
//   ws1 --10 Mbit/s-- r1 ==2 Mbit/s, 265 ms== r2 --10 Mbit/s-- ws2
//
// One bulk transfer; prints virtual seconds from connect to the last byte at the sink, and the bytes there.
// No capture is written and no packet has a payload: the comparison favours the simulator.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <iostream>

using namespace ns3;

static double g_last_s = 0;

static void Received(Ptr<const Packet>, const Address &)
{
	g_last_s = Simulator::Now().GetSeconds();
}

int main(int argc, char **argv)
{
	uint64_t bytes = 4000000;
	CommandLine line(__FILE__);
	line.AddValue("bytes", "Bytes to transfer", bytes);
	line.Parse(argc, argv);

	// The same windows and segments as the lab's FY97 hosts.
	Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpLinuxReno::GetTypeId()));
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1400));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(168000));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(200200));
	Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(1));
	Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));

	NodeContainer nodes;
	nodes.Create(4);
	PointToPointHelper lan, hop;
	lan.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
	lan.SetChannelAttribute("Delay", StringValue("10us"));
	hop.SetDeviceAttribute("DataRate", StringValue("2Mbps"));
	hop.SetChannelAttribute("Delay", StringValue("265ms"));
	hop.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("132500B"));
	NetDeviceContainer links[] = { lan.Install(nodes.Get(0), nodes.Get(1)), hop.Install(nodes.Get(1), nodes.Get(2)),
		lan.Install(nodes.Get(2), nodes.Get(3)) };

	InternetStackHelper internet;
	internet.Install(nodes);
	Ipv4AddressHelper addresses;
	Ipv4InterfaceContainer last;
	const char *subnets[] = { "10.1.0.0", "10.9.0.0", "10.2.0.0" };
	for (int i = 0; i < 3; i++) {
		addresses.SetBase(subnets[i], "255.255.255.0");
		last = addresses.Assign(links[i]);
	}
	Ipv4GlobalRoutingHelper::PopulateRoutingTables();

	PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5001));
	ApplicationContainer sinks = sink.Install(nodes.Get(3));
	sinks.Start(Seconds(0));
	BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(last.GetAddress(1), 5001));
	source.SetAttribute("MaxBytes", UintegerValue(bytes));
	source.SetAttribute("SendSize", UintegerValue(1400));
	source.Install(nodes.Get(0)).Start(Seconds(1));
	Config::ConnectWithoutContext("/NodeList/3/ApplicationList/0/$ns3::PacketSink/Rx", MakeCallback(&Received));

	Simulator::Stop(Seconds(4000));
	Simulator::Run();
	std::cout << g_last_s - 1 << " " << DynamicCast<PacketSink>(sinks.Get(0))->GetTotalRx() << std::endl;
	Simulator::Destroy();
	return 0;
}
