# Proves that csi-proxy survives a restart of WMI while eight clients make calls that ask WMI: each call ends, calls
# succeed again afterwards, and the process is still the same.
#
# Needs the service csiproxy and target\go\client.exe.
$ErrorActionPreference = 'Stop'

function Get-ServiceProcess { (Get-CimInstance Win32_Service -Filter "Name = 'csiproxy'").ProcessId }

$before = Get-ServiceProcess
$client = Resolve-Path "$PSScriptRoot\..\..\target\go\client.exe"
$load = Start-Process -FilePath $client -ArgumentList '-load', '60s' -NoNewWindow -PassThru
# Without an open handle, the exit code would be lost.
$null = $load.Handle
Start-Sleep -Seconds 15
# -Force also restarts the services that depend on WMI.
Restart-Service winmgmt -Force
# A call has a deadline of one minute.
if (-not $load.WaitForExit(180000)) { throw 'a call does not end' }
if ($load.ExitCode -ne 0) { throw "the client failed with $($load.ExitCode)" }
$after = Get-ServiceProcess
if ($before -eq 0 -or $before -ne $after) { throw "csi-proxy ran in process $before, and now runs in $after" }
