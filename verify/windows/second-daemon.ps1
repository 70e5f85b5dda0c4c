# Proves that a second daemon does not serve beside the service, that it names the pipe that is taken and the process of
# the service, which has another account, and that the service continues to serve.
#
# Needs the service csiproxy and dist\csi-proxy.exe.
$ErrorActionPreference = 'Stop'

$first = (Get-CimInstance Win32_Service -Filter "Name = 'csiproxy'").ProcessId
# Out-String would break the lines of an error at the width of the console.
$message = (& "$PSScriptRoot\..\..\dist\csi-proxy.exe" 2>&1 | ForEach-Object { "$_" }) -join "`n"
$code = $LASTEXITCODE
Write-Output $message
if ($code -ne 1) { throw "the second daemon ended with $code" }
$sentence = "\\.\pipe\csi-proxy-disk-v1 is already served by process $first"
if (-not $message.Contains($sentence)) { throw "the message does not contain: $sentence" }
if (@(Get-ChildItem \\.\pipe\ | Where-Object Name -Like 'csi-proxy-*').Count -ne 23) { throw 'the service lost its pipes' }
exit 0
