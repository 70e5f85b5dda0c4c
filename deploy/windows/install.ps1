<#
.SYNOPSIS
Installs csi-proxy as the Windows service csiproxy, starts it, and examines the node.

.DESCRIPTION
Run the script in an elevated PowerShell on the node. The script downloads nothing. If the same program is installed already,
as a service of any name, the script prints the flags of the service, replaces them if -Flags or -LogFolder is given, and starts
the service. To replace another program, use upgrade.ps1.

.PARAMETER Program
The csi-proxy.exe to install.

.PARAMETER Sha256
The SHA-256 digest that the program must have.

.PARAMETER ToolSha256
The SHA-256 digest of the csi-proxyctl.exe beside the program. Without a digest, csi-proxyctl.exe is not installed.

.PARAMETER Folder
The folder in which the program is installed. If it does not exist, the script creates it; only administrators may write there.

.PARAMETER LogFolder
The folder of the log. If it does not exist, csi-proxy creates it; only administrators have access.
With -LogFolder or -Flags, an installed service loses all flags that this command does not give; -LogFolder has its default then.

.PARAMETER Flags
All further flags of csi-proxy, such as -metrics-bind-address=127.0.0.1:9818. See -LogFolder.

.EXAMPLE
.\install.ps1 -Program .\csi-proxy.exe -Sha256 DIGEST
#>
[CmdletBinding()]
param(
    [Parameter(Mandatory = $true)] [string] $Program,
    [string] $Sha256 = '',
    [string] $ToolSha256 = '',
    [string] $Folder = 'C:\etc\kubernetes\node\bin',
    [string] $LogFolder = 'C:\etc\kubernetes\logs',
    [string[]] $Flags = @()
)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
Import-Module (Join-Path $PSScriptRoot 'CsiProxyService.psm1') -Force

# Creates a folder that LocalSystem and administrators may write and users may read, and missing folders above it, each with its
# access list in one call. Does not change a folder that exists.
function New-SafeFolder([string] $Path) {
    if (Test-Path -LiteralPath $Path) { return }
    New-SafeFolder (Split-Path -Parent $Path)
    $access = New-Object Security.AccessControl.DirectorySecurity
    $access.SetSecurityDescriptorSddlForm('O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)')
    $folder = New-Object IO.DirectoryInfo $Path
    if ($PSVersionTable.PSVersion.Major -le 5) { $folder.Create($access) } else { [IO.FileSystemAclExtensions]::Create($folder, $access) }
}

Assert-Administrator
if (-not $Sha256) { $Sha256 = Get-Digest $Program }
$Folder = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Folder)
$target = Join-Path $Folder 'csi-proxy.exe'
$serviceFlags = @("-log_file=$LogFolder\csi-proxy.log", '-logtostderr=false') + $Flags

$name = 'csiproxy'
$service = Find-CsiProxy $Program $Sha256
if ($service) {
    $name = $service.name
    $installed = $service.program
    if ((Get-Digest $installed) -ne $Sha256) {
        throw "The service $name runs another program, $installed. Use upgrade.ps1 to replace it."
    }
    Write-Output "The service $name is installed already, with this program."
    $wanted = @()
    if ($PSBoundParameters.ContainsKey('Flags') -or $PSBoundParameters.ContainsKey('LogFolder')) {
        $wanted = @('-require-safe-folders') + $serviceFlags
    }
    $lines = @(& $installed service flags @wanted)
    if ($LASTEXITCODE -ne 0) { throw "csi-proxy could not change the flags of the service. The reason is above." }
    Write-Output $lines
    # The second line has the new flags, if they differ.
    if ($lines.Count -gt 1) { Stop-CsiProxy }
    Copy-Tool $Program (Split-Path -Parent $installed) $ToolSha256
} else {
    $installed = $target
    New-SafeFolder $Folder
    $copy = Copy-Program $Program $target $Sha256
    try { & $target service install -require-safe-folders @serviceFlags } finally { $copy.Dispose() }
    if ($LASTEXITCODE -ne 0) { throw "csi-proxy could not install the service. The reason is above." }
    Copy-Tool $Program $Folder $ToolSha256
}

Start-CsiProxy
Write-Output "The service $name serves $(@(Get-ServicePipe).Count) pipes. csi-proxy doctor examines the node:"
& $installed doctor
if ($LASTEXITCODE -ne 0) { Write-Warning 'csi-proxy doctor found a problem on this node.' }
