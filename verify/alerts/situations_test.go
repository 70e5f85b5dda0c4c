package alerts

// What Prometheus scrapes in each situation. `1x9` stands for ten samples of the value 1, `0+6x9` for 0, 6, 12 and so on,
// `_` for a scrape without the series, and `stale` for the first one that finds it gone.
var situations = []situation{
	{
		name: "a daemon that serves",
		series: []string{
			`up{job="csi-proxy",instance="n"} 1x90`,
			`csi_proxy_oldest_call_seconds{job="csi-proxy",instance="n"} 0 30 0x20 300 0x67`,
			`csi_proxy_lock_outlived{job="csi-proxy",instance="n"} 0x90`,
			`csi_proxy_pool_waiting{job="csi-proxy",instance="n",pool="disks"} 0 2 0x88`,
			`csi_proxy_calls_refused_total{job="csi-proxy",instance="n",reason="running"} 0x90`,
			`csi_proxy_smb_password_differs_total{job="csi-proxy",instance="n"} 0x90`,
			`grpc_server_handled_total{job="csi-proxy",instance="n",grpc_method="MountVolume",grpc_code="OK"} 0+5x90`,
			// Drivers ask for what may not exist.
			`grpc_server_handled_total{job="csi-proxy",instance="n",grpc_method="GetVolumeStats",grpc_code="NotFound"} 0+5x90`,
			`grpc_server_handled_total{job="csi-proxy",instance="n",grpc_method="MountVolume",grpc_code="FailedPrecondition"} 0+4x90`,
		},
	},
	{
		name: "a daemon that restarts",
		series: []string{
			`up{job="csi-proxy",instance="n"} 1x4 0x3 1x20`,
			// As many operations as there are drivers that have waited for it.
			`csi_proxy_pool_waiting{job="csi-proxy",instance="n",pool="disks"} 1x4 stale _x3 5 0x19`,
			`csi_proxy_smb_password_differs_total{job="csi-proxy",instance="n"} 3x4 stale _x3 0x20`,
			`grpc_server_handled_total{job="csi-proxy",instance="n",grpc_method="MountVolume",grpc_code="OK"} 100x4 stale _x3 0+5x20`,
		},
	},
	{
		name: "a daemon that does not answer, and another program that does not",
		series: []string{
			`up{job="csi-proxy",instance="n"} 1x4 0x9 1x4`,
			`up{job="node-exporter",instance="n"} 0x19`,
		},
		fires: map[string][]span{"CsiProxyDown": {{10, 14}}},
	},
	{
		name:   "a call that ends late, and one that does not end",
		series: []string{`csi_proxy_oldest_call_seconds{job="csi-proxy",instance="n"} 0+60x15 0+60x29`},
		fires:  map[string][]span{"CsiProxyCallStuck": {{33, 45}}},
	},
	{
		name: "a call of Windows that ends late, and one that does not end",
		series: []string{
			`csi_proxy_lock_outlived{job="csi-proxy",instance="n"} 0x1 1x9 0x9`,
			`csi_proxy_lock_outlived{job="csi-proxy",instance="other"} 0x1 1x29`,
		},
		fires: map[string][]span{"CsiProxyLockOutlived": {{17, 31}}},
	},
	{
		name: "a pool in which operations wait, and one in which they waited for a short time",
		series: []string{
			`csi_proxy_pool_waiting{job="csi-proxy",instance="n",pool="remote"} 0x2 3x10 0x9`,
			`csi_proxy_pool_waiting{job="csi-proxy",instance="n",pool="disks"} 0x2 3x3 0x9`,
		},
		fires: map[string][]span{"CsiProxyPoolExhausted": {{8, 13}}},
	},
	{
		name: "the first failure that is a defect creates its series, and the next one counts",
		series: []string{
			`grpc_server_handled_total{job="csi-proxy",instance="n",grpc_method="Rescan",grpc_code="Internal"} _x2 1x39 2x29`,
			`grpc_server_handled_total{job="csi-proxy",instance="n",grpc_method="Rescan",grpc_code="OK"} 0+9x72`,
			`grpc_server_handled_total{job="other",instance="n",grpc_method="Rescan",grpc_code="Internal"} 0+9x72`,
		},
		fires: map[string][]span{"CsiProxyDefect": {{2, 16}, {42, 55}}},
	},
	{
		name: "a method of which most calls fail on one node, and a single failure on another",
		series: []string{
			`grpc_server_handled_total{job="csi-proxy",instance="n",grpc_method="MountVolume",grpc_code="FailedPrecondition"} 0+6x40`,
			`grpc_server_handled_total{job="csi-proxy",instance="n",grpc_method="MountVolume",grpc_code="OK"} 0+5x40`,
			`grpc_server_handled_total{job="csi-proxy",instance="n",grpc_method="FormatVolume",grpc_code="OK"} 0+50x40`,
			`grpc_server_handled_total{job="csi-proxy",instance="other",grpc_method="MountVolume",grpc_code="Unavailable"} 1x9 2x30`,
			`grpc_server_handled_total{job="csi-proxy",instance="other",grpc_method="MountVolume",grpc_code="OK"} 70x40`,
		},
		fires: map[string][]span{"CsiProxyManyFailures": {{16, 40}}},
	},
	{
		name: "calls that are refused all the time, and once",
		series: []string{
			`csi_proxy_calls_refused_total{job="csi-proxy",instance="n",reason="running"} 0+1x40`,
			`csi_proxy_calls_refused_total{job="csi-proxy",instance="other",reason="in_flight"} 0x9 50x30`,
		},
		fires: map[string][]span{"CsiProxyCallsRefused": {{16, 40}}},
	},
	{
		name:   "a share that is requested with another password",
		series: []string{`csi_proxy_smb_password_differs_total{job="csi-proxy",instance="n"} 0x4 1x75`},
		fires:  map[string][]span{"CsiProxyOtherSmbPassword": {{5, 63}}},
	},
}
