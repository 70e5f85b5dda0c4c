<#
.SYNOPSIS
Replaces the program of the service csiproxy, also the csi-proxy written in Go, or goes back to the one before.

.DESCRIPTION
Run it in an elevated PowerShell on the node. It downloads nothing. The service keeps its command line. The program that
was replaced is kept beside the new one as csi-proxy-previous.exe. If the new program does not serve every pipe that was
served before within 30 seconds, the script puts the previous one back and fails.

While the service is stopped, which takes a few seconds and up to the time that -drain gives to running calls, drivers'
calls fail, and kubelet repeats them.

.PARAMETER Program
The new csi-proxy.exe.

.PARAMETER Sha256
The SHA-256 digest that the new program must have.

.PARAMETER Rollback
Go back to the program that the last upgrade replaced. Repeated, it returns to the newer one.

.EXAMPLE
.\upgrade.ps1 -Program .\csi-proxy.exe -Sha256 DIGEST

.EXAMPLE
.\upgrade.ps1 -Rollback
#>
[CmdletBinding(DefaultParameterSetName = 'Upgrade')]
param(
    [Parameter(Mandatory = $true, ParameterSetName = 'Upgrade')] [string] $Program,
    [Parameter(ParameterSetName = 'Upgrade')] [string] $Sha256 = '',
    [Parameter(Mandatory = $true, ParameterSetName = 'Rollback')] [switch] $Rollback
)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
Import-Module (Join-Path $PSScriptRoot 'CsiProxyService.psm1') -Force

Assert-Administrator
if (-not (Test-Service)) { throw "The service $ServiceName is not installed. Use install.ps1." }
$current = Get-ServiceProgram
$folder = Split-Path -Parent $current
$previous = Join-Path $folder 'csi-proxy-previous.exe'
$next = Join-Path $folder 'csi-proxy-next.exe'

if ($Rollback) {
    if (-not (Test-Path -LiteralPath $previous)) { throw "$previous does not exist: nothing has been upgraded." }
    $Program = $previous
} elseif ($Sha256) {
    Assert-Digest $Program $Sha256
}
if ((Get-Digest $Program) -eq (Get-Digest $current)) {
    Write-Output "$current is this program already."
    Start-CsiProxy
    return
}

# A copy in the folder of the service has the access rights of that folder, and takes its final name in one step.
Copy-Item -LiteralPath $Program -Destination $next -Force
# The program before may serve fewer pipes than the one that has replaced it.
[string[]] $pipes = @()
if (-not $Rollback) { $pipes = @(Get-Pipe) }
Stop-CsiProxy
Move-Item -LiteralPath $current -Destination $previous -Force
Move-Item -LiteralPath $next -Destination $current
try {
    Start-CsiProxy -Pipes $pipes
} catch {
    $reason = $_
    Write-Warning "Going back to the program before: $reason"
    Stop-CsiProxy
    # The program that failed is kept for an examination.
    Move-Item -LiteralPath $current -Destination (Join-Path $folder 'csi-proxy-failed.exe') -Force
    Move-Item -LiteralPath $previous -Destination $current
    Start-CsiProxy
    throw "The program is not replaced: $reason A flag of the service that it does not have is one possible cause."
}
Write-Output "The service $ServiceName runs the new program and serves $(@(Get-Pipe).Count) pipes. To go back: .\upgrade.ps1 -Rollback"
