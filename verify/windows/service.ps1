# Proves that an installation as the Go program's documentation describes it works: the service starts with that
# program's flags, opens a pipe for each of the 23 group-versions, writes its log, stops and can be deleted.
#
# Needs dist\csi-proxy.exe.
$ErrorActionPreference = 'Stop'
$PSNativeCommandUseErrorActionPreference = $true

$program = Resolve-Path "$PSScriptRoot\..\..\dist\csi-proxy.exe"
$log = "$env:TEMP\csi-proxy-service.log"
New-Service csiproxy -BinaryPathName "`"$program`" -windows-service `"-log_file=$log`" -logtostderr=false" | Out-Null
try {
    Start-Service csiproxy
    $pipes = @(Get-ChildItem \\.\pipe\ | Where-Object Name -Like 'csi-proxy-*').Count
    Stop-Service csiproxy
    Get-Content $log
    if ($pipes -ne 23) { throw "$pipes pipes, not 23" }
} finally {
    Stop-Service csiproxy
    sc.exe delete csiproxy
}
