<#
.SYNOPSIS
Stops and removes the service of csi-proxy, which may be that of the Go csi-proxy.

.DESCRIPTION
Run the script in an elevated PowerShell on the node. Drain the node first, so that drivers remove what they have made: mounted
volumes, links, SMB mappings, iSCSI sessions and target portals. The script does not remove these. The log, the folders that
install.ps1 has created and, until Windows restarts, the record of the SMB mappings in the registry also remain.

.PARAMETER Program
A csi-proxy.exe of this project, which finds the service by the pipes that it serves. Without it, the service is csiproxy.

.PARAMETER Sha256
The SHA-256 digest that this program must have.

.PARAMETER RemoveProgram
Also delete the program, csi-proxyctl.exe, and the programs that upgrade.ps1 has kept beside them.
#>
[CmdletBinding()]
param(
    [string] $Program = '',
    [string] $Sha256 = '',
    [switch] $RemoveProgram
)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
Import-Module (Join-Path $PSScriptRoot 'CsiProxyService.psm1') -Force

Assert-Administrator
if ($Program -and -not $Sha256) { $Sha256 = Get-Digest $Program }
$service = if ($Program) { Find-CsiProxy $Program $Sha256 } else { Get-DefaultService }
if (-not $service) {
    Write-Output 'The service is not installed.'
    return
}
$name = $service.name
$needed = @((Get-Service -Name $name).DependentServices | ForEach-Object { $_.Name })
if ($needed.Count -gt 0) { throw "Without the service $name, Windows would not start: $($needed -join ', ')." }
Write-Output "Removing the service $name, which runs $($service.program)."
$current = $service.program
Stop-CsiProxy
# The Go program does not know the command `service uninstall`, and would begin to serve.
& sc.exe delete $name
if ($LASTEXITCODE -ne 0) { throw "Cannot delete the service $name." }
$source = "HKLM:\SYSTEM\CurrentControlSet\Services\EventLog\Application\csiproxy"
if (Test-Path -LiteralPath $source) { Remove-Item -LiteralPath $source }
if ($RemoveProgram) {
    $folder = Split-Path -Parent $current
    $others = 'csi-proxyctl', 'csi-proxyctl-next', 'csi-proxy-previous', 'csi-proxy-next', 'csi-proxy-failed'
    foreach ($file in @($current) + ($others | ForEach-Object { "$folder\$_.exe" })) {
        if (Test-Path -LiteralPath $file) { Remove-Item -LiteralPath $file }
    }
}
Write-Output "The service $name is removed."
