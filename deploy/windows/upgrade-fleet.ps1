<#
.SYNOPSIS
Runs upgrade.ps1 on many nodes through PowerShell remoting, a few nodes at a time, and stops at the first failure.

.DESCRIPTION
Run the script on the machine of an administrator, in the folder with upgrade.ps1, CsiProxyService.psm1, csi-proxy.exe and, with
-ToolSha256, csi-proxyctl.exe. First give it the canaries. Give it the other nodes when the canaries have worked for some days.
A node that runs the program already stays as it is, so the same command continues after a failure.

.PARAMETER Nodes
The names of the nodes.

.PARAMETER Sha256
The SHA-256 digest of csi-proxy.exe.

.PARAMETER ToolSha256
The SHA-256 digest of csi-proxyctl.exe. Without a digest, csi-proxyctl.exe is not replaced.

.PARAMETER BatchSize
The number of nodes at a time.

.PARAMETER Rollback
Restore the program that the last upgrade replaced on each node.

.PARAMETER Folder
The folder on the nodes for the files. Only administrators may write there.

.EXAMPLE
.\upgrade-fleet.ps1 -Nodes (Get-Content canaries.txt) -Sha256 DIGEST -BatchSize 1

.EXAMPLE
.\upgrade-fleet.ps1 -Nodes (Get-Content canaries.txt) -Sha256 DIGEST -Rollback
#>
[CmdletBinding()]
param(
    [Parameter(Mandatory = $true)] [string[]] $Nodes,
    [Parameter(Mandatory = $true)] [string] $Sha256,
    [string] $ToolSha256 = '',
    [ValidateRange(1, 1000)] [int] $BatchSize = 5,
    [switch] $Rollback,
    [string] $Folder = 'C:\Program Files\csi-proxy-upgrade'
)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

$files = @('csi-proxy.exe', 'upgrade.ps1', 'CsiProxyService.psm1')
if ($ToolSha256) { $files += 'csi-proxyctl.exe' }
$files = @($files | ForEach-Object { Join-Path $PSScriptRoot $_ })

for ($first = 0; $first -lt $Nodes.Count; $first += $BatchSize) {
    $last = [Math]::Min($first + $BatchSize, $Nodes.Count) - 1
    $batch = @($Nodes[$first..$last])
    $sessions = @()
    try {
        # Fails if a node cannot be reached, before any node of the batch changes.
        $sessions = @(New-PSSession -ComputerName $batch)
        Invoke-Command -Session $sessions { New-Item -ItemType Directory -Force -Path $using:Folder | Out-Null }
        foreach ($session in $sessions) { Copy-Item -ToSession $session -Destination $Folder -Path $files }
        $results = @(Invoke-Command -Session $sessions -ErrorAction Continue {
                $ErrorActionPreference = 'Stop'
                $arguments = @{ Program = "$using:Folder\csi-proxy.exe"; Sha256 = $using:Sha256 }
                if ($using:Rollback) { $arguments.Rollback = $true } else { $arguments.ToolSha256 = $using:ToolSha256 }
                try {
                    $lines = & "$using:Folder\upgrade.ps1" @arguments
                    [pscustomobject] @{ Succeeded = $true; Text = ($lines | Select-Object -Last 1) }
                } catch {
                    [pscustomobject] @{ Succeeded = $false; Text = "$_" }
                }
            })
    } finally {
        $sessions | Remove-PSSession
    }
    foreach ($result in $results) { Write-Output "$($result.PSComputerName): $($result.Text)" }
    # A node whose session broke has no result.
    $succeeded = @($results | Where-Object { $_.Succeeded } | ForEach-Object { $_.PSComputerName })
    $failed = @($batch | Where-Object { $succeeded -notcontains $_ })
    if ($failed.Count -gt 0) {
        throw "Stopped after $($last + 1) of $($Nodes.Count) nodes. These failed: $($failed -join ', '). The nodes after them are unchanged."
    }
}
Write-Output "All $($Nodes.Count) nodes have succeeded."
