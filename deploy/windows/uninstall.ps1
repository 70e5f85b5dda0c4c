<#
.SYNOPSIS
Stops and removes the service csiproxy, which may be that of the Go csi-proxy.

.DESCRIPTION
Run the script in an elevated PowerShell on the node. Drain the node first, so that drivers remove what they have made: mounted
volumes, links, SMB mappings, iSCSI sessions and target portals. The script does not remove these. The log, the folders that
install.ps1 has created and, until Windows restarts, the record of the SMB mappings in the registry also remain.

.PARAMETER RemoveProgram
Also delete the program, csi-proxyctl.exe, and the programs that upgrade.ps1 has kept beside them.
#>
[CmdletBinding()]
param(
    [switch] $RemoveProgram
)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
Import-Module (Join-Path $PSScriptRoot 'CsiProxyService.psm1') -Force

Assert-Administrator
if (-not (Test-Service)) {
    Write-Output "The service $ServiceName is not installed."
    return
}
$program = Get-ServiceProgram
Stop-CsiProxy
# The Go program does not know the command `service uninstall`, and would begin to serve.
& sc.exe delete $ServiceName
if ($LASTEXITCODE -ne 0) { throw "Cannot delete the service $ServiceName." }
$source = "HKLM:\SYSTEM\CurrentControlSet\Services\EventLog\Application\$ServiceName"
if (Test-Path -LiteralPath $source) { Remove-Item -LiteralPath $source }
if ($RemoveProgram) {
    $folder = Split-Path -Parent $program
    $others = 'csi-proxyctl', 'csi-proxyctl-next', 'csi-proxy-previous', 'csi-proxy-next', 'csi-proxy-failed'
    foreach ($file in @($program) + ($others | ForEach-Object { "$folder\$_.exe" })) {
        if (Test-Path -LiteralPath $file) { Remove-Item -LiteralPath $file }
    }
}
Write-Output "The service $ServiceName is removed."
