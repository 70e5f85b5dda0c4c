<#
.SYNOPSIS
Replaces the program of the service of csi-proxy, which may be the Go csi-proxy, or restores the previous program.

.DESCRIPTION
Run the script in an elevated PowerShell on the node. The script downloads nothing. The new program finds the service by the
process that serves the pipes, whatever the name of the service. If a wrapper such as nssm starts the program, the script replaces
the program and never the wrapper. The service keeps its command line. The script keeps the program that it replaces beside the new one, as csi-proxy-previous.exe. If the new program does not serve
every pipe that the service served before within 30 seconds, the script puts the previous one back and fails. The script
refuses to replace a program in a folder in which ordinary users may write.

The service is stopped for a few seconds, or for up to the -drain time if calls are running, together with the services that
depend on it. Drivers' calls fail meanwhile, and kubelet repeats them.

.PARAMETER Program
The new csi-proxy.exe. With -Rollback, the csi-proxy.exe to go back from, which finds the service: a service that runs another
program stays as it is. Without it, the service is csiproxy.

.PARAMETER Sha256
The SHA-256 digest that this program must have.

.PARAMETER ToolSha256
The SHA-256 digest of the csi-proxyctl.exe beside the program. Without a digest, csi-proxyctl.exe is not replaced.

.PARAMETER Rollback
Restore the program that the last upgrade replaced. A second rollback restores the newer program.

.EXAMPLE
.\upgrade.ps1 -Program .\csi-proxy.exe -Sha256 DIGEST

.EXAMPLE
.\upgrade.ps1 -Rollback
#>
[CmdletBinding(DefaultParameterSetName = 'Upgrade')]
param(
    [Parameter(Mandatory = $true, ParameterSetName = 'Upgrade')] [Parameter(ParameterSetName = 'Rollback')] [string] $Program,
    [string] $Sha256 = '',
    [Parameter(ParameterSetName = 'Upgrade')] [string] $ToolSha256 = '',
    [Parameter(Mandatory = $true, ParameterSetName = 'Rollback')] [switch] $Rollback
)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
Import-Module (Join-Path $PSScriptRoot 'CsiProxyService.psm1') -Force

Assert-Administrator
if ($Program -and -not $Sha256) { $Sha256 = Get-Digest $Program }
$service = if ($Program) { Find-CsiProxy $Program $Sha256 } else { Get-DefaultService }
if (-not $service) { throw 'The service is not installed. Use install.ps1.' }
$name = $service.name
$current = $service.program
Write-Output "The service $name runs $current."
$folder = Split-Path -Parent $current
$previous = Join-Path $folder 'csi-proxy-previous.exe'
$next = Join-Path $folder 'csi-proxy-next.exe'

if ($Rollback) {
    # A rollback that is repeated must not restore the newer program.
    if ($Program -and (Get-Digest $current) -ne $Sha256) {
        Write-Output "The service $name does not run this program, and stays as it is."
        return
    }
    if (-not (Test-Path -LiteralPath $previous)) { throw "There is no previous program to restore: $previous does not exist." }
    $Program = $previous
    $Sha256 = Get-Digest $previous
}
if ($Sha256 -eq (Get-Digest $current)) {
    Write-Output "The service already runs this program, $current."
    Start-CsiProxy
    return
}

# A copy in the folder of the service has the access rights of that folder, and takes its final name in one step.
$copy = Copy-Program $Program $next $Sha256
# The previous program may serve fewer pipes than the current one.
[string[]] $pipes = @()
try {
    if (-not $Rollback) {
        & $next service flags -require-safe-folders
        if ($LASTEXITCODE -ne 0) { throw 'The program was not replaced. The reason is above.' }
        $pipes = @(Get-ServicePipe)
    }
} catch {
    $copy.Dispose()
    Remove-Item -LiteralPath $next
    throw
}
$copy.Dispose()
if (-not $Rollback) { Copy-Tool $Program $folder $ToolSha256 }
Stop-CsiProxy
Move-Item -LiteralPath $current -Destination $previous -Force
Move-Item -LiteralPath $next -Destination $current
try {
    Start-CsiProxy -Pipes $pipes
} catch {
    $reason = $_
    Write-Warning "Restoring the previous program: $reason"
    Stop-CsiProxy
    # The program that failed is kept for an examination.
    Move-Item -LiteralPath $current -Destination (Join-Path $folder 'csi-proxy-failed.exe') -Force
    Move-Item -LiteralPath $previous -Destination $current
    Start-CsiProxy
    throw "The program was not replaced: $reason One possible cause: the new program lacks a flag of the service."
}
Write-Output "The service $name runs the new program and serves $(@(Get-ServicePipe).Count) pipes. To restore the previous program: .\upgrade.ps1 -Rollback"
